"""Releasing, burying, delaying, kicking and promotion: order, guards, and never listed twice."""

import random
from collections.abc import Iterable

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Status, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.results import wait_for_all
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.keys import QueueKeys
from tests.conftest import HOLDER, QUEUE, AsUser, FakeClock, Foreign, settling
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


class TestRelease:
    # More than a call has keep their order only at the front.
    @pytest.mark.parametrize(("count", "front"), [(3, False), (60, False), (3, True), (900, True)])
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

    def test_those_of_a_long_list_come_next_in_order(self, queue: WorkQueue, raw: Redis) -> None:
        ids = random.Random(0).sample(many(raw, 9000), 900)
        assert len(by_status(queue.release_many(ids, front=True))[Status.RELEASED]) == 900
        assert raw.lrange(b"jobs:queue", -900, -1)[::-1] == ids

    @few_or_many
    def test_those_in_transit_keep_their_place_in_front(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock, count: int
    ) -> None:
        ids = numbered(count)
        foreign.leased(*ids[::2], holder=HOLDER)
        foreign.abandoned(*ids[1::2])
        # Its worker's lease comes in the grace period.
        taken = ids[1]
        clock.during_sleep = lambda: foreign.lease(taken)
        expected = {Status.RELEASED: [i for i in ids if i != taken], Status.NOT_OWNER: [taken]}
        released = by_status(queue.release_many(ids, front=True))
        assert {status: sorted(found) for status, found in released.items()} == {
            status: sorted(found) for status, found in expected.items()
        }
        assert raw.lrange(b"jobs:queue", 0, -1)[::-1] == expected[Status.RELEASED]

    def test_a_delay_and_the_front_are_refused_together(self, queue: WorkQueue) -> None:
        with pytest.raises(InvalidArgument):
            queue.release_many([b"a"], delay_s=1, front=True)


@few_or_many
def test_a_buried_items_guard_with_reason_never_ends(
    queue: WorkQueue, raw: Redis, count: int
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
        status = Status.REASON_REPLACED if reason else Status.ALREADY_BURIED
        assert outcomes == {status: ids}
        assert by_status(queue.bury_many(ids, reason=reason)) == {Status.ALREADY_BURIED: ids}
        guards = [key for item_id in ids for key in both(item_id)]
        assert {*raw.mget(guards)} == {b"rwq-buried:" + (reason or b"why")}
        assert {raw.pttl(key) for key in guards} == {-1}
        assert raw.zrange(b"jobs:buried", 0, -1, withscores=True) == entries


@few_or_many
def test_items_are_kicked_in_order_and_counted_anew(
    queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
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


class TestPromotion:
    def test_items_are_promoted_in_order_of_due_times(
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

    def test_a_lease_promotes_due_behind_waiting(
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
    def test_entries_that_stay_hold_up_none_behind_them(
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
        assert not next(wait_for_all([WorkQueue(limited, QUEUE)], timeout_s=0)).reached
        assert raw.exists(keys.delayed) == 1

        def work() -> None:
            if raw.rpop(keys.main) == b"a":
                raw.delete(keys.item(b"a"))

        clock.during_sleep = work
        assert next(wait_for_all([queue], ids=(b"a",), timeout_s=5)).reached
