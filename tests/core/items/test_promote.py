"""Promotion: what is due goes onto main, once, in the order of the due times."""

from itertools import count

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.schedule import promote as promote_items
from rwq_cli.core.items.waiting import WaitCondition
from rwq_cli.core.keys import SETTLING_GUARD, QueueKeys
from tests.conftest import (
    QUEUE,
    AsUser,
    Backend,
    FakeClock,
    Foreign,
    Interleaved,
    contents,
    settling,
)

FAR_MS = 9_999_999_999_999


def promoted(queue: WorkQueue) -> list[tuple[bytes, str]]:
    return [
        (outcome.item_id, outcome.status) for batch in promote_items(queue) for outcome in batch
    ]


def due(foreign: Foreign, *ids: bytes) -> None:
    """Delayed items whose time has come, one millisecond after another, each behind its guard."""
    for at, item_id in enumerate(ids):
        foreign.delayed(item_id, 1000 + at)


def both(keys: QueueKeys, item_id: bytes) -> tuple[bytes, bytes]:
    return keys.lease(item_id), keys.old_lease(item_id)


def unguard(raw: Redis, keys: QueueKeys, item_id: bytes, left: tuple[str, ...] = ()) -> None:
    """Delete the guard, but for these lease names."""
    if "new" not in left:
        raw.delete(keys.lease(item_id))
    if "old" not in left:
        raw.delete(keys.old_lease(item_id))


class TestPromote:
    def test_items_are_promoted_in_the_order_of_their_due_times(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w")
        due(foreign, b"c", b"a", b"b")
        foreign.delayed(b"later", FAR_MS)
        assert promoted(queue) == [(item_id, "promoted") for item_id in (b"c", b"a", b"b")]
        assert raw.lrange(keys.main, 0, -1) == [b"b", b"a", b"c", b"w"]
        assert raw.zrange(keys.delayed, 0, -1) == [b"later"]
        assert settling(raw) == {"promoted": [b"a", b"b", b"c"]}
        assert raw.get(keys.lease(b"later")) == raw.get(keys.old_lease(b"later")) == b"rwq-delayed:"
        assert promoted(queue) == []

    def test_an_item_leased_by_a_worker_stays_leased(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        """A cleaner of another language had returned it before we came."""
        due(foreign, b"a")
        foreign.leased(b"a", generations="new", holder=b"worker")
        assert promoted(queue) == [(b"a", "pruned")]
        assert raw.exists(keys.delayed, keys.main) == 0
        assert raw.get(keys.lease(b"a")) == b"worker"

    def test_a_buried_one_stays_buried(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        foreign.buried(b"a")
        assert promoted(queue) == [(b"a", "pruned")]
        assert raw.exists(keys.delayed, keys.main) == 0
        assert raw.zrange(keys.buried, 0, -1) == [b"a"]
        assert queue.state(b"a") == "buried"
        assert raw.mget(both(keys, b"a")) == [b"rwq-buried:broken"] * 2


# Few are looked for by name; many in pages, and in batches if they are in no list.
few_or_many = pytest.mark.parametrize("others", [0, 40], ids=["few", "many"])


@few_or_many
class TestWithoutAFullGuard:
    """A guard that has ended, or is under one name alone: another may have pushed the item."""

    def arrange(
        self, foreign: Foreign, others: int, left: tuple[str, ...] = ()
    ) -> list[tuple[bytes, str]]:
        rest = [b"other %d" % number for number in range(others)]
        due(foreign, b"a", *rest)
        for item_id in (b"a", *rest):
            unguard(foreign.raw, foreign.keys, item_id, left)
        return [(item_id, "promoted") for item_id in rest]

    @pytest.mark.parametrize("left", [(), ("new",), ("old",)])
    @pytest.mark.parametrize("list_name", [b"jobs:queue", b"jobs:processing"])
    def test_in_a_list_already(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        others: int,
        left: tuple[str, ...],
        list_name: bytes,
    ) -> None:
        rest = self.arrange(foreign, others, left)
        raw.lpush(list_name, b"a")
        assert sorted(promoted(queue)) == sorted([(b"a", "pruned"), *rest])
        assert raw.lrange(list_name, 0, -1).count(b"a") == 1
        assert raw.exists(b"jobs:delayed") == 0
        assert not any(b":lease" in key for key in contents(raw))

    def test_a_worker_leases_it_between_any_two_calls(
        self, backend: Backend, keys: QueueKeys, raw: Redis, foreign: Foreign, others: int
    ) -> None:
        """A cleaner of 0.1 returned it, and a worker of 0.1 pops it."""
        for number in count(1):
            raw.flushall()
            self.arrange(foreign, others)
            connection = Interleaved(backend.connect())

            def act(_: str, connection: Interleaved = connection, number: int = number) -> None:
                if len(connection.calls) == number:
                    raw.lrem(keys.main, 0, b"a")
                    raw.lpush(keys.processing, b"a")
                    foreign.lease(b"a", holder=b"worker", generations="old")

            connection.before = act
            promoted(WorkQueue(connection, QUEUE))
            if len(connection.calls) < number:
                break
            assert raw.get(keys.old_lease(b"a")) == b"worker"
            assert (raw.get(keys.lease(b"a")) or SETTLING_GUARD).startswith(SETTLING_GUARD)
            assert raw.lrange(keys.processing, 0, -1) == [b"a"]
            assert b"a" not in raw.lrange(keys.main, 0, -1)
        assert number > 3


class TestLeasePromotes:
    def test_due_items_are_queued_behind_waiting_ones(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"d1", b"d2")
        foreign.waiting(b"w")
        foreign.delayed(b"later", FAR_MS)
        assert [item.item_id for item in queue.lease_many(2)] == [b"w", b"d1"]
        assert settling(raw) == {"promoted": [b"d2"]}
        assert [item.item_id for item in queue.lease_many(9)] == [b"d2"]

    def test_all_that_is_due_is_leased_if_it_is_wanted(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        """Behind entries that mean nothing any more, and more than one call looks at."""
        ids = [b"%03d" % number for number in range(600)]
        due(foreign, *ids)
        raw.delete(*map(keys.item, ids[:250]))
        assert [item.item_id for item in queue.lease_many(1000)] == ids[250:]
        assert raw.exists(keys.delayed, keys.main) == 0

    @pytest.mark.parametrize("is_guarded", [True, False])
    def test_if_the_lists_are_very_long(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign, is_guarded: bool
    ) -> None:
        raw.eval(
            "for _ = 1, 130 do redis.call('RPUSH', KEYS[1], unpack(ARGV)) end",
            *(1, keys.processing, *(b"other" for _ in range(5000))),
        )
        due(foreign, b"a", b"b")
        if not is_guarded:
            for item_id in (b"a", b"b"):
                unguard(raw, keys, item_id, ())
        raw.config_resetstat()
        assert [item.item_id for item in queue.lease_many(2)] == [b"a", b"b"]
        if is_guarded:
            assert "cmdstat_lpos" not in raw.info("commandstats")

    @pytest.mark.parametrize("why", ["data of the wrong type", "held by a session"])
    def test_entries_that_stay_do_not_hold_up_those_behind_them(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, why: str
    ) -> None:
        for number in range(250):
            item_id = b"%03d" % number
            foreign.delayed(item_id, 1000 + number)
            if why == "held by a session":
                raw.mset(dict.fromkeys(both(keys, item_id), b"session"))
            else:
                raw.delete(keys.item(item_id))
                raw.lpush(keys.item(item_id), b"another queue's")
        foreign.delayed(b"due", 5000)
        item = queue.lease()
        assert item is not None
        assert item.item_id == b"due"
        assert raw.zcard(keys.delayed) == 250


class TestWaitPromotes:
    def test_until_an_item_is_gone(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        due(foreign, b"a")

        def work() -> None:
            if raw.rpop(keys.main) == b"a":
                raw.delete(keys.item(b"a"))

        clock.during_sleep = work
        assert queue.wait(WaitCondition(ids=(b"a",)), timeout_s=5).reached

    def test_a_user_who_may_not_write_waits_all_the_same(
        self, as_user: AsUser, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        limited = as_user("+@read", "+eval", "+evalsha", "+multi", "+exec", "+time")
        due(foreign, b"a")
        waited = WorkQueue(limited, QUEUE).wait(timeout_s=0)
        assert not waited.reached
        assert raw.exists(keys.delayed) == 1
