"""Leasing items by their IDs: where they waited no trace is left, and who has one keeps it."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import Item, Lease, State, WorkQueue
from rwq_cli.core.items.lease import LeaseAttempt, lease_ids
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, Foreign, contents, lasts, work_of

FAR_MS = 9_999_999_999_999
MINE = Lease(b"me", 60_000)


def leased(item_id: bytes) -> LeaseAttempt:
    data = b"data of " + item_id
    size = len(data)
    return LeaseAttempt(Item(QUEUE, item_id, State.LEASED, size, data, data, lease=MINE), True)


def left(item_id: bytes, state: State, lease: Lease | None = None) -> LeaseAttempt:
    return LeaseAttempt(Item(QUEUE, item_id, state, lease=lease), False)


def leased_alone(raw: Redis, item_id: bytes) -> None:
    """It is under our lease, and nowhere else."""
    assert contents(raw) == {
        b"jobs:processing": [item_id],
        b"jobs:item:" + item_id: b"data of " + item_id,
        b"jobs:lease:" + item_id: ("expires", b"me"),
        b"jobs:leased_by_session:" + item_id: ("expires", b"me"),
    }
    assert lasts(raw, 60, b"jobs:lease:" + item_id, b"jobs:leased_by_session:" + item_id)


def unguard(foreign: Foreign, *generations: str) -> None:
    for name in generations:
        foreign.raw.delete(getattr(foreign.keys, name)(b"a"))


def between(foreign: Foreign) -> None:
    """A cleaner of another language took the end of the guard for that of a lease."""
    foreign.delayed(b"a", 1)
    unguard(foreign, "lease")
    foreign.raw.lpush(foreign.keys.main, b"a")


WAITING: dict[str, Callable[[Foreign], object]] = {
    "waiting": lambda there: there.waiting(b"a"),
    "waiting twice": lambda there: (there.waiting(b"a"), there.waiting(b"a")),
    "waiting, with an old lease": lambda there: (there.waiting(b"a"), there.lease(b"a")),
    "waiting and abandoned": lambda there: (there.waiting(b"a"), there.abandoned(b"a", b"a")),
    "delayed": lambda there: there.delayed(b"a", FAR_MS),
    "due": lambda there: there.delayed(b"a", 1),
    "due, without its guard": lambda there: (
        there.delayed(b"a", 1),
        unguard(there, "lease", "old_lease"),
    ),
    "delayed, with half of its guard": lambda there: (
        there.delayed(b"a", FAR_MS),
        unguard(there, "old_lease"),
    ),
    "returned by a cleaner": between,
    "buried": lambda there: there.buried(b"a"),
    "buried, without its guard": lambda there: (
        there.buried(b"a"),
        unguard(there, "lease", "old_lease"),
    ),
    "buried, with an entry left in processing": lambda there: (
        there.buried(b"a"),
        there.raw.lpush(there.keys.processing, b"a"),
    ),
    "buried, waiting all the same": lambda there: (
        there.buried(b"a"),
        unguard(there, "old_lease"),
        there.waiting(b"a"),
    ),
}


@pytest.mark.parametrize("case", WAITING)
def test_an_item_is_leased_wherever_it_waits(
    queue: WorkQueue, raw: Redis, foreign: Foreign, case: str
) -> None:
    WAITING[case](foreign)
    assert list(lease_ids(queue, [b"a"], lease_s=60)) == [leased(b"a")]
    leased_alone(raw, b"a")


THEIRS = Lease(b"them", 60_000)
LEFT: dict[str, tuple[Callable[[Foreign], object], State, Lease | None]] = {
    "leased": (lambda there: there.leased(b"a"), State.LEASED, THEIRS),
    "leased by an old worker": (
        lambda there: there.leased(b"a", generations="old"),
        State.LEASED,
        THEIRS,
    ),
    "leased by a new worker": (
        lambda there: there.leased(b"a", generations="new"),
        State.LEASED,
        THEIRS,
    ),
    "leased by two": (
        lambda there: (
            there.leased(b"a", generations="old"),
            there.lease(b"a", holder=b"other", ttl_ms=1000, generations="new"),
        ),
        State.LEASED,
        THEIRS,
    ),
    "leased, and held by another": (
        lambda there: (
            there.leased(b"a", holder=b"other", generations="new"),
            there.lease(b"a", ttl_ms=None, generations="old"),
        ),
        State.HELD,
        Lease(b"them", None),
    ),
    "leased and waiting": (
        lambda there: (there.leased(b"a"), there.waiting(b"a")),
        State.LEASED,
        THEIRS,
    ),
    "leased, beside half a guard": (
        lambda there: (
            there.delayed(b"a", FAR_MS),
            there.leased(b"a", generations="old"),
        ),
        State.LEASED,
        THEIRS,
    ),
    "held": (lambda there: there.leased(b"a", ttl_ms=None), State.HELD, Lease(b"them", None)),
    "in no list, leased": (
        lambda there: (there.data(b"a"), there.lease(b"a")),
        State.UNLISTED,
        THEIRS,
    ),
    "in no list, held": (
        lambda there: (there.data(b"a"), there.lease(b"a", ttl_ms=None)),
        State.HELD,
        Lease(b"them", None),
    ),
    "in no list, with a guard alone": (
        lambda there: (there.data(b"a"), there.lease(b"a", holder=b"rwq-delayed:1")),
        State.ORPHANED,
        None,
    ),
    "abandoned": (lambda there: there.abandoned(b"a"), State.ABANDONED, None),
    "abandoned twice": (lambda there: there.abandoned(b"a", b"a"), State.ABANDONED, None),
    "abandoned, once delayed": (
        lambda there: (
            there.delayed(b"a", 1),
            unguard(there, "lease", "old_lease"),
            there.abandoned(b"a"),
        ),
        State.ABANDONED,
        None,
    ),
    "abandoned, with half a guard": (
        lambda there: (
            there.buried(b"a"),
            unguard(there, "old_lease"),
            there.abandoned(b"a"),
        ),
        State.ABANDONED,
        None,
    ),
    "orphaned": (lambda there: there.data(b"a"), State.ORPHANED, None),
    "in an old cleaner's hand": (
        lambda there: (there.data(b"a"), there.raw.lpush(there.keys.cleaning, b"a")),
        State.ORPHANED,
        None,
    ),
    "gone": (lambda _: None, State.GONE, None),
    "a ghost": (lambda there: there.raw.lpush(there.keys.main, b"a"), State.GONE, None),
    "a ghost with a lease": (
        lambda there: (there.raw.lpush(there.keys.processing, b"a"), there.lease(b"a")),
        State.GONE,
        None,
    ),
}


def rounded(attempt: LeaseAttempt) -> LeaseAttempt:
    """With its time left as it was when it was set."""
    lease = attempt.item.lease
    if lease is None or lease.ttl_ms is None or not 0 < lease.ttl_ms <= 60_000:
        return attempt
    whole = -(-lease.ttl_ms // 5000) * 5000
    return left(attempt.item.item_id, attempt.item.state, Lease(lease.holder, whole))


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("case", LEFT)
def test_items_that_do_not_wait_are_left_unchanged(
    queue: WorkQueue, raw: Redis, foreign: Foreign, case: str, dry_run: bool
) -> None:
    arrange, state, lease = LEFT[case]
    arrange(foreign)
    before = contents(raw)
    (attempt,) = lease_ids(queue, [b"a"], dry_run=dry_run)
    assert rounded(attempt) == left(b"a", state, lease)
    assert contents(raw) == before


def test_only_its_own_entries_go(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2", b"3")
    foreign.abandoned(b"old")
    foreign.buried(b"other")
    raw.hset(b"jobs:returns", b"2", 3)
    (attempt,) = lease_ids(queue, [b"2"], lease_s=60)
    assert attempt == LeaseAttempt(leased(b"2").item._replace(returns=3), True)
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"3", b"1"]
    assert raw.lrange(b"jobs:processing", 0, -1) == [b"2", b"old"]
    assert raw.zrange(b"jobs:buried", 0, -1) == [b"other"]
    # It is still to be buried should it come back once too often.
    assert raw.hget(b"jobs:returns", b"2") == b"3"


def test_several_in_the_order_given_each_once(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2", b"\xff\x00")
    foreign.abandoned(b"gone wrong")
    attempts = lease_ids(queue, [b"\xff\x00", b"gone wrong", b"1", b"\xff\x00"], lease_s=60)
    assert list(attempts) == [
        leased(b"\xff\x00"),
        left(b"gone wrong", State.ABANDONED),
        leased(b"1"),
    ]
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"2"]


def test_a_lease_from_a_long_queue_searches_each_list_once(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
) -> None:
    """Once over each list, also behind a guard: a producer may have added it anew."""
    for first in range(0, 1_000_000, 100_000):
        raw.lpush(keys.main, *range(first, first + 100_000))
    foreign.waiting(b"a")
    foreign.buried(b"b")
    for item_id in (b"a", b"b"):
        before = work_of(raw).searches
        attempts = list(lease_ids(queue, [item_id]))
        assert [each.is_leased for each in attempts] == [True]
        # At most two looks, and two removals.
        assert work_of(raw).searches - before <= 4
