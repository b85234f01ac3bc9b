"""Snapshots of items: data, lease, place, times, all of one instant."""

import pytest
from redis import Redis

from rwq_cli.core import Lease, State, WorkQueue
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.snapshot import (
    SNAPSHOT_BYTES,
    End,
    ItemSnapshot,
    ListRange,
    Place,
    Skipped,
    find_snapshots,
    read_snapshots,
)
from tests.conftest import Foreign


def found(queue: WorkQueue, *ids: bytes) -> list[ItemSnapshot]:
    """The snapshots of IDs that are somewhere."""
    return [p for batch in find_snapshots(queue, ids, Skipped()) for p in batch]


def test_of_each_place(queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.leased(b"l", holder=b"them", ttl_ms=None)
    foreign.abandoned(b"a")
    foreign.delayed(b"d", 4_000_000_000_000)
    foreign.buried(b"b", b"no: good")
    foreign.data(b"o")
    raw.hset(keys.returns, b"b", 3)
    snapshots = found(queue, b"w1", b"w3", b"l", b"a", b"b", b"o")
    buried = Lease(b"rwq-buried:no: good", None)
    assert snapshots == [
        ItemSnapshot(b"w1", b"data of w1", State.WAITING, Place.MAIN, nearer=End.NEXT),
        ItemSnapshot(b"w3", b"data of w3", State.WAITING, Place.MAIN, nearer=End.LAST),
        ItemSnapshot(b"l", b"data of l", State.HELD, Place.PROCESSING, Lease(b"them", None)),
        ItemSnapshot(b"a", b"data of a", State.ABANDONED, Place.PROCESSING),
        ItemSnapshot(
            *(b"b", b"data of b", State.BURIED, Place.BURIED, buried, None),
            *(1_700_000_000_000, b"no: good", 3),
        ),
        ItemSnapshot(b"o", b"data of o", State.ORPHANED, None),
    ]
    (delayed,) = found(queue, b"d")
    assert (delayed.state, delayed.place) == (State.DELAYED, Place.DELAYED)
    assert delayed.due_ms == 4_000_000_000_000
    assert delayed.lease is not None
    guard_ends_ms = raw.time()[0] * 1000 + (delayed.lease.ttl_ms or 0)
    assert abs(guard_ends_ms - 4_000_003_600_000) < 5000


def test_what_is_no_item(queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    raw.hset(keys.item(b"hash"), "x", "y")
    skipped = Skipped()
    batches = list(find_snapshots(queue, [b"gone", b"hash", b"a"], skipped))
    assert [[p.item_id for p in batch] for batch in batches] == [[b"a"]]
    assert skipped == Skipped([b"gone"], [b"hash"], [b"jobs:item:hash"])


@pytest.mark.parametrize("key", [b"jobs:lease:a", b"jobs:leased_by_session:a"])
def test_a_lease_key_of_another_type(
    queue: WorkQueue, raw: Redis, foreign: Foreign, key: bytes
) -> None:
    foreign.leased(b"a", b"b", ttl_ms=None)
    raw.delete(key)
    raw.lpush(key, "x")
    skipped = Skipped()
    batches = list(find_snapshots(queue, [b"a", b"b"], skipped))
    assert [[p.item_id for p in batch] for batch in batches] == [[b"b"]]
    assert skipped == Skipped([], [b"a"], [key])


def test_an_empty_holder_is_one(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.leased(b"a", holder=b"", ttl_ms=None)
    (a,) = found(queue, b"a")
    assert a.lease == Lease(b"", None)


def test_what_waits_has_no_time(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    """Put in again, it would be in both."""
    foreign.waiting(b"a")
    raw.zadd(keys.delayed, {b"a": 4_000_000_000_000})
    raw.zadd(keys.buried, {b"a": 1})
    (a,) = found(queue, b"a")
    assert (a.place, a.state, a.due_ms, a.buried_ms) == (Place.MAIN, State.WAITING, None, None)


def test_a_reply_is_bounded_by_bytes(queue: WorkQueue, keys: QueueKeys, raw: Redis) -> None:
    ids = [b"%d" % number for number in range(5)]
    raw.mset({keys.item(item_id): b"x" * (SNAPSHOT_BYTES // 2) for item_id in ids})
    batches = list(read_snapshots(queue, ListRange(None, 0, 0, ids), Skipped()))
    assert [[p.item_id for p in batch] for batch in batches] == [ids[:2], ids[2:4], ids[4:]]


@pytest.mark.parametrize("popped", [0, 150, 700])
@pytest.mark.parametrize("pushed", [0, 900])
def test_what_moved_since_it_was_seen(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, popped: int, pushed: int
) -> None:
    """Others popped so many in front of it, and pushed behind it."""
    ids = [b"%04d" % number for number in range(1500)]
    raw.mset({keys.item(item_id): b"d" for item_id in ids})
    raw.lpush(keys.main, *ids)
    sight = ListRange(Place.MAIN, 800, 100, ids[800:900])
    raw.rpop(keys.main, popped)
    if pushed:
        foreign.waiting(*(b"new%d" % number for number in range(pushed)))
    raw.lmove(keys.main, keys.processing, "RIGHT", "LEFT")
    batches = list(read_snapshots(queue, sight, Skipped()))
    assert [p.item_id for batch in batches for p in batch] == ids[800:900]
    assert {p.place for batch in batches for p in batch} == {Place.MAIN}


def test_one_that_was_leased_since_it_was_seen(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b")
    sight = ListRange(Place.MAIN, 0, 2, [b"a", b"b"])
    raw.lmove(keys.main, keys.processing, "RIGHT", "LEFT")
    foreign.lease(b"a", ttl_ms=None)
    ((a, b),) = read_snapshots(queue, sight, Skipped())
    assert (a.place, a.state, a.lease) == (Place.PROCESSING, State.HELD, Lease(b"them", None))
    assert (b.place, b.nearer) == (Place.MAIN, End.NEXT)


def test_one_that_came_far_is_looked_for(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    """It was leased, and 600 after it: it is not among the newest of processing any more."""
    foreign.waiting(b"a")
    sight = ListRange(Place.MAIN, 0, 1, [b"a"])
    raw.lmove(keys.main, keys.processing, "RIGHT", "LEFT")
    raw.lpush(keys.processing, *(b"%d" % number for number in range(600)))
    ((a,),) = read_snapshots(queue, sight, Skipped())
    assert a.place is Place.PROCESSING
