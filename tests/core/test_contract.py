"""What each verb does to an ID in each state: the same for one, for all, and among others."""

import pytest
import redis

from rwq_cli.core import Code, State, Status, WorkQueue
from rwq_cli.core.inspect.lookup import inspect_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.repair.findings import findings_about
from rwq_cli.core.state.expected import Expected, token_of
from rwq_cli.core.state.rules import Facts
from tests.broken_queues import pad, traces
from tests.conftest import HOLDER, Foreign, supports_no_touch
from tests.item_cases import ITEM_CASES, ItemCase
from tests.verbs import OPERATIONS

# Beside the cases of the doctor: leases of the queue under test, and of a session that failed.
CASES: dict[bytes, ItemCase] = {
    **{name.encode(): case for name, case in ITEM_CASES.items()},
    b"mine": ItemCase(lambda there, i: there.leased(i, holder=HOLDER), State.LEASED),
    b"mine by 0.1": ItemCase(
        lambda there, i: there.leased(i, holder=HOLDER, generations="old"), State.LEASED
    ),
    b"waiting under a lease": ItemCase(
        lambda there, i: (there.waiting(i), there.lease(i)), State.WAITING
    ),
}
# The code of the status of an ID, by what it is: waiting without or under another's lease; leased
# to `them`, to others, or to us; abandoned, orphaned, delayed, due or buried; without data; or with
# a key of the wrong type. `+` is leased, and `=` is not.
TABLE = """
                      w W L T M A O D U B N X
add                   d d d d d d d d d d a y
complete              c c c c c c c c c c m y
complete by owner     o c c o o o o o o o m y
touch                 n t t t t n n n n n m y
release               w w o o r r r r r r m y
release by force      w w r r r r r r r r m y
release one's own     o o o o r o o o o o m y
release to the front  r o o o r r r r r r m y
release later         l o o o l l l l l l m y
bury                  b o o o b b b b b e m y
bury by force         b b b b b b b b b e m y
kick                  u u u u u u u u u k m y
remove                x x x x x x x x x x m y
move                  v o o o o v v o o o m y
move by force         v v v v v v v v v v m y
lease by ID           + + = = = = = + + + = =
"""
_KINDS, *_ROWS = TABLE.strip().splitlines()
CONTRACT = {
    row[:22].strip(): dict(zip(_KINDS.split(), row[22:].split(), strict=True)) for row in _ROWS
}
# A guard that is whole, or whose half is left, is somebody's for a move; what is on its way into a
# burial is its worker's for a kick. A lease drops a second entry of what is worked on.
EXCEPTIONS = {
    **{("move", f"{name} without a guard".encode()): "v" for name in ("delayed", "due", "buried")},
    ("move", b"waiting and buried"): "o",
    ("move", b"abandoned behind half a guard"): "o",
    ("kick", b"leased and buried by one name"): "o",
    ("lease by ID", b"in main and leased"): "=",
    # It leaves the move.
    **dict.fromkeys((("bury", b"being moved"), ("bury by force", b"being moved")), "b"),
    # Its data are there.
    ("add", b"a list for its lease"): "d",
}
# The states of what was acted on.
AFTER = {
    **dict.fromkeys("cxv", State.GONE),
    **dict.fromkeys("rk", State.WAITING),
    "l": State.DELAYED,
    "b": State.BURIED,
    "+": State.LEASED,
}
# These change nothing at all.
LEFT_ALONE = {*"downy="}
# What no verb repairs.
KEPT = {Code.INVALID_RETURNS, Code.OFTEN_RETURNED, Code.STALE_CLEANING}
# One of their entries may be what was chosen.
SOME = (State.DUPLICATED,)
BY_STATE = {
    State.ABANDONED: "A",
    State.ORPHANED: "O",
    State.DELAYED: "D",
    State.DUE: "U",
    State.BURIED: "B",
    State.WRONG_TYPE: "X",
}


def make_outcome_kind(facts: Facts) -> str:
    """The column of `TABLE`."""
    if facts.state is State.WRONG_TYPE:
        return "X"
    if not facts.has_data:
        return "N"
    if facts.in_main:
        return "W" if facts.session else "w"
    if facts.session:
        holder = facts.session.holder
        return {HOLDER: "M", b"them": "L"}.get(holder, "T")
    return BY_STATE[facts.state]


def arrange(queue: WorkQueue, foreign: Foreign) -> dict[bytes, tuple[str, object]]:
    """One of each; by ID its kind, and all that the server holds of it."""
    foreign.raw.flushall()
    for item_id, case in CASES.items():
        case.make(foreign, item_id)
    facts = (report.facts for report in inspect_items(queue, CASES))
    held = traces(foreign.raw, foreign.keys, list(CASES))
    return {each.item_id: (make_outcome_kind(each), held[each.item_id]) for each in facts}


@pytest.mark.parametrize("name", CONTRACT)
@pytest.mark.parametrize("way", ["one by one", "all at once", "among others"])
def test_a_verb_does_what_the_table_says(
    queue: WorkQueue, raw: redis.Redis, foreign: Foreign, keys: QueueKeys, name: str, way: str
) -> None:
    verb, row, ids = OPERATIONS[name], CONTRACT[name], list(CASES)
    before = arrange(queue, foreign)
    others = pad(raw, keys, 60) if way == "among others" else []
    calls = [[item_id] for item_id in ids] if way == "one by one" else [[*ids, *others]]
    statuses = dict(outcome[:2] for call in calls for outcome in verb.run(queue, call, False))
    codes = {item_id: _code(statuses[item_id], name) for item_id in ids}
    expected = {i: EXCEPTIONS.get((name, i), row[kind]) for i, (kind, _) in before.items()}
    assert codes == expected
    held = traces(raw, keys, ids)
    facts = {report.facts.item_id: report.facts for report in inspect_items(queue, ids)}
    states = {i: AFTER[code] for i, code in codes.items() if code in AFTER}
    assert {i: facts[i].state for i in states} == states
    assert {(i, finding) for i in states for finding in {*findings_about(facts[i])} - KEPT} == set()
    untouched = {i: before[i][1] for i, code in codes.items() if code in LEFT_ALONE}
    assert {i: held[i] for i in untouched} == untouched
    # What is left of an item that is gone may go, too.
    assert [i for i, code in codes.items() if code == "m" and facts[i].has_data] == []


def _code(said: str | bool, name: str) -> str:
    if name == "lease by ID":
        return "+" if said is True else "="
    return Status(said).code


EXPECTING = (
    *("complete", "release by force", "release to the front", "release later", "bury by force"),
    *("remove", "move by force"),
)


@pytest.mark.parametrize("name", EXPECTING)
@pytest.mark.parametrize("others", [0, 60])
def test_what_is_not_what_was_chosen_is_left_alone(
    queue: WorkQueue, raw: redis.Redis, foreign: Foreign, keys: QueueKeys, name: str, others: int
) -> None:
    """It was chosen by its state, its age or its data, and is another by the time of the verb."""
    expects = OPERATIONS[name].expects
    assert expects is not None
    conditions = [
        *(Expected(states=frozenset({state})) for state in State if state.is_item),
        Expected(tokens={item_id: token_of(b"other") for item_id in CASES}),
    ]
    # Before Redis 7.2, an item's age is gone once it was read to be saved.
    if supports_no_touch(raw) or name not in ("remove", "move by force"):
        conditions.append(Expected(age_s=1e12))
    for condition in conditions:
        before = arrange(queue, foreign)
        states = {r.facts.item_id: r.facts.state for r in inspect_items(queue, CASES)}
        ids = [i for i, state in states.items() if state.is_item and state not in SOME]
        outcomes = expects(queue, [*ids, *pad(raw, keys, others)], condition)
        statuses = dict(outcome[:2] for outcome in outcomes)
        held = traces(raw, keys, ids)
        others_before = {i: before[i][1] for i in ids if states[i] not in (condition.states or ())}
        assert {i for i in ids if statuses[i] == Status.CHANGED} == {*others_before}, condition
        assert {i: held[i] for i in others_before} == others_before, condition
