"""Whoever asks for the state of an item is told the same, whatever else is in the queue."""

from collections import Counter

import pytest
from redis import Redis

from rwq_cli.core import Selection, State, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect import keyspace
from rwq_cli.core.inspect.listing import choose as choose_items, leases
from rwq_cli.core.items.export import Export
from rwq_cli.core.items.purge import purge as purge_queue
from rwq_cli.core.repair.findings import Code
from tests.conftest import FakeClock, Foreign, contents
from tests.core.operations import EVERYWHERE
from tests.item_cases import ITEM_CASES

COUNTED = (
    *("leased", "held", "abandoned", "due", "orphaned", "unlisted"),
    *("duplicated", "ghosts", "stray_leases", "wrong_types"),
)
NOT_LISTED = (State.GONE, State.STRAY_LEASE)


@pytest.fixture
def states(foreign: Foreign) -> dict[bytes, State]:
    """One of each; their states. Beside others: `test_verdicts.py`."""
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    return {name.encode(): case.state for name, case in ITEM_CASES.items()}


def test_listings_have_the_same_states(queue: WorkQueue, states: dict[bytes, State]) -> None:
    assert {i: queue.state(i) for i in states} == states
    assert {*states.values()} == {*State}
    listed: dict[bytes, set[State]] = {}
    for item in queue.items(EVERYWHERE, bare=True):
        listed.setdefault(item.item_id, set()).add(item.state)
    assert listed == {i: {state} for i, state in states.items() if state not in NOT_LISTED}
    leased = {i.item_id: i.state for i in leases(queue, bare=True)}
    # That an item waits as well, a look at processing does not show.
    duplicated = {i for i in leased if states[i] is State.DUPLICATED}
    assert {i: s for i, s in leased.items() if i not in duplicated} == {
        i: states[i] for i in leased if i not in duplicated
    }


@pytest.mark.parametrize("state", [state for state in State if state not in NOT_LISTED])
def test_what_looks_broken_is_chosen_at_a_second_look(
    queue: WorkQueue, raw: Redis, states: dict[bytes, State], clock: FakeClock, state: State
) -> None:
    before = contents(raw)
    # What is read for one state does not say where else an item is.
    elsewhere = {i for i, actual in states.items() if actual is State.DUPLICATED}
    elsewhere.add(b"waiting and buried")
    ids = choose_items(queue, Selection(frozenset({state})), grace_s=2.5).ids
    expected = {i for i, actual in states.items() if actual is state}
    assert expected <= {*ids} <= expected | elsewhere
    assert len(ids) == len({*ids})
    assert clock.slept_s == [2.5] * state.may_be_in_transit
    assert contents(raw) == before


@pytest.mark.parametrize("inner", [b"jobs:item:x", b"jobs:lease:x", b"jobs:result:x"])
def test_the_keys_of_a_nested_queue_are_nobody_elses(
    queue: WorkQueue, raw: Redis, foreign: Foreign, inner: bytes
) -> None:
    foreign.waiting(b"own")
    other = Foreign(raw, inner)
    other.waiting(b"w")
    other.leased(b"l")
    other.data(b"o")
    other.lease(b"stray", ttl_ms=None)
    items = {item.item_id for item in queue.items(EVERYWHERE, Selection(), bare=True)}
    assert items == {b"own"}
    counts = queue.counts(deep=True)
    assert (counts.orphaned, counts.stray_leases, counts.results) == (0, 0, 0)
    findings = {each.code: each.count for each in queue.diagnose(grace_s=0).findings}
    assert findings[Code.SHADOWED_NAME] == 1
    assert not findings.keys() & {Code.ORPHANED, Code.STRAY_LEASE, Code.ENDLESS_LEASE}
    export = Export(queue)
    assert {item.item_id for batch in export.batches() for item in batch} == items
    assert export.skipped.stray_leases == 0
    before = contents(raw)
    assert queue.deep_clean() == []
    with pytest.raises(InvalidArgument, match=f"{inner.decode()} look like items of jobs"):
        list(purge_queue(queue, None, grace_s=0))
    assert contents(raw) == before


@pytest.mark.parametrize("few", [50, 0])
def test_counts_agree_with_the_states(
    queue: WorkQueue, states: dict[bytes, State], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of more keys, the server tells which are strings.
    monkeypatch.setattr(keyspace, "_FEW_TYPES", few)
    counts, number = queue.counts(deep=True), Counter(states.values())
    state_of = {name: State(name.removesuffix("s").replace("_", "-")) for name in COUNTED}
    assert {n: getattr(counts, n) for n in COUNTED} == {n: number[s] for n, s in state_of.items()}
