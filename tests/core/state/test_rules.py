"""From facts to a state, where no keys show it, and to the reason of a burial."""

from typing import Any

from rwq_cli.core.model import Lease, State
from rwq_cli.core.state.rules import Facts

NOW_MS = 1_700_000_000_000

NOTHING = Facts(b"1", False, now_ms=NOW_MS)
DATA = NOTHING._replace(has_data=True)

ENDS = Lease(b"them", 1000)
# The server says 0 for what is left of the last millisecond.
ENDS_NOW = Lease(b"them", 0)
ENDLESS = Lease(b"them", None)
DELAY_GUARD = Lease(b"rwq-delayed:", 60_000)
BURY_GUARD = Lease(b"rwq-buried:broken", None)
CLAIM = Lease(b"rwq-clean:0123", 120_000)
SETTLING = Lease(b"rwq-settling:released", 30_000)


ENDING = {"new_lease": ENDS}
ENDED_NOW = {"new_lease": ENDS_NOW}
DELAY_GUARDS = {"new_lease": DELAY_GUARD, "old_lease": DELAY_GUARD}
BURY_GUARDS = {"new_lease": BURY_GUARD, "old_lease": BURY_GUARD}
SETTLINGS = {"new_lease": SETTLING, "old_lease": SETTLING}
# What no key of `ITEM_CASES` shows: the state, and what is known beside that there are data.
WITH_DATA: list[tuple[State, dict[str, Any]]] = [
    (State.WAITING, {"in_main": 1, **SETTLINGS}),
    (State.LEASED, {"in_processing": 2, **ENDING}),
    (State.LEASED, {"in_processing": 1, **ENDED_NOW}),
    (State.LEASED, {"in_processing": 1, "in_cleaning": 1, **ENDING}),
    (State.LEASED, {"in_processing": 1, "new_lease": SETTLING, "old_lease": ENDS}),
    (State.ABANDONED, {"in_processing": 1, "in_cleaning": 1}),
    # A guard without its entry proves nothing in a list; a settling lease is nobody's.
    (State.ABANDONED, {"in_processing": 1, **BURY_GUARDS}),
    (State.ABANDONED, {"in_processing": 1, **SETTLINGS}),
    (State.ORPHANED, BURY_GUARDS),
    (State.ORPHANED, {"new_lease": SETTLING}),
    (State.UNLISTED, ENDED_NOW),
    (State.UNLISTED, {"in_cleaning": 1, **ENDING}),
    (State.UNLISTED, {"new_lease": CLAIM}),
    (State.DUE, {"due_ms": NOW_MS, **DELAY_GUARDS}),
    (State.BURIED, {"buried_ms": NOW_MS, "in_processing": 1, **BURY_GUARDS}),
    (State.WRONG_TYPE, {"in_main": 1, "wrong_types": {b"jobs:queue": "string"}}),
]
WITHOUT_DATA: list[tuple[State, dict[str, Any]]] = [
    (State.GHOST, {"due_ms": NOW_MS}),
    (State.STRAY_LEASE, ENDED_NOW),
    (State.GONE, SETTLINGS),
]


def test_facts_lead_to_the_state_in_the_table() -> None:
    """Every other row: `test_agreement.py`."""
    rows = [(DATA._replace(**facts), state) for state, facts in WITH_DATA]
    rows += [(NOTHING._replace(**facts), state) for state, facts in WITHOUT_DATA]
    assert [(facts, facts.state) for facts, _ in rows] == rows


BURIED = DATA._replace(buried_ms=NOW_MS, new_lease=BURY_GUARD, old_lease=BURY_GUARD)


REASONS = (
    (BURIED, b"broken"),
    (BURIED._replace(new_lease=None), b"broken"),
    (BURIED._replace(new_lease=ENDS), b"broken"),
    (BURIED._replace(old_lease=ENDLESS), b"broken"),
    (BURIED._replace(new_lease=DELAY_GUARD), b"broken"),
    (BURIED._replace(old_lease=Lease(b"rwq-buried:other", None)), b"broken"),
    (BURIED._replace(new_lease=Lease(b"rwq-buried:soon", 5)), b"soon"),
    (BURIED._replace(new_lease=Lease(b"rwq-buried:", None)), b""),
    (BURIED._replace(new_lease=Lease(b"rwq-buried:a: b", None)), b"a: b"),
    (BURIED._replace(new_lease=None, old_lease=None), None),
    (BURIED._replace(new_lease=DELAY_GUARD, old_lease=ENDS), None),
    (BURIED._replace(buried_ms=None), None),
)


def test_the_reason_of_a_burial_is_in_its_guards() -> None:
    assert [row for row in REASONS if row[0].reason != row[1]] == []
