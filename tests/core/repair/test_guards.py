"""Delayed and buried items without a whole guard are guarded by a deep clean."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.repair.repairs import LOST_REASON
from tests.conftest import FakeClock, Foreign

FAR_MS = 10**13


def schedule_some(foreign: Foreign) -> None:
    """A delayed and a buried item with each part of a guard, and one that a session leased."""
    for item_id in (b"d whole", b"d new", b"d old", b"d none", b"d session"):
        foreign.delayed(item_id, FAR_MS)
    for item_id in (b"b whole", b"b new", b"b old", b"b none", b"b session", b"b gone"):
        foreign.buried(item_id)
    raw, keys = foreign.raw, foreign.keys
    for kind in (b"d ", b"b "):
        raw.delete(keys.old_lease(kind + b"new"), keys.lease(kind + b"old"))
        raw.delete(keys.lease(kind + b"none"), keys.old_lease(kind + b"none"))
        foreign.lease(kind + b"session", generations="old")
    raw.delete(keys.item(b"b gone"), keys.lease(b"b gone"))


def test_a_guard_is_restored_under_both_names(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    schedule_some(foreign)
    entries = (raw.zrange(keys.delayed, 0, -1), raw.zrange(keys.buried, 0, -1))
    names = (keys.lease(b"d whole"), keys.old_lease(b"b session"))
    before = [raw.get(name) for name in names]

    (ghost,) = queue.deep_clean(grace_s=0)
    assert (ghost.item_id, str(ghost.action)) == (b"b gone", "pruned")
    entries[1].remove(b"b gone")

    for item_id in (b"d new", b"d old", b"d none"):
        both = (keys.lease(item_id), keys.old_lease(item_id))
        assert all(value.startswith(b"rwq-delayed:") for value in raw.mget(both))
        assert min(raw.pttl(name) for name in both) > 60_000
    for item_id, reason in ((b"b new", b"broken"), (b"b old", b"broken"), (b"b none", LOST_REASON)):
        both = (keys.lease(item_id), keys.old_lease(item_id))
        assert raw.mget(both) == [b"rwq-buried:" + reason] * 2
        assert [raw.pttl(name) for name in both] == [-1, -1]
    assert (raw.zrange(keys.delayed, 0, -1), raw.zrange(keys.buried, 0, -1)) == entries
    assert [raw.get(name) for name in names] == before


@pytest.mark.parametrize("seen", ["popped", "leased"])
def test_an_item_that_was_popped_in_the_grace_period_gets_no_guard(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, clock: FakeClock, seen: str
) -> None:
    foreign.buried(b"a")
    raw.delete(keys.old_lease(b"a"))

    def pop() -> None:
        raw.lpush(keys.processing, b"a")
        if seen == "leased":
            foreign.lease(b"a", generations="old")

    clock.during_sleep = pop
    list(queue.deep_clean())
    assert raw.get(keys.old_lease(b"a")) == (b"them" if seen == "leased" else None)
    assert raw.lrange(keys.processing, 0, -1) == [b"a"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_guard_is_restored_when_the_lease_of_a_late_worker_has_ended(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, dry_run: bool
) -> None:
    """It had popped the item, and set its lease only when a clean had buried it already."""
    foreign.buried(b"a", b"returned 3 times")
    foreign.lease(b"a", holder=b"session", generations="old")
    assert list(queue.deep_clean(grace_s=0, dry_run=dry_run)) == []
    assert raw.get(keys.old_lease(b"a")) == b"session"
    raw.delete(keys.old_lease(b"a"))
    assert list(queue.deep_clean(grace_s=0, dry_run=dry_run)) == []
    assert raw.get(keys.old_lease(b"a")) == (None if dry_run else b"rwq-buried:returned 3 times")
