"""Promotion: what is due goes onto main, once, in the order of the due times."""

from time import time

import pytest
from redis import Redis
from rwq_cli.core.items.promote import Promoted, promote

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import ConnectionLost, PermissionDenied
from rwq_cli.core.items.waiting import WaitCondition
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.queue import FOREVER
from rwq_cli.core.server.push_waiter import PushWaiter
from tests.conftest import QUEUE, AsUser, FakeClock, Foreign, Interleaved, contents

FAR_MS = 9_999_999_999_999


def promoted(queue: WorkQueue) -> list[Promoted]:
    return list(promote(queue))


def due(foreign: Foreign, *ids: bytes) -> None:
    """Delayed items whose time has come, one millisecond after another, each behind its guard."""
    for at, item_id in enumerate(ids):
        foreign.delayed(item_id, 1000 + at)


class TestPromote:
    def test_in_the_order_of_the_due_times(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w")
        due(foreign, b"c", b"a", b"b")
        foreign.delayed(b"later", FAR_MS)
        assert promoted(queue) == [Promoted([b"c", b"a", b"b"], [])]
        assert raw.lrange(keys.main, 0, -1) == [b"b", b"a", b"c", b"w"]
        assert raw.zrange(keys.delayed, 0, -1) == [b"later"]
        assert raw.exists(*(key for i in (b"a", b"b", b"c") for key in both(keys, i))) == 0
        assert raw.exists(*both(keys, b"later")) == 2
        assert promoted(queue) == []

    def test_equal_times_keep_their_fractions(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.delayed(b"a", 5)
        foreign.delayed(b"z", 5)
        raw.zadd(keys.delayed, {b"a": 5.002, b"z": 5.001})
        assert promoted(queue) == [Promoted([b"z", b"a"], [])]

    def test_more_than_one_page(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        ids = [b"%04d" % number for number in range(600)]
        for at, item_id in enumerate(ids):
            if at % 3 == 0:
                # In another's hands: passed over and left alone.
                foreign.delayed(item_id, at + 1)
                foreign.lease(item_id, holder=b"rwq-clean:x")
            else:
                foreign.delayed(item_id, at + 1)
        found = [item_id for call in promote(queue) for item_id in call.ids]
        left = ids[::3]
        assert found == [item_id for item_id in ids if item_id not in left]
        assert raw.lrange(keys.main, 0, -1)[::-1] == found
        assert raw.zrange(keys.delayed, 0, -1) == left

    def test_a_ghost_leaves_no_trace(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"gone", b"a")
        raw.delete(keys.item(b"gone"))
        assert promoted(queue) == [Promoted([b"a"], [b"gone"])]
        assert raw.lrange(keys.main, 0, -1) == [b"a"]
        assert raw.exists(keys.delayed, *both(keys, b"gone")) == 0

    def test_what_somebody_works_on_is_theirs(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        """Returned by a cleaner of another language, and leased, before we came."""
        due(foreign, b"a")
        foreign.leased(b"a", generations="new", holder=b"worker")
        assert promoted(queue) == [Promoted([], [b"a"])]
        assert raw.exists(keys.delayed, keys.main) == 0
        assert raw.get(keys.lease(b"a")) == b"worker"

    def test_a_buried_one_stays_buried(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        foreign.buried(b"a")
        assert promoted(queue) == [Promoted([], [b"a"])]
        assert raw.exists(keys.delayed, keys.main) == 0
        assert raw.zrange(keys.buried, 0, -1) == [b"a"]

    def test_data_of_another_type_stay_where_they_are(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a", b"b")
        raw.delete(keys.item(b"a"))
        raw.hset(keys.item(b"a"), "x", "y")
        assert promoted(queue) == [Promoted([b"b"], [])]
        assert raw.zrange(keys.delayed, 0, -1) == [b"a"]

    @pytest.mark.real_only("the fake has no ACL")
    def test_nothing_is_written_where_a_command_is_denied(
        self,
        as_user: AsUser,
        raw: Redis,
        foreign: Foreign,
    ) -> None:
        limited = as_user("+@all", "-zrem")
        due(foreign, b"a")
        before = contents(raw)
        with pytest.raises(PermissionDenied):
            promoted(WorkQueue(limited, QUEUE))
        assert contents(raw) == before


def both(keys: QueueKeys, item_id: bytes) -> tuple[bytes, bytes]:
    return keys.lease(item_id), keys.old_lease(item_id)


class TestWithoutProof:
    """A guard that has ended, or is of one generation alone: another may have pushed the item."""

    @pytest.mark.parametrize("left", [(), ("new",), ("old",)])
    def test_in_no_list(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, left: tuple[str, ...]
    ) -> None:
        due(foreign, b"a", b"b")
        unguard(raw, keys, b"a", left)
        assert promoted(queue) == [Promoted([b"b"], []), Promoted([b"a"], [])]
        assert raw.lrange(keys.main, 0, -1) == [b"a", b"b"]
        assert raw.exists(keys.delayed, *both(keys, b"a")) == 0

    @pytest.mark.parametrize("left", [(), ("new",), ("old",)])
    def test_in_main_already(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, left: tuple[str, ...]
    ) -> None:
        due(foreign, b"a")
        unguard(raw, keys, b"a", left)
        raw.lpush(keys.main, b"a")
        assert promoted(queue) == [Promoted([], [b"a"])]
        assert raw.lrange(keys.main, 0, -1) == [b"a"]
        assert raw.exists(keys.delayed, *both(keys, b"a")) == 0

    def test_a_worker_leases_it_meanwhile(
        self, interleaved: Interleaved, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        unguard(raw, keys, b"a", ())
        raw.lpush(keys.main, b"a")

        def act(name: str) -> None:
            if name == "settle_scheduled":
                raw.rpoplpush(keys.main, keys.processing)
                foreign.lease(b"a", holder=b"worker", generations="old")

        interleaved.before = act
        assert promoted(WorkQueue(interleaved, QUEUE)) == [Promoted([], [b"a"])]
        assert raw.lrange(keys.processing, 0, -1) == [b"a"]
        assert raw.get(keys.old_lease(b"a")) == b"worker"
        assert raw.exists(keys.delayed, keys.main, keys.lease(b"a")) == 0

    def test_a_worker_had_leased_it(
        self, interleaved: Interleaved, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        unguard(raw, keys, b"a", ("new",))

        def act(name: str) -> None:
            if name == "claim_scheduled":
                raw.lpush(keys.processing, b"a")
                foreign.lease(b"a", holder=b"worker", generations="old")

        interleaved.before = act
        assert promoted(WorkQueue(interleaved, QUEUE)) == []
        assert raw.get(keys.old_lease(b"a")) == b"worker"
        assert raw.lrange(keys.processing, 0, -1) == [b"a"]

    def test_who_dies_with_a_claim_loses_nothing(
        self, interleaved: Interleaved, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        unguard(raw, keys, b"a", ())

        def die(name: str) -> None:
            if name == "settle_scheduled":
                raise ConnectionAbortedError

        interleaved.before = die
        with pytest.raises(ConnectionAbortedError):
            promoted(WorkQueue(interleaved, QUEUE))
        assert raw.zrange(keys.delayed, 0, -1) == [b"a"]
        assert 110_000 < raw.pttl(keys.lease(b"a")) <= 120_000
        interleaved.before = None
        # Somebody has it in hand, as far as can be told; then nobody.
        assert promoted(WorkQueue(interleaved, QUEUE)) == []
        unguard(raw, keys, b"a", ())
        assert promoted(WorkQueue(interleaved, QUEUE)) == [Promoted([b"a"], [])]

    def test_a_lease_that_nobody_can_read_is_left_alone(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        raw.delete(*both(keys, b"a"))
        raw.lpush(keys.lease(b"a"), b"x")
        before = contents(raw)
        assert promoted(queue) == []
        assert contents(raw) == before


def unguard(raw: Redis, keys: QueueKeys, item_id: bytes, left: tuple[str, ...]) -> None:
    """Delete the guard, but for these generations."""
    if "new" not in left:
        raw.delete(keys.lease(item_id))
    if "old" not in left:
        raw.delete(keys.old_lease(item_id))


class TestLeasePromotes:
    def test_what_is_due_comes_after_what_waits(self, queue: WorkQueue, foreign: Foreign) -> None:
        due(foreign, b"d1", b"d2")
        foreign.waiting(b"w")
        foreign.delayed(b"later", FAR_MS)
        assert [item.item_id for item in queue.lease_many(9)] == [b"w", b"d1", b"d2"]

    def test_all_that_is_due_not_just_what_is_taken(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        ids = [b"%03d" % number for number in range(260)]
        due(foreign, *ids)
        item = queue.lease()
        assert item is not None
        assert item.item_id == b"000"
        assert raw.lrange(keys.main, 0, -1)[::-1] == ids[1:]
        assert raw.exists(keys.delayed) == 0

    def test_without_a_guard(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        due(foreign, b"a")
        unguard(raw, keys, b"a", ())
        item = queue.lease()
        assert item is not None
        assert item.item_id == b"a"
        assert raw.exists(keys.delayed, keys.main) == 0

    def test_waiting_lasts_until_the_next_is_due(
        self, queue: WorkQueue, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        foreign.delayed(b"a", round(time() * 1000) + 900)
        waited: list[float] = []

        def wait(_: PushWaiter, seconds: float) -> None:
            waited.append(seconds)
            foreign.delayed(b"a", 1)

        monkeypatch.setattr(PushWaiter, "wait", wait)
        item = queue.lease(wait_s=FOREVER)
        assert item is not None
        assert item.item_id == b"a"
        assert len(waited) == 1
        assert 0 < waited[0] <= 0.9


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

    @pytest.mark.real_only("the fake has no ACL")
    def test_who_may_not_write_waits_all_the_same(
        self, as_user: AsUser, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        limited = as_user("+@read", "+eval", "+evalsha", "+multi", "+exec", "+time")
        due(foreign, b"a")
        waited = WorkQueue(limited, QUEUE).wait(timeout_s=0)
        assert not waited.reached
        assert raw.exists(keys.delayed) == 1


class TestWhatIsLeasedIsTold:
    """Whatever becomes of the promotion of the rest."""

    @pytest.mark.real_only("the fake has no ACL")
    def test_who_may_not_promote_all(
        self, as_user: AsUser, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        limited = as_user("+@all", "-hdel")
        foreign.waiting(b"w")
        due(foreign, b"a")
        unguard(raw, keys, b"a", ())
        items = list(WorkQueue(limited, QUEUE).lease_many(1))
        assert [item.item_id for item in items] == [b"w"]
        assert raw.zrange(keys.delayed, 0, -1) == [b"a"]

    def test_it_comes_before_the_rest_is_promoted(
        self, interleaved: Interleaved, foreign: Foreign
    ) -> None:
        due(foreign, *(b"%03d" % number for number in range(120)))
        batches = WorkQueue(interleaved, QUEUE).lease_many(1).batches
        assert next(batches).ids == [b"000"]
        assert interleaved.calls == ["lease"]
        assert list(batches) == []
        assert interleaved.calls == ["lease", "promote"]

    def test_a_lost_connection_costs_no_caller_its_item(
        self, interleaved: Interleaved, foreign: Foreign
    ) -> None:
        def lose(name: str) -> None:
            if name == "promote":
                raise ConnectionLost("gone")

        due(foreign, *(b"%03d" % number for number in range(120)))
        interleaved.before = lose
        item = WorkQueue(interleaved, QUEUE).lease()
        assert item is not None
        assert item.item_id == b"000"
