"""Burying, delaying and kicking: from everywhere, in one step, and never listed twice."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Connection, Outcome, Status, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import Outcomes
from tests.conftest import (
    HOLDER,
    QUEUE,
    FakeClock,
    Foreign,
    Interleaved,
    contents,
    settling,
)

FAR_MS = 9_999_999_999_999


def both(item_id: bytes) -> tuple[bytes, bytes]:
    return b"jobs:lease:" + item_id, b"jobs:leased_by_session:" + item_id


def place(foreign: Foreign, where: str, *ids: bytes) -> None:
    """Items in one of the places that an item can be in."""
    for item_id in ids:
        if where == "delayed":
            foreign.delayed(item_id, FAR_MS)
        elif where == "leased by us":
            foreign.leased(item_id, holder=HOLDER)
        else:
            getattr(foreign, {"orphaned": "data"}.get(where, where))(item_id)


PLACES = ["waiting", "abandoned", "leased by us", "orphaned", "delayed", "buried"]


def by_status(outcomes: Iterable[Outcome]) -> dict[Status, list[bytes]]:
    by_status: dict[Status, list[bytes]] = {}
    for outcome in outcomes:
        by_status.setdefault(outcome.status, []).append(outcome.item_id)
    return by_status


def not_buried(raw: Redis, ids: Sequence[bytes], reason: bytes) -> list[bytes]:
    """Those that are not buried as the protocol says: the data, the entry, both guards without
    expiry, in no list."""
    _, listed, facts = read_facts(raw, ids)
    said = [b"rwq-buried:" + reason] * 2
    return [
        item_id
        for item_id, (exists, due_ms, buried_ms, guards, *left_ms) in zip(ids, facts, strict=True)
        if (exists, due_ms, guards, left_ms) != (1, None, said, [-1, -1])
        or buried_ms is None
        or item_id in listed
    ]


def not_delayed(raw: Redis, ids: Sequence[bytes], delay_s: int) -> list[bytes]:
    """Those that are not delayed as the protocol says: the guards outlive the due time by a
    minute."""
    now_ms, listed, facts = read_facts(raw, ids)
    return [
        item_id
        for item_id, (exists, due_ms, buried_ms, guards, *left_ms) in zip(ids, facts, strict=True)
        if due_ms is None
        # Much time may have passed since then on a busy machine.
        or not -1000 <= now_ms + delay_s * 1000 - due_ms < 60_000
        or (exists, buried_ms, guards) != (1, None, [b"rwq-delayed:%d" % int(due_ms)] * 2)
        or any(abs(now_ms + left - due_ms - 60_000) > 1000 for left in left_ms)
        or item_id in listed
    ]


def read_facts(raw: Redis, ids: Sequence[bytes]) -> tuple[int, set[bytes], list[list[Any]]]:
    """The server's time, unix ms, what is in the lists, and of each ID whether there are data, its
    due time, when it was buried, both leases, and the time that each has left, ms."""
    asking = raw.pipeline()
    asking.time().lrange(b"jobs:queue", 0, -1).lrange(b"jobs:processing", 0, -1)
    for item_id in ids:
        asking.exists(b"jobs:item:" + item_id)
        asking.zscore(b"jobs:delayed", item_id).zscore(b"jobs:buried", item_id)
        asking.mget(*both(item_id))
        for key in both(item_id):
            asking.pttl(key)
    (seconds, micros), main, processing, *replies = asking.execute()
    facts = [replies[at : at + 6] for at in range(0, len(replies), 6)]
    return seconds * 1000 + micros // 1000, {*main, *processing}, facts


def is_buried(raw: Redis, item_id: bytes, reason: bytes) -> bool:
    """Whether it is buried as the protocol says."""
    return not not_buried(raw, [item_id], reason)


def is_delayed(raw: Redis, item_id: bytes, delay_s: int) -> bool:
    """Whether it is delayed as the protocol says."""
    return not not_delayed(raw, [item_id], delay_s)


def unguard(raw: Redis, item_id: bytes, left: tuple[str, ...]) -> None:
    """Delete the guard, but for these generations."""
    for generation, key in zip(("new", "old"), both(item_id), strict=True):
        if generation not in left:
            raw.delete(key)


class TestBury:
    @pytest.mark.parametrize("where", PLACES)
    @pytest.mark.parametrize("count", [1, 700])
    def test_items_in_any_state_are_buried(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, where: str, count: int
    ) -> None:
        ids = [b"%04d" % number for number in range(count)]
        pipe = raw.pipeline()
        place(Foreign(pipe), where, *ids)
        pipe.execute()
        foreign.waiting(b"w")
        foreign.leased(b"l")
        status = Status.ALREADY_BURIED if where == "buried" else Status.BURIED
        began_ms = queue.now_ms()
        outcomes = by_status(queue.bury_many(ids, reason=b"why"))
        assert {word: sorted(found) for word, found in outcomes.items()} == {status: ids}
        assert not_buried(raw, ids, b"why") == []
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"w"]
        assert raw.lrange(b"jobs:processing", 0, -1) == [b"l"]
        assert raw.zcard(b"jobs:buried") == count
        if where != "buried":
            # Still in the order in which they were buried.
            assert raw.zrange(b"jobs:buried", 0, -1) == ids
            assert began_ms <= (raw.zscore(b"jobs:buried", ids[0]) or 0) < queue.now_ms() + 1

    @pytest.mark.parametrize("generations", ["both", "new", "old"])
    @pytest.mark.parametrize("count", [1, 40])
    def test_items_of_another_session_are_buried_only_with_force(
        self, queue: WorkQueue, raw: Redis, generations: str, count: int
    ) -> None:
        ids = [b"%04d" % number for number in range(count)]
        Foreign(raw).leased(*ids, generations=generations)
        before = contents(raw)
        outcomes = list(queue.bury_many(ids))
        assert len(outcomes) == count
        assert set(outcomes) == {Outcome(item_id, Status.NOT_OWNER, b"them") for item_id in ids}
        assert contents(raw) == before
        assert len(by_status(queue.bury_many(ids, force=True))[Status.BURIED]) == count
        assert not_buried(raw, ids, b"by hand") == []
        assert raw.exists(b"jobs:processing") == 0


class TestReasons:
    @pytest.mark.parametrize("count", [1, 40])
    def test_burying_again_replaces_the_reason(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
    ) -> None:
        ids = [b"%04d" % number for number in range(count)]
        for item_id in ids:
            foreign.buried(item_id, b"old")
        before = contents(raw)
        assert by_status(queue.bury_many(ids)) == {Status.ALREADY_BURIED: ids}
        assert contents(raw) == before
        assert by_status(queue.bury_many(ids, reason=b"new")) == {Status.ALREADY_BURIED: ids}
        assert not_buried(raw, ids, b"new") == []
        # The time stays.
        assert {raw.zscore(b"jobs:buried", item_id) for item_id in ids} == {1_700_000_000_000}

    @pytest.mark.parametrize(
        ("left", "reason"), [((), b"by hand"), (("new",), b"old"), (("old",), b"old")]
    )
    def test_a_guard_that_was_lost_comes_back(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        left: tuple[str, ...],
        reason: bytes,
    ) -> None:
        foreign.buried(b"a", b"old")
        unguard(raw, b"a", left)
        assert by_status(queue.bury_many([b"a"])) == {Status.ALREADY_BURIED: [b"a"]}
        assert is_buried(raw, b"a", reason)
        assert raw.zscore(b"jobs:buried", b"a") == 1_700_000_000_000


class TestDelay:
    @pytest.mark.parametrize("where", PLACES)
    @pytest.mark.parametrize("count", [1, 700])
    def test_items_in_any_state_are_delayed(
        self, queue: WorkQueue, raw: Redis, where: str, count: int
    ) -> None:
        ids = [b"%04d" % number for number in range(count)]
        pipe = raw.pipeline()
        place(Foreign(pipe), where, *ids)
        pipe.execute()
        outcomes = by_status(queue.release_many(ids, delay_s=600))
        assert {word: sorted(found) for word, found in outcomes.items()} == {Status.DELAYED: ids}
        assert not_delayed(raw, ids, 600) == []
        assert raw.exists(b"jobs:queue", b"jobs:processing", b"jobs:buried") == 0
        assert raw.zrange(b"jobs:delayed", 0, -1) == ids

    def test_a_delay_and_the_front_are_refused_together(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.delayed(b"a", FAR_MS)
        before = contents(raw)
        with pytest.raises(InvalidArgument):
            queue.release_many([b"a"], delay_s=1, front=True)
        assert contents(raw) == before


class TestManyWithConcurrentClients:
    """Most of them wait; others pop, push and clean between any two calls."""

    def schedule(self, queue: WorkQueue, ids: Iterable[bytes], verb: str) -> Outcomes:
        return queue.bury_many(ids) if verb == "bury" else queue.release_many(ids, delay_s=600)

    @pytest.mark.parametrize("act", ["pops", "pushes", "leases and gives back"])
    def test_each_item_is_scheduled_and_none_stays_in_a_list(
        self, interleaved: Interleaved, raw: Redis, clock: FakeClock, act: str
    ) -> None:
        ids = [b"%05d" % number for number in range(3000)]
        raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
        raw.lpush(b"jobs:queue", *ids)
        acted = 0

        def meanwhile(name: str) -> None:
            nonlocal acted
            if name not in ("LRANGE", "schedule") or acted >= 300:
                return
            for _ in range(20):
                acted += 1
                if act == "pushes":
                    raw.set(b"jobs:item:new %d" % acted, b"")
                    raw.lpush(b"jobs:queue", b"new %d" % acted)
                    continue
                item_id = raw.lmove(b"jobs:queue", b"jobs:processing", "RIGHT", "LEFT")
                if act != "pops" and item_id is not None:
                    raw.lrem(b"jobs:processing", 0, item_id)
                    raw.lpush(b"jobs:queue", item_id)

        interleaved.before = meanwhile
        outcomes = by_status(WorkQueue(interleaved, QUEUE, clock=clock).bury_many(ids))
        assert {status: sorted(found) for status, found in outcomes.items()} == {Status.BURIED: ids}
        assert sorted(raw.zrange(b"jobs:buried", 0, -1)) == ids
        new = [b"new %d" % number for number in range(1, acted + 1)] if act == "pushes" else []
        assert raw.lrange(b"jobs:queue", 0, -1)[::-1] == new
        assert raw.exists(b"jobs:processing") == 0

    def test_an_item_pushed_meanwhile_does_not_stay_listed(
        self, interleaved: Interleaved, raw: Redis, clock: FakeClock
    ) -> None:
        """Read in processing alone; then a cleaner pushes it, before it is taken off there."""
        ids = [b"%04d" % number for number in range(100)]
        raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
        raw.lpush(b"jobs:processing", *ids)

        def push(name: str) -> None:
            if name == "schedule" and not raw.exists(b"jobs:queue", b"jobs:buried"):
                raw.lpush(b"jobs:queue", b"0007", b"0050")

        interleaved.before = push
        outcomes = by_status(WorkQueue(interleaved, QUEUE, clock=clock).bury_many(ids))
        assert sorted(outcomes.pop(Status.BURIED)) == ids
        assert outcomes == {}
        assert raw.exists(b"jobs:queue", b"jobs:processing") == 0
        assert sorted(raw.zrange(b"jobs:buried", 0, -1)) == ids


class TestKick:
    @pytest.mark.parametrize("count", [3, 700])
    def test_items_are_kicked_in_the_given_order(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
    ) -> None:
        foreign.waiting(b"w")
        pipe = raw.pipeline()
        ids = [b"%04d" % number for number in range(count)]
        place(Foreign(pipe), "buried", *ids, b"other")
        pipe.execute()
        raw.hset(b"jobs:returns", mapping={ids[0]: 7, b"other": 7})
        assert by_status(queue.kick_many(ids[::-1])) == {Status.KICKED: ids[::-1]}
        assert raw.lrange(b"jobs:queue", 0, -1) == [*ids, b"w"]
        assert settling(raw) == {"kicked": ids}
        assert raw.zrange(b"jobs:buried", 0, -1) == [b"other"]
        assert raw.hgetall(b"jobs:returns") == {b"other": b"7"}

    def test_items_that_are_not_buried_are_not_kicked(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w")
        foreign.leased(b"l")
        foreign.delayed(b"d", FAR_MS)
        foreign.data(b"o")
        before = contents(raw)
        foreign.buried(b"ghost")
        raw.delete(b"jobs:item:ghost")
        assert by_status(queue.kick_many([b"w", b"l", b"d", b"o", b"gone", b"ghost"])) == {
            Status.NOT_BURIED: [b"w", b"l", b"d", b"o"],
            Status.MISSING: [b"gone", b"ghost"],
        }
        # The entry of an item that is gone goes, with its guard.
        assert contents(raw) == before

    def test_an_item_that_a_worker_holds_is_not_kicked(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        """It had popped the item before that was buried, and took its lease after."""
        foreign.buried(b"a")
        foreign.lease(b"a", generations="old")
        before = contents(raw)
        assert list(queue.kick_many([b"a"])) == [Outcome(b"a", Status.NOT_OWNER, b"them")]
        assert contents(raw) == before

    @pytest.mark.parametrize("left", [(), ("new",), ("old",)])
    @pytest.mark.parametrize("listed_in", [None, b"jobs:queue", b"jobs:processing"])
    @pytest.mark.parametrize("others", [1, 40])
    def test_without_a_full_guard_the_lists_decide(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        left: tuple[str, ...],
        listed_in: bytes | None,
        others: int,
    ) -> None:
        ids = [b"a", *(b"b %02d" % number for number in range(others))]
        for item_id in ids:
            foreign.buried(item_id)
        raw.hset(b"jobs:returns", mapping={b"a": 7})
        unguard(raw, b"a", left)
        if listed_in is not None:
            raw.lpush(listed_in, b"a")
        outcomes = by_status(queue.kick_many(ids))
        if listed_in is None:
            assert sorted(outcomes.pop(Status.KICKED)) == ids
            assert raw.exists(b"jobs:returns") == 0
            assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == ids
        else:
            assert outcomes.pop(Status.KICKED) == ids[1:]
            assert outcomes.pop(Status.NOT_BURIED) == [b"a"]
            entries = raw.lrange(b"jobs:queue", 0, -1) + raw.lrange(b"jobs:processing", 0, -1)
            assert entries.count(b"a") == 1
        assert outcomes == {}
        assert raw.exists(b"jobs:buried") == 0
        assert not any(b":lease" in key for key in contents(raw))

    def test_two_concurrent_calls_push_it_once(
        self, interleaved: Interleaved, connection: Connection, raw: Redis
    ) -> None:
        ids = [b"%04d" % number for number in range(2000)]
        pipe = raw.pipeline()
        place(Foreign(pipe), "buried", *ids)
        pipe.execute()
        for item_id in ids[::2]:
            unguard(raw, item_id, ())
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


ADDED_ANEW: dict[str, tuple[Callable[[WorkQueue], Iterable[Outcome]], Status, list[bytes]]] = {
    "bury": (lambda queue: queue.bury_many([b"a"]), Status.BURIED, []),
    "delay": (lambda queue: queue.release_many([b"a"], delay_s=60), Status.DELAYED, []),
    "release": (lambda queue: queue.release_many([b"a"]), Status.ALREADY_WAITING, [b"a"]),
    "release to the front": (
        lambda queue: queue.release_many([b"a"], front=True),
        Status.RELEASED,
        [b"a"],
    ),
    "kick": (lambda queue: queue.kick_many([b"a"]), Status.NOT_BURIED, [b"a"]),
    "complete": (lambda queue: queue.complete_many([b"a"]), Status.COMPLETED, []),
}


@pytest.mark.parametrize("which", ["buried", "delayed"])
@pytest.mark.parametrize("verb", ADDED_ANEW)
def test_an_item_added_again_despite_its_guard_waits(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: str, which: str
) -> None:
    """The add_item of upstream 0.1: SET and LPUSH, without a look."""
    act, status, waiting = ADDED_ANEW[verb]
    if which == "buried":
        foreign.buried(b"a")
    else:
        foreign.delayed(b"a", FAR_MS)
    foreign.waiting(b"a")
    assert list(act(queue)) == [Outcome(b"a", status)]
    assert raw.lrange(b"jobs:queue", 0, -1) == waiting
