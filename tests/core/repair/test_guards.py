"""Delayed and buried items without a whole guard are guarded by a deep clean."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.repairs import LOST_REASON
from rwq_cli.core.keys import QueueKeys
from tests.conftest import FakeClock, Foreign

FAR_MS = 10**13


def both(keys: QueueKeys, item_id: bytes) -> tuple[bytes, bytes]:
    return keys.lease(item_id), keys.old_lease(item_id)


def test_a_guard_is_restored_under_both_names(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    for part in (b"whole", b"new", b"old", b"none", b"session"):
        foreign.delayed(b"d " + part, FAR_MS)
        foreign.buried(b"b " + part)
    for kind in (b"d ", b"b "):
        raw.delete(keys.old_lease(kind + b"new"), keys.lease(kind + b"old"))
        raw.delete(*both(keys, kind + b"none"))
        foreign.lease(kind + b"session", generations="old")
    entries = (raw.zrange(keys.delayed, 0, -1), raw.zrange(keys.buried, 0, -1))
    untouched = [*both(keys, b"d whole"), *both(keys, b"b whole"), keys.old_lease(b"b session")]
    before = raw.mget(untouched)
    assert list(queue.deep_clean(grace_s=0, dry_run=True)) == []
    assert raw.get(keys.lease(b"d old")) is None
    assert list(queue.deep_clean(grace_s=0)) == []
    for item_id in (b"d new", b"d old", b"d none"):
        guards = raw.mget(both(keys, item_id))
        assert all(value.startswith(b"rwq-delayed:") for value in guards)
        assert min(raw.pttl(name) for name in both(keys, item_id)) > 60_000
    for item_id, reason in ((b"b new", b"broken"), (b"b old", b"broken"), (b"b none", LOST_REASON)):
        assert raw.mget(both(keys, item_id)) == [b"rwq-buried:" + reason] * 2
        assert [raw.pttl(name) for name in both(keys, item_id)] == [-1, -1]
    assert (raw.zrange(keys.delayed, 0, -1), raw.zrange(keys.buried, 0, -1)) == entries
    assert raw.mget(untouched) == before
    # The lease of a worker that set it only when a clean had buried the item ends.
    raw.delete(keys.old_lease(b"b session"))
    list(queue.deep_clean(grace_s=0))
    assert raw.get(keys.old_lease(b"b session")) == b"rwq-buried:broken"


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
