"""Leasing items, and what follows: lease, complete, touch, release; asserted on the raw keys."""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import (
    Connection,
    Item,
    Lease,
    Outcome,
    Selection,
    State,
    Status,
    WorkQueue,
)
from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import ConnectionLost, InvalidArgument, WrongType
from rwq_cli.core.inspect.choosing import choose as choose_items
from rwq_cli.core.items import lease as lease_module
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.lease import lease_from, lease_ids
from rwq_cli.core.items.move import move as move_items
from rwq_cli.core.items.schedule import bury as bury_items, release as release_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.server.push_waiter import PushWaiter
from tests.conftest import (
    HOLDER,
    QUEUE,
    Backend,
    FakeClock,
    Foreign,
    Interleaved,
    contents,
    lasts,
    settling,
)
from tests.driver import until
from tests.servers import PrivateServer

MEGABYTE = 1024 * 1024


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


class TestLease:
    def test_lease_returns_the_item(self, queue: WorkQueue, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        assert queue.lease(for_s=60) == Item(
            queue=b"jobs",
            item_id=b"1",
            state=State.LEASED,
            payload_bytes=9,
            data=b"data of 1",
            preview=b"data of 1",
            lease=Lease(b"me", 60_000),
        )

    def test_lease_moves_the_id_and_sets_both_lease_keys(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.leased(b"other")
        foreign.waiting(b"1", b"2")
        queue.lease(for_s=60)
        assert contents(raw) == {
            b"jobs:queue": [b"2"],
            b"jobs:processing": [b"1", b"other"],
            b"jobs:item:1": b"data of 1",
            b"jobs:item:2": b"data of 2",
            b"jobs:item:other": b"data of other",
            b"jobs:lease:1": ("expires", b"me"),
            b"jobs:lease:other": ("expires", b"them"),
            b"jobs:leased_by_session:1": ("expires", b"me"),
            b"jobs:leased_by_session:other": ("expires", b"them"),
        }
        assert lasts(raw, 60, b"jobs:lease:1", b"jobs:leased_by_session:1")

    def test_an_old_lease_of_either_generation_is_replaced(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2")
        foreign.lease(b"1", ttl_ms=None, generations="old")
        foreign.lease(b"2", ttl_ms=900_000, generations="new")
        assert len(list(queue.lease_many(2, for_s=60))) == 2
        lease_keys = [
            key for key in contents(raw) if key.startswith((b"jobs:lease:", b"jobs:leased"))
        ]
        assert len(lease_keys) == 4
        assert [raw.get(key) for key in lease_keys] == [b"me"] * 4
        assert lasts(raw, 60, *lease_keys)

    def test_ghosts_are_dropped_within_the_step(
        self, interleaved: Interleaved, raw: Redis, foreign: Foreign
    ) -> None:
        raw.lpush(b"jobs:queue", b"ghost 1", b"ghost 2")
        foreign.waiting(b"1")
        raw.lpush(b"jobs:queue", b"ghost 3")
        item = WorkQueue(interleaved, QUEUE, holder=HOLDER).lease()
        assert item is not None
        assert item.item_id == b"1"
        assert set(interleaved.calls) == {"lease"}
        assert contents(raw) == {
            b"jobs:queue": [b"ghost 3"],
            b"jobs:processing": [b"1"],
            b"jobs:item:1": b"data of 1",
            b"jobs:lease:1": ("expires", b"me"),
            b"jobs:leased_by_session:1": ("expires", b"me"),
        }

    def test_data_of_the_wrong_type_is_named_and_nothing_is_taken(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        raw.hset(b"jobs:item:strange", "field", "value")
        raw.lpush(b"jobs:queue", b"strange")
        foreign.waiting(b"1")
        before = contents(raw)
        with pytest.raises(WrongType) as caught:
            queue.lease()
        assert caught.value.message == (
            "jobs:item:strange has the wrong type: "
            "a hash, not a string; it is the data of the next item"
        )
        assert contents(raw) == before

    @pytest.mark.parametrize("lease_s", [0, 0.0004, -1])
    def test_a_lease_of_less_than_a_millisecond_is_an_error(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, lease_s: float
    ) -> None:
        foreign.waiting(b"1")
        foreign.leased(b"2", ttl_ms=None)
        before = contents(raw)
        with pytest.raises(InvalidArgument):
            queue.lease(for_s=lease_s)
        with pytest.raises(InvalidArgument):
            list(lease_ids(queue, [b"1"], lease_s=lease_s))
        with pytest.raises(InvalidArgument):
            queue.touch_many([b"2"], for_s=lease_s)
        assert contents(raw) == before

    def test_each_queue_handle_has_its_own_random_holder(
        self, backend: Backend, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2")
        for _ in range(2):
            WorkQueue(backend.connect(), QUEUE).lease()
        holders = {raw.get(b"jobs:lease:1"), raw.get(b"jobs:lease:2")}
        assert len(holders) == 2
        assert {len(holder or b"") for holder in holders} == {32}


class Waiter:
    """A lease that waits in a thread of its own."""

    def __init__(self, lease: Callable[[], Any]) -> None:
        self._outcome: SimpleQueue[Any] = SimpleQueue()

        def wait() -> None:
            try:
                self._outcome.put(lease())
            except Exception as error:
                self._outcome.put(error)

        self._thread = Thread(target=wait, daemon=True)
        self._thread.start()

    def outcome(self) -> Any:
        """What it returned, or the error that ended it."""
        return self._outcome.get(timeout=30)


def waiting_lease(backend: Backend) -> Waiter:
    queue = WorkQueue(backend.connect(), QUEUE, holder=HOLDER)
    return Waiter(lambda: queue.lease(wait_s=inf))


def only_a_push_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait in one go for longer than a test waits for its outcome."""
    monkeypatch.setattr(lease_module, "_WAIT_SLICE_S", 1000.0)


def until_blocked(raw: Redis, clients: int = 1) -> None:
    """Until so many clients of the server wait in a blocking command."""
    until(lambda: raw.info("clients")["blocked_clients"] == clients)


class Waits:
    """Waits that take no time.

    Attributes:
        lists: The lists that each of them watched.
        seconds: How long each would have lasted at most.
        meanwhile: Called in each: what others do.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.lists: list[list[bytes]] = []
        self.seconds: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self._clock = clock

    def wait(self, lists: list[bytes], seconds: float) -> None:
        self.lists.append(lists)
        self.seconds.append(seconds)
        self._clock.now_s += seconds
        self.meanwhile()


@pytest.fixture
def waits(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Takes the place of waiting for the server."""
    made = Waits(clock)
    monkeypatch.setattr(
        PushWaiter, "wait", lambda self, seconds, **_: made.wait(list(self._lists), seconds)
    )
    return made


class TestWaiting:
    def test_a_push_wakes_it_and_waiting_changes_nothing(
        self, backend: Backend, raw: Redis, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        only_a_push_wakes(monkeypatch)
        waiter = waiting_lease(backend)
        until_blocked(raw)
        assert contents(raw) == {}
        foreign.data(b"1", b"2", b"3")
        # Three at once: the wait's own move must put the right one back in its place.
        raw.lpush(b"jobs:queue", b"1", b"2", b"3")
        assert waiter.outcome().item_id == b"1"
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"3", b"2"]
        assert raw.lrange(b"jobs:processing", 0, -1) == [b"1"]

    def test_a_wait_whose_connection_is_lost_has_leased_nothing_and_goes_on(
        self, backend: Backend, raw: Redis, foreign: Foreign
    ) -> None:
        waiter = waiting_lease(backend)
        until_blocked(raw)
        raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        until_blocked(raw)
        assert contents(raw) == {}
        foreign.waiting(b"1")
        assert waiter.outcome().item_id == b"1"

    def test_a_wait_is_cut_into_slices(
        self, interleaved: Interleaved, clock: FakeClock, waits: Waits
    ) -> None:
        """So that what falls due on the clock alone is noticed; after each there is one call."""
        queue = WorkQueue(interleaved, QUEUE, clock=clock)
        assert queue.lease(wait_s=2.25) is None
        assert waits.seconds == [1.0, 1.0, 0.25]
        assert interleaved.calls == ["lease"] * 4

    def test_it_waits_for_the_first_item_only(
        self, interleaved: Interleaved, clock: FakeClock, waits: Waits, foreign: Foreign
    ) -> None:
        waits.meanwhile = lambda: foreign.waiting(b"1")
        queue = WorkQueue(interleaved, QUEUE, clock=clock)
        assert [item.item_id for item in queue.lease_many(3, wait_s=inf)] == [b"1"]
        assert waits.seconds == [1.0]
        assert interleaved.calls == ["lease", "lease", "lease"]


class TestSeveralQueues:
    @pytest.fixture
    def queues(self, interleaved: Interleaved, clock: FakeClock) -> list[WorkQueue]:
        return [
            WorkQueue(interleaved, name, holder=HOLDER, clock=clock)
            for name in (b"high", b"normal", b"low")
        ]

    def test_the_first_that_has_anything(self, queues: list[WorkQueue], raw: Redis) -> None:
        Foreign(raw, b"low").waiting(b"l1")
        Foreign(raw, b"normal").waiting(b"n1", b"n2")
        assert list(lease_from(queues, 1, lease_s=60)) == [
            Item(
                queue=b"normal",
                item_id=b"n1",
                state=State.LEASED,
                payload_bytes=10,
                data=b"data of n1",
                preview=b"data of n1",
                lease=Lease(b"me", 60_000),
            )
        ]
        assert raw.lrange(b"normal:processing", 0, -1) == [b"n1"]
        assert raw.get(b"normal:lease:n1") == b"me"
        assert raw.lrange(b"low:queue", 0, -1) == [b"l1"]

    @pytest.mark.parametrize("count", [2, 3, 400])
    def test_all_from_one_queue(self, queues: list[WorkQueue], raw: Redis, count: int) -> None:
        ids = numbered(count - 1)
        Foreign(raw, b"high").waiting(*ids)
        Foreign(raw, b"low").waiting(b"l1")
        leased = list(lease_from(queues, count))
        assert [(item.queue, item.item_id) for item in leased] == [(b"high", i) for i in ids]
        assert raw.lrange(b"low:queue", 0, -1) == [b"l1"]

    def test_the_queues_are_shuffled_for_each_attempt(
        self, interleaved: Interleaved, queues: list[WorkQueue], waits: Waits
    ) -> None:
        turns = iter([(2, 0, 1), (1, 2, 0)])
        tried: list[bytes] = []

        def shuffle(order: list[QueueKeys]) -> None:
            assert [keys.name for keys in order] == [b"high", b"normal", b"low"]
            order[:] = [order[at] for at in next(turns)]
            tried.extend(keys.name for keys in order)

        assert list(lease_from(queues, 1, wait_s=1.0, shuffle=shuffle)) == []
        assert interleaved.calls == ["lease"] * 6
        assert tried == [b"low", b"high", b"normal", b"normal", b"low", b"high"]
        assert waits.seconds == [1.0]

    def test_a_wait_watches_all_until_the_next_of_any_is_due(
        self,
        queues: list[WorkQueue],
        raw: Redis,
        waits: Waits,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        only_a_push_wakes(monkeypatch)
        began = time.monotonic()
        Foreign(raw, b"normal").delayed(b"n1", queues[0].now_ms() + 700_000)
        Foreign(raw, b"low").delayed(b"l1", queues[0].now_ms() + 400_000)
        waits.meanwhile = lambda: Foreign(raw, b"high").waiting(b"h1")
        assert [item.item_id for item in lease_from(queues, 2, wait_s=inf)] == [b"h1"]
        assert waits.lists == [[b"high:queue", b"normal:queue", b"low:queue"]]
        assert 399.9 - (time.monotonic() - began) < waits.seconds[0] <= 400

    def test_queues_on_two_connections_are_refused(self, backend: Backend) -> None:
        queues = [WorkQueue(backend.connect(), name) for name in (b"a", b"b")]
        with pytest.raises(InvalidArgument):
            lease_from(queues, 1)

    @pytest.mark.parametrize("name", [b"high", b"normal", b"low"])
    def test_a_push_onto_any_wakes_it(
        self, backend: Backend, raw: Redis, name: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        only_a_push_wakes(monkeypatch)
        connection = backend.connect()
        queues = [WorkQueue(connection, each) for each in (b"high", b"normal", b"low")]
        waiter = Waiter(lambda: list(lease_from(queues, 2, wait_s=inf)))
        until_blocked(raw, 3)
        Foreign(raw, name).waiting(b"1")
        (item,) = waiter.outcome()
        assert (item.queue, item.item_id) == (name, b"1")
        until_blocked(raw, 0)


class TestDryRun:
    @pytest.fixture
    def queues(self, connection: Connection) -> list[WorkQueue]:
        return [WorkQueue(connection, name) for name in (b"high", b"low")]

    def test_items_come_from_the_first_queue_that_has_any(
        self, queues: list[WorkQueue], raw: Redis
    ) -> None:
        raw.lpush(b"high:queue", b"ghost")
        Foreign(raw, b"low").waiting(b"1", b"2", b"3")
        before = contents(raw)
        found = list(lease_from(queues, 2, dry_run=True))
        assert [(item.queue, item.item_id, item.data, item.state) for item in found] == [
            (b"low", b"1", b"data of 1", State.WAITING),
            (b"low", b"2", b"data of 2", State.WAITING),
        ]
        assert contents(raw) == before

    @pytest.mark.parametrize("waiting", [0, 10, 300])
    @pytest.mark.parametrize("count", [1, 12, 290, 320, 500])
    def test_as_many_as_a_lease_then_leases(
        self, queues: list[WorkQueue], raw: Redis, waiting: int, count: int
    ) -> None:
        """More is due than one call promotes, some of it gone, and some is listed twice."""
        high = Foreign(raw, b"high")
        high.waiting(*numbered(waiting))
        high.waiting(*numbered(waiting // 10))
        for number in range(150):
            high.delayed(b"due %03d" % number, 1 + number)
        raw.delete(*(b"high:item:due %03d" % number for number in range(0, 150, 2)))
        before = contents(raw)
        foreseen = [(item.item_id, item.data) for item in lease_from(queues, count, dry_run=True)]
        assert contents(raw) == before
        assert [(item.item_id, item.data) for item in lease_from(queues, count)] == foreseen
        assert len(foreseen) == min(count, waiting + 75)


class TestItemsWithALease:
    """A waiting item may have a lease, of a session that failed or of one that works on it."""

    def test_what_a_session_works_on_is_dropped_from_main(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.leased(b"1")
        foreign.waiting(b"1", b"2")
        foreign.lease(b"2")
        assert [item.item_id for item in queue.lease_many(5)] == [b"2"]
        assert raw.get(b"jobs:lease:1") == b"them"
        assert sorted(raw.lrange(b"jobs:processing", 0, -1)) == [b"1", b"2"]

    def test_a_call_looks_for_few_of_them_in_a_long_list(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        """Each look passes the whole list: no call may hold the server for long."""
        raw.eval(
            "for _ = 1, 40 do redis.call('RPUSH', KEYS[1], unpack(ARGV)) end",
            *(1, b"jobs:processing", *(b"other" for _ in range(5000))),
        )
        ids = numbered(12)
        # Before Redis 7, the first call of a script asks for permissions.
        assert queue.lease() is None
        foreign.waiting(*ids)
        foreign.lease(*ids)
        leased: list[bytes] = []
        for _ in range(6):
            raw.config_resetstat()
            # One call; more calls would follow.
            batch = next(lease_from([queue], 12).batches)
            calls = raw.info("commandstats")
            assert calls["cmdstat_evalsha"]["calls"] == 1
            assert calls["cmdstat_lpos"]["calls"] == len(batch.ids) == 2
            leased += batch.ids
        assert leased == ids


class TestComplete:
    @pytest.mark.parametrize(
        "arrange",
        [
            pytest.param(lambda foreign: foreign.waiting(b"1"), id="waiting"),
            pytest.param(lambda foreign: foreign.leased(b"1"), id="leased"),
            pytest.param(lambda foreign: foreign.leased(b"1", generations="old"), id="old lease"),
            pytest.param(lambda foreign: foreign.leased(b"1", generations="new"), id="new lease"),
            pytest.param(lambda foreign: foreign.leased(b"1", ttl_ms=None), id="held"),
            pytest.param(lambda foreign: foreign.abandoned(b"1"), id="abandoned"),
            pytest.param(lambda foreign: foreign.data(b"1"), id="orphaned"),
            pytest.param(lambda foreign: foreign.buried(b"1"), id="buried"),
            pytest.param(lambda foreign: foreign.delayed(b"1", 10**13), id="delayed"),
            pytest.param(
                lambda foreign: (foreign.waiting(b"1"), foreign.waiting(b"1")), id="twice waiting"
            ),
            pytest.param(
                lambda foreign: (foreign.leased(b"1"), foreign.abandoned(b"1")), id="twice taken"
            ),
            pytest.param(
                lambda foreign: (foreign.waiting(b"1"), foreign.leased(b"1")), id="in both lists"
            ),
            pytest.param(
                lambda foreign: (
                    foreign.data(b"1"),
                    foreign.raw.lpush(b"jobs:cleaning", b"1"),
                    foreign.raw.hset(b"jobs:returns", b"1", 2),
                ),
                id="in an old cleaner's hand",
            ),
        ],
    )
    @pytest.mark.parametrize("beside", [0, 50])
    def test_whatever_its_state_there_is_one_winner_and_no_trace(
        self,
        backend: Backend,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        arrange: Callable[[Foreign], object],
        beside: int,
    ) -> None:
        """`beside` others are completed with it, which takes another path from 31 on."""
        arrange(foreign)
        others = [b"other %d" % number for number in range(beside)]
        foreign.leased(*others)
        outcomes = list(queue.complete_many([b"1", *others]))
        assert sorted(outcomes, key=lambda outcome: outcome.item_id) == sorted(
            [Outcome(item_id, Status.COMPLETED) for item_id in (b"1", *others)],
            key=lambda outcome: outcome.item_id,
        )
        assert contents(raw) == {}
        again = WorkQueue(backend.connect(), QUEUE)
        assert list(again.complete_many([b"1"])) == [Outcome(b"1", Status.MISSING)]

    def test_the_data_key_decides_who_won(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        """An old worker's complete came first: its data went, its entry and lease are left."""
        foreign.leased(b"1")
        raw.delete(b"jobs:item:1")
        assert list(queue.complete_many([b"1"])) == [Outcome(b"1", Status.MISSING)]
        assert contents(raw) == {}

    @pytest.mark.parametrize(
        ("arrange", "outcome"),
        [
            (lambda foreign: foreign.leased(b"1"), Outcome(b"1", Status.NOT_OWNER, b"them")),
            (lambda foreign: foreign.waiting(b"1"), Outcome(b"1", Status.NOT_OWNER)),
            (lambda foreign: foreign.abandoned(b"1"), Outcome(b"1", Status.NOT_OWNER)),
            (
                lambda foreign: foreign.buried(b"1", b"why"),
                Outcome(b"1", Status.NOT_OWNER, b"rwq-buried:why"),
            ),
        ],
        ids=["leased by others", "waiting", "abandoned", "buried"],
    )
    @pytest.mark.parametrize("beside", [0, 50])
    def test_items_of_another_holder_are_not_completed(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        arrange: Callable[[Foreign], object],
        outcome: Outcome,
        beside: int,
    ) -> None:
        arrange(foreign)
        before = contents(raw)
        others = [b"other %d" % number for number in range(beside)]
        foreign.leased(*others, holder=b"me")
        outcomes = list(queue.complete_many([b"1", *others], owner=b"me"))
        assert outcomes.count(outcome) == 1
        assert [o.status for o in outcomes if o != outcome] == [Status.COMPLETED] * beside
        assert contents(raw) == before

    @pytest.mark.parametrize("count", [30, 31, 45, 2300])
    def test_many_in_any_order(self, queue: WorkQueue, raw: Redis, count: int) -> None:
        """Around the step to the way by pages, and over several pages; every second one."""
        ids = numbered(count * 2)
        pipeline = raw.pipeline()
        Foreign(pipeline).leased(*ids)
        pipeline.execute()
        chosen = ids[::2]
        random.Random(count).shuffle(chosen)
        outcomes = list(queue.complete_many(iter(chosen)))
        assert {outcome.status for outcome in outcomes} == {Status.COMPLETED}
        assert sorted(outcome.item_id for outcome in outcomes) == sorted(chosen)
        assert sorted(raw.lrange(b"jobs:processing", 0, -1)) == sorted(ids[1::2])
        keys = QueueKeys(QUEUE)
        assert set(raw.keys()) == {b"jobs:processing"} | {
            key
            for item_id in ids[1::2]
            for key in (keys.item(item_id), keys.lease(item_id), keys.old_lease(item_id))
        }
        assert {outcome.status for outcome in queue.complete_many(chosen)} == {Status.MISSING}

    def test_an_item_that_moves_while_many_are_completed(
        self, interleaved: Interleaved, raw: Redis, foreign: Foreign
    ) -> None:
        """A cleaner puts one back, a worker takes one, between any two of our calls."""
        ids = numbered(40)
        for step in range(20):
            raw.flushall()
            foreign.leased(*ids[:38])
            foreign.waiting(b"38", b"39")
            interleaved.calls.clear()

            def act(_: str, step: int = step) -> None:
                if len(interleaved.calls) == step:
                    raw.lrem(b"jobs:processing", 0, b"7")
                    raw.lpush(b"jobs:queue", b"7")
                    raw.rpoplpush(b"jobs:queue", b"jobs:processing")

            interleaved.before = act
            outcomes = list(WorkQueue(interleaved, QUEUE).complete_many(ids))
            assert sorted(outcome.item_id for outcome in outcomes) == sorted(ids)
            assert {outcome.status for outcome in outcomes} == {Status.COMPLETED}
            assert raw.keys(b"jobs:item:*") == []
            # At the worst an entry without data, which whoever meets it drops.
            ghosts = raw.lrange(b"jobs:queue", 0, -1) + raw.lrange(b"jobs:processing", 0, -1)
            assert set(ghosts) <= {b"7", b"38"}


class TestTouch:
    def test_both_keys_get_the_new_expiry(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.leased(b"1", ttl_ms=5000)
        before = contents(raw)
        assert list(queue.touch_many([b"1"], for_s=600)) == [Outcome(b"1", Status.TOUCHED)]
        assert contents(raw) == before
        assert lasts(raw, 600, b"jobs:lease:1", b"jobs:leased_by_session:1")

    @pytest.mark.parametrize("generations", ["old", "new"])
    @pytest.mark.parametrize("ttl_ms", [5000, None])
    def test_a_lease_of_one_generation_becomes_one_of_both(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        generations: str,
        ttl_ms: int | None,
    ) -> None:
        foreign.leased(b"1", ttl_ms=ttl_ms, generations=generations)
        assert list(queue.touch_many([b"1"], for_s=60)) == [Outcome(b"1", Status.TOUCHED)]
        assert contents(raw) == {
            b"jobs:processing": [b"1"],
            b"jobs:item:1": b"data of 1",
            b"jobs:lease:1": ("expires", b"them"),
            b"jobs:leased_by_session:1": ("expires", b"them"),
        }
        assert lasts(raw, 60, b"jobs:lease:1", b"jobs:leased_by_session:1")

    def test_an_item_without_a_lease_gets_none(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"waiting")
        foreign.abandoned(b"abandoned")
        foreign.delayed(b"delayed", 10**13)
        foreign.buried(b"buried", b"why")
        foreign.lease(b"stray")
        before = contents(raw)
        ids = [b"waiting", b"abandoned", b"delayed", b"buried", b"stray", b"gone"]
        assert list(queue.touch_many(ids)) == [
            Outcome(b"waiting", Status.NOT_LEASED),
            Outcome(b"abandoned", Status.NOT_LEASED),
            Outcome(b"delayed", Status.NOT_LEASED),
            Outcome(b"buried", Status.NOT_LEASED),
            Outcome(b"stray", Status.MISSING),
            Outcome(b"gone", Status.MISSING),
        ]
        assert contents(raw) == before


FAILED = {Status.CHANGED, Status.NOT_OWNER, Status.MISSING}
# What takes items from where they are.
TAKES: dict[str, Callable[..., Iterator[Outcome]]] = {
    "release": release_items,
    "release to the front": partial(release_items, front=True),
    "delay": partial(release_items, delay_s=60),
    "bury": bury_items,
}
# The same, and what moves them to another queue.
TAKES_OR_MOVES = {
    **TAKES,
    "move": lambda queue, ids, **options: move_items(queue, ids, b"other", NoJournal(), **options),
}
# The status of an item that was taken.
TAKEN = {
    "release": Status.RELEASED,
    "release to the front": Status.RELEASED,
    "delay": Status.DELAYED,
    "bury": Status.BURIED,
}


class TestTwoHolders:
    """Two workers of different versions have each leased the item under their name."""

    @pytest.mark.parametrize("take", TAKES)
    @pytest.mark.parametrize("mine", ["old", "new"])
    @pytest.mark.parametrize("left_ms", [60_000, None])
    @pytest.mark.parametrize("waits", [False, True])
    def test_the_lease_of_the_other_is_not_ended(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        take: str,
        mine: str,
        left_ms: int | None,
        waits: bool,
    ) -> None:
        foreign.abandoned(b"1")
        foreign.lease(b"1", holder=HOLDER, ttl_ms=left_ms, generations=mine)
        other = {"old": "new", "new": "old"}[mine]
        foreign.lease(b"1", holder=b"them", ttl_ms=30_000, generations=other)
        if waits:
            raw.lpush("jobs:queue", "1")
        before = contents(raw)
        if not (waits and take == "release"):
            assert list(TAKES[take](queue, [b"1"])) == [Outcome(b"1", Status.NOT_OWNER, b"them")]
            assert contents(raw) == before
        [outcome] = release_items(queue, [b"1"], own_only=True)
        assert outcome == Outcome(b"1", Status.NOT_OWNER, b"them")
        assert contents(raw) == before
        [outcome] = TAKES[take](queue, [b"1"], force=True)
        is_there = waits and take == "release"
        assert outcome.status is (Status.ALREADY_WAITING if is_there else TAKEN[take])
        assert is_there or b"them" not in raw.mget("jobs:lease:1", "jobs:leased_by_session:1")


class TestRelease:
    def test_my_leases_go_to_the_end(self, queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2", b"3", b"4", b"5")
        assert len(list(queue.lease_many(3))) == 3
        assert list(queue.release_many([b"2", b"3", b"1"])) == [
            Outcome(b"2", Status.RELEASED),
            Outcome(b"3", Status.RELEASED),
            Outcome(b"1", Status.RELEASED),
        ]
        assert contents(raw) == {
            b"jobs:queue": [b"1", b"3", b"2", b"5", b"4"],
            **{b"jobs:item:%d" % number: b"data of %d" % number for number in range(1, 6)},
        }
        assert settling(raw) == {"released": [b"1", b"2", b"3"]}
        # In the order in which they were given.
        assert [item.item_id for item in queue.lease_many(5)] == [b"4", b"5", b"2", b"3", b"1"]

    def test_items_are_released_to_the_front_in_the_given_order(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2", b"3", b"4", b"5")
        assert len(list(queue.lease_many(3))) == 3
        assert list(queue.release_many([b"2", b"3", b"1"], front=True)) == [
            Outcome(b"2", Status.RELEASED),
            Outcome(b"3", Status.RELEASED),
            Outcome(b"1", Status.RELEASED),
        ]
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"5", b"4", b"1", b"3", b"2"]
        assert settling(raw) == {"released": [b"1", b"2", b"3"]}
        assert [item.item_id for item in queue.lease_many(5)] == [b"2", b"3", b"1", b"4", b"5"]

    def test_many_to_the_front(self, queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
        foreign.waiting(b"first")
        ids = numbered(60)
        foreign.leased(*ids, holder=HOLDER)
        random.Random(0).shuffle(ids)
        assert len(list(queue.release_many(ids, front=True))) == 60
        assert raw.exists(b"jobs:processing") == 0
        assert [item.item_id for item in queue.lease_many(61)] == [*ids, b"first"]

    def test_a_waiting_item_stays_in_its_place_unless_moved_to_the_front(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2", b"3")
        before = contents(raw)
        assert list(queue.release_many([b"2"])) == [Outcome(b"2", Status.ALREADY_WAITING)]
        assert contents(raw) == before
        # But it can be brought to the front.
        assert list(queue.release_many([b"2"], front=True)) == [Outcome(b"2", Status.RELEASED)]
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"3", b"1", b"2"]

    @pytest.mark.parametrize("front", [False, True])
    def test_items_without_a_lease_need_no_force(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, front: bool
    ) -> None:
        foreign.data(b"orphaned")
        foreign.abandoned(b"abandoned")
        ids = [b"orphaned", b"abandoned", b"gone"]
        assert list(queue.release_many(ids, front=front)) == [
            Outcome(b"gone", Status.MISSING),
            # Their workers might have been about to take their leases.
            Outcome(b"orphaned", Status.RELEASED),
            Outcome(b"abandoned", Status.RELEASED),
        ]
        assert contents(raw) == {
            b"jobs:queue": [b"abandoned", b"orphaned"],
            b"jobs:item:orphaned": b"data of orphaned",
            b"jobs:item:abandoned": b"data of abandoned",
        }

    @pytest.mark.parametrize("count", [1, 40])
    @pytest.mark.parametrize("act", TAKES_OR_MOVES.values(), ids=TAKES_OR_MOVES)
    def test_items_that_may_be_between_two_commands_are_checked_twice(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        act: Callable[..., Iterator[Outcome]],
        count: int,
    ) -> None:
        popped = numbered(count)
        added = [b"new %d" % number for number in range(count)]
        foreign.abandoned(*popped)
        foreign.data(*added)

        def meanwhile() -> None:
            # The worker's lease comes, and the producer's push.
            foreign.lease(*popped, generations="old")
            raw.lpush(b"jobs:queue", *added)

        clock.during_sleep = meanwhile
        statuses = {o.item_id: o.status for o in act(queue, [*popped, *added], grace_s=2.5)}
        assert clock.slept_s == [2.5]
        assert {statuses[item_id] for item_id in popped} == {Status.NOT_OWNER}
        assert set(raw.lrange(b"jobs:processing", 0, -1)) == set(popped)
        assert Status.MISSING not in statuses.values()

    @pytest.mark.parametrize("count", [1, 40])
    @pytest.mark.parametrize("act", TAKES_OR_MOVES.values(), ids=TAKES_OR_MOVES)
    def test_an_id_reused_between_the_two_looks_is_left_alone(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        act: Callable[..., Iterator[Outcome]],
        count: int,
    ) -> None:
        """It has other data; the same data in the same second cannot be told apart."""
        stay, again = b"stays", numbered(count)
        foreign.abandoned(*again, stay)

        def meanwhile() -> None:
            # Their worker completes them; they are added and popped again.
            for item_id in again:
                raw.lrem(b"jobs:processing", 0, item_id)
                raw.set(b"jobs:item:" + item_id, b"other data")
                raw.lpush(b"jobs:processing", item_id)

        clock.during_sleep = meanwhile
        statuses = {o.item_id: o.status for o in act(queue, [*again, stay])}
        assert {statuses[item_id] for item_id in again} == {Status.CHANGED}
        assert statuses[stay] is not Status.CHANGED
        assert set(raw.lrange(b"jobs:processing", 0, -1)) == set(again)

    @pytest.mark.parametrize("count", [1, 40])
    @pytest.mark.parametrize("act", TAKES_OR_MOVES.values(), ids=TAKES_OR_MOVES)
    def test_a_chosen_item_that_was_popped_since_is_checked_twice(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        act: Callable[..., Iterator[Outcome]],
        count: int,
    ) -> None:
        popped, abandoned = numbered(count), [b"old %d" % number for number in range(count)]
        foreign.waiting(*popped)
        foreign.abandoned(*abandoned)
        chosen = choose_items(queue, Selection(states=frozenset({State.WAITING, State.ABANDONED})))
        assert clock.slept_s == [1.0]
        for _ in popped:
            raw.rpoplpush(b"jobs:queue", b"jobs:processing")
        clock.during_sleep = lambda: foreign.lease(*popped, generations="old")
        outcomes = act(queue, chosen.ids, expected=chosen.expected, grace_s=2.5)
        statuses = {o.item_id: o.status for o in outcomes}
        # The abandoned items were looked at twice when they were chosen.
        assert clock.slept_s == [1.0, 2.5]
        assert {statuses[item_id] for item_id in popped} == {Status.CHANGED}
        assert set(raw.lrange(b"jobs:processing", 0, -1)) == set(popped)
        assert {statuses[item_id] for item_id in abandoned}.isdisjoint(FAILED)

    @pytest.mark.parametrize("act", TAKES.values(), ids=TAKES)
    def test_leased_or_forced_items_are_checked_once(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        foreign: Foreign,
        act: Callable[..., Iterator[Outcome]],
    ) -> None:
        foreign.leased(b"mine", holder=HOLDER)
        foreign.leased(b"theirs")
        assert len(list(act(queue, [b"mine", b"theirs", b"gone"]))) == 3
        foreign.abandoned(b"abandoned")
        foreign.data(b"orphaned")
        statuses = [o.status for o in act(queue, [b"abandoned", b"orphaned"], force=True)]
        assert Status.NOT_OWNER not in statuses
        assert clock.slept_s == []

    def test_a_stream_gets_its_second_looks_where_it_pauses(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"1", b"2", b"3")
        slept_at: list[list[float]] = []

        def stream() -> Iterator[bytes | Flush]:
            yield from (b"1", FLUSH)
            slept_at.append(list(clock.slept_s))
            yield from (b"2", b"3", b"gone")

        assert [(o.item_id, o.status) for o in release_items(queue, stream())] == [
            (b"1", Status.RELEASED),
            (b"gone", Status.MISSING),
            (b"2", Status.RELEASED),
            (b"3", Status.RELEASED),
        ]
        assert slept_at == [[1.0]]
        assert clock.slept_s == [1.0, 1.0]

    def test_a_lost_server_is_reported_with_the_number_of_acknowledged_items(
        self, interleaved: Interleaved, clock: FakeClock, foreign: Foreign
    ) -> None:
        """Those that were only looked at are not among them."""
        foreign.abandoned(b"a", b"b", b"c")
        foreign.leased(b"mine", holder=HOLDER)

        def lose(name: str) -> None:
            if name == "release" and clock.slept_s:
                raise ConnectionLost("gone")

        interleaved.before = lose
        queue = WorkQueue(interleaved, QUEUE, holder=HOLDER, clock=clock)
        with pytest.raises(ConnectionLost) as caught:
            list(queue.release_many([b"a", b"mine", b"b", b"c"]))
        assert caught.value.acknowledged == 1

    @pytest.mark.parametrize("count", [31, 2300])
    def test_many_items_are_released(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
    ) -> None:
        pipeline = raw.pipeline()
        Foreign(pipeline).leased(*(b"mine %d" % number for number in range(count)), holder=HOLDER)
        Foreign(pipeline).leased(*(b"theirs %d" % number for number in range(count)))
        pipeline.execute()
        foreign.waiting(b"waiting")
        foreign.data(b"orphaned")
        mine = [b"mine %d" % number for number in range(count)]
        theirs = [b"theirs %d" % number for number in range(count)]
        ids = [*mine, *theirs, b"waiting", b"orphaned", b"gone"]
        random.Random(count).shuffle(ids)
        outcomes = {outcome.item_id: outcome for outcome in queue.release_many(iter(ids))}
        assert outcomes == {
            **{item_id: Outcome(item_id, Status.RELEASED) for item_id in (*mine, b"orphaned")},
            **{item_id: Outcome(item_id, Status.NOT_OWNER, b"them") for item_id in theirs},
            b"waiting": Outcome(b"waiting", Status.ALREADY_WAITING),
            b"gone": Outcome(b"gone", Status.MISSING),
        }
        waiting = raw.lrange(b"jobs:queue", 0, -1)
        assert waiting[-1] == b"waiting"
        assert sorted(waiting) == sorted([*mine, b"orphaned", b"waiting"])
        assert sorted(raw.lrange(b"jobs:processing", 0, -1)) == sorted(theirs)
        assert settling(raw) == {"released": sorted([*mine, b"orphaned"])}
        keys = QueueKeys(QUEUE)
        assert {key for key in contents(raw) if key.startswith(b"jobs:lease")} == {
            key for item_id in theirs for key in (keys.lease(item_id), keys.old_lease(item_id))
        }


def test_no_more_is_read_than_is_returned(server: PrivateServer) -> None:
    """Large items behind small ones: what crosses the limit of a call is the last that it reads."""
    with server.client() as raw:
        raw.flushall()
        sizes = [10] * 40 + [MEGABYTE] * 40
        for number, size in enumerate(sizes):
            raw.set(b"jobs:item:%d" % number, b"x" * size)
            raw.lpush(b"jobs:queue", b"%d" % number)
        raw.config_resetstat()
        leased = lease_from([WorkQueue(Connection(raw), b"jobs")], len(sizes))
        first = next(leased.batches)
        assert len(first.ids) == 40 + 4
        assert raw.info("commandstats")["cmdstat_get"]["calls"] == 40 + 4
