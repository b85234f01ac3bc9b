"""From facts to a state: every row of the protocol's table, and no facts without a state."""

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
ENDLESSLY = {"new_lease": ENDLESS}
DELAY_GUARDS = {"new_lease": DELAY_GUARD, "old_lease": DELAY_GUARD}
BURY_GUARDS = {"new_lease": BURY_GUARD, "old_lease": BURY_GUARD}
SETTLINGS = {"new_lease": SETTLING, "old_lease": SETTLING}
# By state, what is known beside that there are data.
WITH_DATA: dict[State, list[dict[str, Any]]] = {
    State.WAITING: [
        {"in_main": 1},
        # A cleaner came between a worker's pop and its lease: a worker can have it, so it waits.
        {"in_main": 1, **ENDING},
        {"in_main": 1, "due_ms": NOW_MS + 1},
        {"in_main": 1, "buried_ms": NOW_MS, **BURY_GUARDS},
        {"in_main": 1, **SETTLINGS},
    ],
    State.LEASED: [
        {"in_processing": 1, **ENDING},
        {"in_processing": 2, **ENDING},
        {"in_processing": 1, **ENDED_NOW},
        {"in_processing": 1, "in_cleaning": 1, **ENDING},
        # A worker took it after all: its lease, not our old entry, says what it is.
        {"in_processing": 1, "buried_ms": NOW_MS, **ENDING},
        {"in_processing": 1, "due_ms": NOW_MS + 1, **ENDING},
        {"in_processing": 1, "new_lease": SETTLING, "old_lease": ENDS},
    ],
    State.HELD: [{"in_processing": 1, **ENDLESSLY}, ENDLESSLY],
    State.ABANDONED: [
        {"in_processing": 1},
        {"in_processing": 1, "in_cleaning": 1},
        # Half a guard, or one without its entry, proves nothing of an item in a list.
        {"in_processing": 1, "buried_ms": NOW_MS, "old_lease": BURY_GUARD},
        {"in_processing": 1, "due_ms": NOW_MS, "new_lease": DELAY_GUARD},
        {"in_processing": 1, **BURY_GUARDS},
        # A settling lease is nobody's.
        {"in_processing": 1, **SETTLINGS},
    ],
    State.ORPHANED: [{}, {"in_cleaning": 1}, BURY_GUARDS, {"new_lease": SETTLING}],
    State.UNLISTED: [ENDING, ENDED_NOW, {"in_cleaning": 1, **ENDING}, {"new_lease": CLAIM}],
    State.DELAYED: [{"due_ms": NOW_MS + 1, **DELAY_GUARDS}, {"due_ms": NOW_MS + 1}],
    State.DUE: [{"due_ms": NOW_MS, **DELAY_GUARDS}, {"due_ms": NOW_MS - 1, **DELAY_GUARDS}],
    State.BURIED: [
        {"buried_ms": NOW_MS, **BURY_GUARDS},
        {"buried_ms": NOW_MS, "in_processing": 1, **BURY_GUARDS},
        {"buried_ms": NOW_MS, "new_lease": BURY_GUARD},
    ],
    State.DUPLICATED: [
        {"in_main": 2},
        {"in_main": 1, "in_processing": 1},
        {"in_main": 1, "in_processing": 1, **ENDING},
    ],
    State.WRONG_TYPE: [{"in_main": 1, "wrong_types": {b"jobs:queue": "string"}}],
}
WITHOUT_DATA: dict[State, list[dict[str, Any]]] = {
    State.GHOST: [
        {"in_main": 1},
        {"in_processing": 1},
        {"in_processing": 1, **ENDING},
        {"due_ms": NOW_MS},
        {"buried_ms": NOW_MS, **BURY_GUARDS},
    ],
    State.STRAY_LEASE: [ENDING, ENDED_NOW, ENDLESSLY],
    State.GONE: [{}, {"returns": 3}, SETTLINGS],
    State.WRONG_TYPE: [{"wrong_types": {b"jobs:item:1": "hash"}}],
}


def test_facts_lead_to_the_state_in_the_table() -> None:
    for known, rows in (DATA, WITH_DATA), (NOTHING, WITHOUT_DATA):
        for state, facts in rows.items():
            assert {known._replace(**more).state for more in facts} == {state}
    assert {*WITH_DATA, *WITHOUT_DATA} == {*State}


DELAYED = DATA._replace(due_ms=NOW_MS + 50, new_lease=DELAY_GUARD, old_lease=DELAY_GUARD)
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
