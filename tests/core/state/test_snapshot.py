"""Snapshots of items: data, lease, place, times, all of one instant."""

from redis import Redis

from rwq_cli.core import Lease, State, WorkQueue
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.expected import Located
from rwq_cli.core.state.probe import (
    SNAPSHOT_BYTES,
    TIME_MS_MAX,
    End,
    ItemSnapshot,
    Place,
    Skipped,
    read_snapshots,
)
from tests.conftest import Foreign


def found(
    queue: WorkQueue, *ids: bytes, skipped: Skipped | None = None, places: tuple[str, ...] = ()
) -> list[ItemSnapshot]:
    """The snapshots of IDs that are somewhere, or at these places."""
    call = Located.at_places(ids, places, 0) if places else Located.by_name(ids)
    return [p for _, read in read_snapshots(queue, [call], skipped or Skipped()) for p in read]


def test_a_snapshot_of_an_item_in_each_place(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.leased(b"l", holder=b"them", ttl_ms=None)
    foreign.abandoned(b"a")
    foreign.delayed(b"d", 4_000_000_000_000)
    foreign.buried(b"b", b"no: good")
    raw.hset(keys.returns, b"b", 3)
    foreign.data(b"o")
    snapshots = found(queue, b"w1", b"w3", b"l", b"a", b"b", b"o")
    buried = Lease(b"rwq-buried:no: good", None)
    assert snapshots == [
        ItemSnapshot(b"w1", b"data of w1", State.WAITING, Place.MAIN, position=0, nearer=End.NEXT),
        ItemSnapshot(b"w3", b"data of w3", State.WAITING, Place.MAIN, position=2, nearer=End.LAST),
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


def test_the_lease_that_counts_is_the_effective_one(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"settling")
    foreign.lease(b"settling", holder=b"rwq-settling:kicked")
    foreign.abandoned(b"both")
    foreign.lease(b"both", holder=b"rwq-delayed:5", generations="new")
    foreign.lease(b"both", holder=b"worker", ttl_ms=None, generations="old")
    assert [p.lease for p in found(queue, b"settling", b"both")] == [None, Lease(b"worker", None)]


def test_ids_without_an_item_are_skipped(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    foreign.leased(b"a", b"list", b"old list", holder=b"", ttl_ms=None)
    raw.hset(keys.item(b"hash"), "x", "y")
    odd = [keys.lease(b"list"), keys.old_lease(b"old list")]
    for key in odd:
        raw.delete(key)
        raw.lpush(key, "x")
    skipped = Skipped()
    (a,) = found(queue, b"gone", b"hash", b"a", b"list", b"old list", skipped=skipped)
    assert (a.item_id, a.lease) == (b"a", Lease(b"", None))
    wrong = [b"hash", b"list", b"old list"]
    assert skipped == Skipped([b"gone"], wrong, [keys.item(b"hash"), *odd])


def test_a_waiting_item_has_no_time(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    """Restored, it would be in both."""
    foreign.waiting(b"a")
    raw.zadd(keys.delayed, {b"a": 4_000_000_000_000})
    raw.zadd(keys.buried, {b"a": 1})
    (a,) = found(queue, b"a")
    assert (a.place, a.state, a.due_ms, a.buried_ms) == (Place.MAIN, State.WAITING, None, None)


def test_any_score_is_a_time_that_a_file_can_hold(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.data(b"a")
    for score, time_ms in {
        "inf": TIME_MS_MAX,
        "-inf": -TIME_MS_MAX,
        "1e300": TIME_MS_MAX,
        "5.25": 5.25,
        "7": 7,
    }.items():
        raw.delete("jobs:delayed", "jobs:buried")
        raw.execute_command("ZADD", "jobs:delayed", score, "a")
        assert [(p.due_ms, p.buried_ms) for p in found(queue, b"a")] == [(time_ms, None)]
        raw.rename("jobs:delayed", "jobs:buried")
        assert [(p.due_ms, p.buried_ms) for p in found(queue, b"a")] == [(None, time_ms)]


def test_a_reply_is_bounded_by_bytes(queue: WorkQueue, keys: QueueKeys, raw: Redis) -> None:
    ids = [b"%d" % number for number in range(5)]
    raw.mset({keys.item(item_id): b"x" * (SNAPSHOT_BYTES // 2) for item_id in ids})
    batches = list(read_snapshots(queue, [Located.by_name(ids)], Skipped()))
    assert [[p.item_id for p in batch] for _, batch in batches] == [ids[:2], ids[2:4], ids[4:]]


def test_ids_that_are_not_where_they_were_seen(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"leased since", b"b")
    foreign.data(b"pushed since")
    raw.lmove(keys.main, keys.processing, "RIGHT", "LEFT")
    raw.lpush(keys.main, b"pushed since")
    skipped = Skipped()
    (b,) = found(queue, b"leased since", b"b", skipped=skipped, places=("m1", "m0"))
    assert (b.item_id, b.place) == (b"b", Place.MAIN)
    assert found(queue, b"pushed since", skipped=skipped, places=("",)) == []
    assert skipped.elsewhere == [b"leased since", b"pushed since"]
