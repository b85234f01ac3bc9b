"""Everything of a queue: each item once, in an order in which it can be put back."""

import pytest
from redis import Redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.export import Export, export as export_items
from rwq_cli.core.items.results import ResultOptions
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.snapshot import ItemSnapshot, Place, Skipped
from tests.conftest import Backend, FakeClock, Foreign, Interleaved, contents


def all_of(export: Export) -> list[ItemSnapshot]:
    """Every item."""
    return [snapshot for batch in export.batches() for snapshot in batch]


def test_items_are_exported_in_order(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.data(b"orphan")
    foreign.buried(b"b")
    foreign.delayed(b"d2", 4_000_000_000_000)
    foreign.delayed(b"d1", 3_000_000_000_000)
    foreign.leased(b"l1", b"l2")
    foreign.waiting(b"w1", b"\xff", b"w2")
    foreign.data(b"unlisted")
    foreign.lease(b"unlisted")
    before = contents(raw)
    snapshots = all_of(export_items(queue))
    listed = [snapshot.item_id for snapshot in snapshots]
    assert listed[:8] == [b"w1", b"\xff", b"w2", b"l1", b"l2", b"d1", b"d2", b"b"]
    assert sorted(listed[8:]) == [b"orphan", b"unlisted"]
    assert [p.state for p in snapshots[:8]] == [
        *[State.WAITING] * 3,
        *[State.LEASED] * 2,
        *[State.DELAYED] * 2,
        State.BURIED,
    ]
    assert contents(raw) == before


def test_each_is_read_once_even_if_it_is_not_an_item(
    queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b")
    raw.lpush(keys.main, b"a", b"ghost")
    raw.lpush(keys.processing, b"b", b"ghost2")
    foreign.lease(b"stray", b"a")
    raw.hset(keys.item(b"hash"), "x", "y")
    Foreign(raw, b"jobs:item:mail").waiting(b"1")
    export = export_items(queue)
    assert [(p.item_id, p.place) for p in all_of(export)] == [
        (b"a", Place.MAIN),
        (b"b", Place.MAIN),
    ]
    assert export.skipped == Skipped([b"ghost", b"ghost2"], [b"hash"], [keys.item(b"hash")], 1)


@pytest.mark.parametrize("back", [False, True])
def test_no_item_is_missed_beside_a_live_worker(
    backend: Backend, interleaved: Interleaved, raw: Redis, back: bool
) -> None:
    """Before each call of ours another leases two items; some it gives back. None is missed."""
    worker = WorkQueue(backend.connect(), b"jobs", holder=b"worker")
    ids = [b"%05d" % number for number in range(2000)]
    raw.mset({b"jobs:item:" + item_id: b"d" for item_id in ids})
    raw.lpush("jobs:queue", *ids)

    def work(_: str) -> None:
        held = [item.item_id for item in worker.lease_many(2, for_s=60)]
        if back:
            list(worker.release_many(held[:1]))

    interleaved.before = work
    snapshots = all_of(export_items(WorkQueue(interleaved, b"jobs")))
    assert sorted(p.item_id for p in snapshots) == ids
    for snapshot in snapshots:
        assert (snapshot.place is Place.MAIN) == (snapshot.lease is None), snapshot


def test_results_come_behind_the_items(
    queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
) -> None:
    """One that is completed while the items are read is met all the same."""
    foreign.waiting(b"a", b"b")
    export = export_items(queue)
    batches = export.batches()
    assert [p.item_id for p in next(batches)] == [b"a", b"b"]
    list(complete_items(queue, [b"a"], result_options=ResultOptions(b"done")))
    assert [p.item_id for batch in batches for p in batch] == []
    assert [r.item_id for batch in export.results() for r in batch] == [b"a"]
    assert (export.results_read, clock.slept_s) == (1, [])
    assert raw.exists("jobs:result:a") == 1
