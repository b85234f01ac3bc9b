"""Releasing, burying, delaying, kicking and promotion: order, guards, and never listed twice."""

import random
from collections.abc import Iterable
from itertools import count as count_from, product

import pytest
from redis import Redis

from rwq_cli.core import Connection, Outcome, Status, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.results import WaitCondition
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.keys import SETTLING_GUARD, QueueKeys
from tests.conftest import (
    HOLDER,
    QUEUE,
    AsUser,
    Backend,
    FakeClock,
    Foreign,
    Interleaved,
    contents,
    settling,
)
from tests.support import many, numbered

FAR_MS = 9_999_999_999_999
# Few are looked for by name; many in pages.
few_or_many = pytest.mark.parametrize("count", [3, 700])


def by_status(outcomes: Iterable[Outcome]) -> dict[Status, list[bytes]]:
    found: dict[Status, list[bytes]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.status, []).append(outcome.item_id)
    return found


def due(foreign: Foreign, *ids: bytes) -> None:
    """Delayed items whose time has come, one millisecond after another, each behind its guard."""
    for at, item_id in enumerate(ids):
        foreign.delayed(item_id, 1000 + at)


def promoted(queue: WorkQueue) -> list[tuple[bytes, str]]:
    return [(outcome.item_id, outcome.status) for batch in promote(queue) for outcome in batch]


def both(item_id: bytes) -> tuple[bytes, bytes]:
    return b"jobs:lease:" + item_id, b"jobs:leased_by_session:" + item_id


def unguard(raw: Redis, item_id: bytes, left: str = "") -> None:
    """Delete the guard, but for this generation."""
    for generation, key in zip(("new", "old"), both(item_id), strict=True):
        if generation != left:
            raw.delete(key)


class TestRelease:
    @pytest.mark.parametrize("count", [3, 60])
    @pytest.mark.parametrize("front", [False, True])
    def test_items_come_back_in_the_given_order(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int, front: bool
    ) -> None:
        foreign.waiting(b"first", b"last")
        ids = numbered(count)
        foreign.leased(*ids, holder=HOLDER)
        random.Random(0).shuffle(ids)
        released = by_status(queue.release_many(ids, front=front))[Status.RELEASED]
        assert sorted(released) == sorted(ids)
        waiting = [*ids, b"first", b"last"] if front else [b"first", b"last", *ids]
        assert raw.lrange(b"jobs:queue", 0, -1)[::-1] == waiting
        assert raw.exists(b"jobs:processing") == 0
        assert settling(raw) == {"released": sorted(ids)}

    def test_a_waiting_item_stays_in_its_place_unless_moved_to_the_front(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2", b"3")
        assert by_status(queue.release_many([b"2"])) == {Status.ALREADY_WAITING: [b"2"]}
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"3", b"2", b"1"]
        assert by_status(queue.release_many([b"2"], front=True)) == {Status.RELEASED: [b"2"]}
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"3", b"1", b"2"]

    def test_a_delay_and_the_front_are_refused_together(self, queue: WorkQueue) -> None:
        with pytest.raises(InvalidArgument):
            queue.release_many([b"a"], delay_s=1, front=True)


class TestBury:
    @few_or_many
    def test_a_buried_item_has_its_reason_in_a_guard_that_does_not_end(
        self, queue: WorkQueue, raw: Redis, count: int
    ) -> None:
        """And its time; another reason replaces the first one."""
        ids = many(raw, count)
        began_ms = queue.now_ms()
        assert by_status(queue.bury_many(ids, reason=b"why")) == {Status.BURIED: ids}
        # In the order in which they were buried.
        entries = raw.zrange(b"jobs:buried", 0, -1, withscores=True)
        assert [item_id for item_id, _ in entries] == ids
        assert began_ms <= entries[0][1] <= entries[-1][1] < queue.now_ms() + 1
        assert raw.exists(b"jobs:queue") == 0
        for reason in (None, b"new"):
            outcomes = by_status(queue.bury_many(ids, reason=reason))
            assert outcomes == {Status.ALREADY_BURIED: ids}
            guards = [key for item_id in ids for key in both(item_id)]
            assert {*raw.mget(guards)} == {b"rwq-buried:" + (reason or b"why")}
            assert {raw.pttl(key) for key in guards} == {-1}
            assert raw.zrange(b"jobs:buried", 0, -1, withscores=True) == entries

    @pytest.mark.parametrize(("left", "reason"), [("", b"by hand"), ("new", b"x"), ("old", b"x")])
    def test_a_guard_that_was_lost_comes_back(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, left: str, reason: bytes
    ) -> None:
        foreign.buried(b"a", b"x")
        unguard(raw, b"a", left)
        assert by_status(queue.bury_many([b"a"])) == {Status.ALREADY_BURIED: [b"a"]}
        assert raw.mget(both(b"a")) == [b"rwq-buried:" + reason] * 2


@few_or_many
def test_a_delayed_item_has_a_guard_that_outlives_its_due_time(
    queue: WorkQueue, raw: Redis, count: int
) -> None:
    ids = many(raw, count)
    before_ms = queue.now_ms()
    assert by_status(queue.release_many(ids, delay_s=600)) == {Status.DELAYED: ids}
    after_ms = queue.now_ms()
    entries = raw.zrange(b"jobs:delayed", 0, -1, withscores=True)
    assert [item_id for item_id, _ in entries] == ids
    for item_id, due_ms in entries:
        assert before_ms - 1 <= due_ms - 600_000 <= after_ms + 2
        assert raw.mget(both(item_id)) == [b"rwq-delayed:%d" % int(due_ms)] * 2
        for key in both(item_id):
            assert abs(queue.now_ms() + raw.pttl(key) - due_ms - 60_000) < 1000
    assert raw.exists(b"jobs:queue", b"jobs:processing") == 0


class TestKick:
    @few_or_many
    def test_items_are_kicked_in_the_given_order_and_counted_anew(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
    ) -> None:
        foreign.waiting(b"w")
        ids = numbered(count)
        for item_id in (*ids, b"other"):
            foreign.buried(item_id)
        raw.hset(b"jobs:returns", mapping={ids[0]: 7, b"other": 7})
        assert by_status(queue.kick_many(ids[::-1])) == {Status.KICKED: ids[::-1]}
        assert raw.lrange(b"jobs:queue", 0, -1) == [*ids, b"w"]
        assert settling(raw) == {"kicked": ids}
        assert raw.zrange(b"jobs:buried", 0, -1) == [b"other"]
        assert raw.hgetall(b"jobs:returns") == {b"other": b"7"}

    def test_two_concurrent_calls_push_it_once(
        self, interleaved: Interleaved, connection: Connection, raw: Redis
    ) -> None:
        ids = numbered(2000)
        pipe = raw.pipeline()
        for item_id in ids:
            Foreign(pipe).buried(item_id)
        pipe.execute()
        for item_id in ids[::2]:
            unguard(raw, item_id)
        other = WorkQueue(connection, QUEUE)
        by_other: list[bytes] = []

        def meanwhile(name: str) -> None:
            if len(by_other) < 300 and name == "push_scheduled":
                chosen = random.Random(len(by_other)).sample(ids, 50)
                by_other.extend(by_status(other.kick_many(chosen)).get(Status.KICKED, []))

        interleaved.before = meanwhile
        by_us = by_status(WorkQueue(interleaved, QUEUE).kick_many(ids))[Status.KICKED]
        assert len(by_other) > 50
        assert sorted([*by_us, *by_other]) == ids
        assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == ids
        assert raw.exists(b"jobs:buried") == 0


@pytest.mark.parametrize("kicks", [True, False], ids=["kick", "promotion"])
def test_without_a_whole_guard_the_lists_decide(
    queue: WorkQueue, raw: Redis, foreign: Foreign, kicks: bool
) -> None:
    """It has ended, or is under one name alone: another may have pushed the item."""
    lists = (None, b"jobs:queue", b"jobs:processing")
    for left, listed_in, others in product(("", "new", "old"), lists, (0, 40)):
        raw.flushall()
        ids = [b"a", *numbered(others, b"other %02d")]
        for at, item_id in enumerate(ids):
            foreign.buried(item_id) if kicks else foreign.delayed(item_id, 1000 + at)
            unguard(raw, item_id, left)
        if listed_in is not None:
            raw.lpush(listed_in, b"a")
        done = by_status(queue.kick_many(ids)) if kicks else {}
        for item_id, status in () if kicks else promoted(queue):
            done.setdefault(Status(status), []).append(item_id)
        pushed, left_alone = (
            (Status.KICKED, Status.NOT_BURIED) if kicks else (Status.PROMOTED, Status.PRUNED)
        )
        assert sorted(done.get(pushed, [])) == sorted(ids[listed_in is not None :])
        assert done.get(left_alone, []) == ([] if listed_in is None else [b"a"])
        entries = raw.lrange(b"jobs:queue", 0, -1) + raw.lrange(b"jobs:processing", 0, -1)
        assert sorted(entries) == sorted(ids)
        assert raw.exists(b"jobs:buried", b"jobs:delayed") == 0
        assert not any(b":lease" in key for key in contents(raw))


class TestPromotion:
    def test_items_are_promoted_in_the_order_of_their_due_times(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
    ) -> None:
        foreign.waiting(b"w")
        due(foreign, b"c", b"a", b"b", b"leased", b"buried")
        foreign.delayed(b"later", FAR_MS)
        # A cleaner of another language had returned one before we came.
        foreign.leased(b"leased", generations="new", holder=b"worker")
        foreign.buried(b"buried")
        assert promoted(queue) == [
            *((item_id, "promoted") for item_id in (b"c", b"a", b"b")),
            *((item_id, "pruned") for item_id in (b"leased", b"buried")),
        ]
        assert raw.lrange(keys.main, 0, -1) == [b"b", b"a", b"c", b"w"]
        assert raw.zrange(keys.delayed, 0, -1) == [b"later"]
        assert settling(raw) == {"promoted": [b"a", b"b", b"c"]}
        assert raw.mget(both(b"later")) == [b"rwq-delayed:"] * 2
        assert raw.get(keys.lease(b"leased")) == b"worker"
        assert raw.mget(both(b"buried")) == [b"rwq-buried:broken"] * 2
        assert promoted(queue) == []

    @pytest.mark.parametrize("others", [0, 40], ids=["few", "many"])
    def test_a_worker_leases_it_between_any_two_calls(
        self, backend: Backend, keys: QueueKeys, raw: Redis, foreign: Foreign, others: int
    ) -> None:
        """A cleaner of 0.1 returned it, and a worker of 0.1 pops it."""
        for number in count_from(1):
            raw.flushall()
            ids = [b"a", *numbered(others)]
            due(foreign, *ids)
            for item_id in ids:
                unguard(raw, item_id)
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

    def test_a_lease_promotes_what_is_due_behind_what_waits(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign
    ) -> None:
        """Behind entries that mean nothing any more, and more than one call looks at."""
        ids = numbered(600)
        due(foreign, *ids)
        raw.delete(*map(keys.item, ids[:250]))
        foreign.waiting(b"w")
        assert [item.item_id for item in queue.lease_many(2)] == [b"w", ids[250]]
        assert [item.item_id for item in queue.lease_many(1000)] == ids[251:]
        assert raw.exists(keys.delayed, keys.main) == 0

    @pytest.mark.parametrize("why", ["data of the wrong type", "held by a session"])
    def test_entries_that_stay_do_not_hold_up_those_behind_them(
        self, queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, why: str
    ) -> None:
        for item_id in numbered(250):
            foreign.delayed(item_id, 1000)
            if why == "held by a session":
                raw.mset(dict.fromkeys(both(item_id), b"session"))
            else:
                raw.delete(keys.item(item_id))
                raw.lpush(keys.item(item_id), b"another queue's")
        foreign.delayed(b"due", 5000)
        item = queue.lease()
        assert item is not None
        assert item.item_id == b"due"
        assert raw.zcard(keys.delayed) == 250

    def test_a_wait_promotes_if_the_user_may(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        keys: QueueKeys,
        foreign: Foreign,
        as_user: AsUser,
    ) -> None:
        due(foreign, b"a")
        limited = as_user("+@read", "+eval", "+evalsha", "+multi", "+exec", "+time")
        assert not WorkQueue(limited, QUEUE).wait(timeout_s=0).reached
        assert raw.exists(keys.delayed) == 1

        def work() -> None:
            if raw.rpop(keys.main) == b"a":
                raw.delete(keys.item(b"a"))

        clock.during_sleep = work
        assert queue.wait(WaitCondition(ids=(b"a",)), timeout_s=5).reached
