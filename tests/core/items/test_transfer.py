"""Moves between queues that no script reaches together: turns, and what cuts leave."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from threading import Event

import pytest
from redis import Redis

from rwq_cli.core import Connection, Outcome, Server, State, Status, WorkQueue, connect
from rwq_cli.core.batches import FLUSH, Budget, Flush
from rwq_cli.core.errors import DataLost, LockLost, OutOfMemory, PermissionDenied, ReadOnly
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.lock import LOCK_MS
from rwq_cli.core.items.move import move
from rwq_cli.core.items.transfer import Transfer
from rwq_cli.core.server.connection import WINDOW_CALLS
from tests.conftest import FakeClock, Foreign, Interleaved, StartServer, contents
from tests.servers import PrivateServer
from tests.support import Journal

IDS = [b"a", b"b", b"c"]
LOCK = "jobs:move-lock"
_TO = b"being moved to jobs on %b; the same rwq mv finishes it"
_FROM = b"being moved here from jobs on %b; the same rwq mv finishes it"


@pytest.fixture
def far(server: PrivateServer) -> Iterator[WorkQueue]:
    """A queue in another database."""
    with connect(Server(f"{server.url}?db=1")) as connection:
        yield WorkQueue(connection, b"jobs")


@pytest.fixture
def left_by_older_rwq(queue: WorkQueue, far: WorkQueue) -> Callable[[bytes, bytes], None]:
    """Leave an original and a copy as a cut move of 0.2 did, with no note of what it removed."""

    def leave(original: bytes, copy: bytes) -> None:
        if original:
            queue.add(b"data of " + original, original)
            queue.bury(original, reason=_TO % far.connection.address.encode())
        if copy:
            far.add(b"data of " + copy, copy)
            far.bury(copy, reason=_FROM % queue.connection.address.encode())

    return leave


def test_to_another_database(
    queue: WorkQueue, far: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b", b"there")
    foreign.leased(b"leased")
    far.add(b"another", b"there")
    wanted = [b"a", b"b", b"there", b"leased", b"gone"]
    planned = [o.status for o in move(queue, wanted, far, Journal(), dry_run=True)]
    assert planned == [
        *(Status.MOVED, Status.MOVED, Status.CONFLICT, Status.NOT_OWNER, Status.MISSING)
    ]
    assert [o.status for o in move(queue, wanted, far, Journal(), dry_run=False)] == planned
    assert [item.item_id for item in far.lease_many(9)] == [b"there", b"a", b"b"]
    assert raw.lrange("jobs:queue", 0, -1) == [b"there"]
    assert raw.lrange("jobs:processing", 0, -1) == [b"leased"]
    assert not {b"jobs:buried", b"jobs:item:a", b"jobs:lease:a"} & {*raw.keys()}
    assert raw.keys("jobs:move*") == []


def test_an_interrupt_waits_for_what_is_in_transit(
    interleaved: Interleaved, far: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(*IDS)
    stop, statuses = interleaved.stop, []

    def interrupt(call: str) -> None:
        stop.requested |= call == "remove_buried"

    interleaved.before = interrupt
    moved = move(WorkQueue(interleaved, b"jobs"), IDS, far, Journal())
    with pytest.raises(KeyboardInterrupt):
        statuses.extend(outcome.status for outcome in moved)
    assert (stop.requested, statuses) == (True, [Status.MOVED] * 3)
    assert [item.item_id for item in far.lease_many(9)] == IDS
    assert raw.keys("jobs:*") == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("CONFIG SET maxmemory 1", OutOfMemory),
        ("CONFIG SET min-replicas-to-write 1", ReadOnly),
        ("ACL SETUSER default -lpush", PermissionDenied),
    ],
)
def test_a_destination_that_refuses_writes(
    queue: WorkQueue,
    start_server: StartServer,
    raw: Redis,
    foreign: Foreign,
    command: str,
    error: type[Exception],
    dry_run: bool,
) -> None:
    foreign.waiting(*IDS)
    before = contents(raw)
    with connect(Server(start_server().url, patience_s=0)) as connection:
        connection.call(*command.split())
        with pytest.raises(error):
            list(move(queue, IDS, WorkQueue(connection, b"jobs"), Journal(), dry_run=dry_run))
    assert contents(raw) == before


@pytest.mark.parametrize(
    ("before", "is_source"),
    [
        *product(["move", "put", "remove_buried", "push_scheduled"], [True, False]),
        *(("GETDEL", False), ("failover", False)),
    ],
)
def test_a_flush_in_the_middle_is_told(
    interleaved: Interleaved, far: WorkQueue, foreign: Foreign, before: str, is_source: bool
) -> None:
    foreign.waiting(*IDS)
    lossy = (interleaved if is_source else far.connection).client()

    def lose(call: str) -> None:
        if call == before:
            lossy.flushdb()
        elif before == "failover" and call == "push_scheduled":
            # What was written a second earlier has reached the replica.
            lossy.delete("jobs:item:a")

    here, there = (WorkQueue(Interleaved(q, lose), b"jobs") for q in (interleaved, far.connection))
    end = "socket" if is_source else "db=1"
    with pytest.raises(DataLost, match=f"jobs on .*{end} has lost data") as caught:
        list(move(here, IDS, there, Journal()))
    assert (caught.value.hint or "").startswith("at the destination") is is_source


class TestTurns:
    def test_a_second_move_waits_and_says_for_whom(
        self, queue: WorkQueue, far: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(*IDS)
        raw.set(LOCK, "ann@ops1:17:ab", px=15_000)
        messages: list[str] = []
        queue.connection.on_wait = messages.append

        def end() -> None:
            if len(clock.slept_s) == 4:
                assert raw.llen("jobs:queue") == 3
                raw.delete(LOCK)

        clock.during_sleep = end
        assert {outcome.status for outcome in queue.move_many(IDS, far)} == {Status.MOVED}
        assert messages == ["waiting for another move of jobs, by ann@ops1:17:ab"]
        assert raw.exists(LOCK) == 0

    def test_other_moves_and_dry_runs_take_no_lock(
        self, queue: WorkQueue, far: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(*IDS)
        raw.set(LOCK, "ann@ops1:17:ab", px=15_000)
        assert queue.move(b"a", to=b"other")[0].status is Status.MOVED
        assert {o.status for o in move(queue, IDS[1:], far, dry_run=True)} == {Status.MOVED}
        assert raw.get(LOCK) == b"ann@ops1:17:ab"

    def test_rounds_give_others_their_turn(
        self,
        queue: WorkQueue,
        interleaved: Interleaved,
        far: WorkQueue,
        raw: Redis,
        foreign: Foreign,
    ) -> None:
        another = queue
        queue = WorkQueue(interleaved, b"jobs", clock=FakeClock())
        transfer = Transfer(queue, far, force=False)
        for item_id in IDS:
            foreign.waiting(item_id)
            interleaved.calls.clear()
            assert [o.status for o in move(queue, [item_id], far, transfer=transfer)] == [
                Status.MOVED
            ]
            assert ("ZRANGE" in "".join(interleaved.calls)) is (item_id == b"a")
            assert raw.exists(LOCK) == 0
        foreign.waiting(b"cut", b"d")
        _cut(another, far, [b"cut"], "remove_buried")
        assert [o.status for o in move(queue, [b"d"], far, transfer=transfer)] == [
            Status.FINISHED,
            Status.MOVED,
        ]

    @pytest.mark.parametrize("has_ended", [False, True])
    def test_one_stopped_for_long_ends_and_says_so(
        self,
        interleaved: Interleaved,
        connection: Connection,
        far: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        has_ended: bool,
    ) -> None:
        """Another has its turn after the items were buried; or has had it before their removal."""
        foreign.waiting(*IDS)
        clock, another = FakeClock(), WorkQueue(connection, b"jobs")
        statuses: list[Status] = []

        def stop(name: str) -> None:
            if name == "put" and not has_ended:
                clock.now_s += 20
                raw.set(LOCK, "another")
            elif name == "remove_buried" and has_ended and not statuses:
                clock.now_s += 20
                raw.delete(LOCK)
                statuses.extend(outcome.status for outcome in move(another, IDS, far))

        interleaved.before = stop
        with pytest.raises(LockLost, match="another move of jobs") as caught:
            list(move(WorkQueue(interleaved, b"jobs", clock=clock), IDS, far, Journal()))
        assert (caught.value.in_doubt, caught.value.doubtful) == (True, 3)
        raw.delete(LOCK)
        statuses += (outcome.status for outcome in move(WorkQueue(connection, b"jobs"), [], far))
        assert [status for status in statuses if status is Status.FINISHED] == [Status.FINISHED] * 3
        assert [item.item_id for item in far.lease_many(9)] == IDS
        assert raw.keys("jobs:[^m]*") == []

    def test_burying_over_a_slow_line_keeps_the_lock(
        self,
        monkeypatch: pytest.MonkeyPatch,
        interleaved: Interleaved,
        far: WorkQueue,
        raw: Redis,
        foreign: Foreign,
    ) -> None:
        """The replies to the calls that bury take longer than a lock lasts."""
        clock, renewed_s, buries = FakeClock(), 0.0, 0
        ids = [b"%d" % number for number in range(2 * WINDOW_CALLS)]
        foreign.waiting(*ids)

        def budget(_: WorkQueue, script: str) -> Budget:
            return Budget(items=1 if script == "put" else 2)

        def wait(name: str) -> None:
            nonlocal renewed_s, buries
            if name == "lock":
                renewed_s = clock.now_s
            elif name == "put":
                buries += 1
                # As many calls are sent before the first reply is read.
                clock.now_s += buries > WINDOW_CALLS
                if clock.now_s - renewed_s > LOCK_MS / 1000:
                    raw.set(LOCK, "another")

        monkeypatch.setattr(WorkQueue, "budget", budget)
        interleaved.before = wait
        moved = move(WorkQueue(interleaved, b"jobs", clock=clock), ids, far, Journal())
        assert [outcome.status for outcome in moved] == [Status.MOVED] * len(ids)
        assert (buries, clock.now_s > LOCK_MS / 1000) == (len(ids), True)

    @pytest.mark.parametrize(
        ("late", "after"),
        [("remove_buried", "remove_buried"), ("restore", "TIME"), ("restore", "")],
    )
    def test_a_late_call_loses_and_repeats_nothing(
        self,
        server: PrivateServer,
        queue: WorkQueue,
        far: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        late: str,
        after: str,
    ) -> None:
        """A mover that lost its turn is heard once more after a call of the next one, or when that
        has ended and all items were completed there."""
        foreign.waiting(*IDS)
        held, heard, ended = Event(), Event(), Event()
        calls, completed = list[str](), list[bytes]()

        def hold(call: str) -> None:
            if call == late and not held.is_set():
                held.set()
                heard.wait(9)

        def hear(call: str) -> None:
            if calls and calls[-1] == after and not heard.is_set():
                heard.set()
                ended.wait(9)
            calls.append(call)

        def move_late(here: WorkQueue, there: WorkQueue) -> None:
            with suppress(LockLost):
                list(move(here, IDS, there, Journal()))
            ended.set()

        def complete() -> None:
            ids = [item.item_id for item in far.lease_many(9)]
            completed.extend(outcome.item_id for outcome in far.complete_many(ids))

        first = connect(Server(server.url)), connect(Server(f"{server.url}?db=1"))
        with first[0], first[1], ThreadPoolExecutor(1) as pool:
            ends = (WorkQueue(Interleaved(end, hold), b"jobs") for end in first)
            moving = pool.submit(move_late, *ends)
            assert held.wait(9)
            raw.delete(LOCK)
            here, there = (
                WorkQueue(Interleaved(q.connection, hear), b"jobs") for q in (queue, far)
            )
            list(move(here, [], there, Journal()))
            complete()
            heard.set()
            moving.result(9)
        raw.delete(LOCK)
        list(move(queue, raw.lrange("jobs:queue", 0, -1), far, Journal()))
        complete()
        assert sorted(completed) == IDS
        assert far.connection.client().keys("jobs:*") == []


def _cut(
    queue: WorkQueue, far: WorkQueue, ids: Iterable[bytes | Flush], before: str, nth: int = 1
) -> None:
    """Kill a move before the nth such call to either queue."""

    class Killed(BaseException):
        pass

    def kill(call: str) -> None:
        nonlocal nth
        nth -= call == before
        if nth == 0:
            raise Killed

    here, there = (WorkQueue(Interleaved(end.connection, kill), b"jobs") for end in (queue, far))
    with pytest.raises(Killed):
        list(move(here, ids, there, Journal()))
    queue.connection.call("DEL", LOCK)


class TestCut:
    """What a move has left that was killed."""

    @pytest.mark.parametrize("before", ["remove_buried", "push_scheduled"])
    @pytest.mark.parametrize("renamed", ["source", "destination", "both"])
    def test_a_move_by_other_addresses_knows_its_copies(
        self,
        server: PrivateServer,
        queue: WorkQueue,
        far: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        renamed: str,
        before: str,
    ) -> None:
        folder, _, socket = server.url.rpartition("/")
        other = f"{folder}/./{socket}"
        with connect(Server(other)) as source, connect(Server(f"{other}?db=1")) as destination:
            here = WorkQueue(source if renamed != "destination" else queue.connection, b"jobs")
            there = WorkQueue(destination if renamed != "source" else far.connection, b"jobs")
            foreign.waiting(*IDS, b"d")
            _cut(queue, far, IDS, before)
            is_removed = before == "remove_buried"
            statuses = [outcome.status for outcome in queue.remove_many(IDS)]
            assert statuses == [Status.REMOVED if is_removed else Status.MISSING] * 3
            list(move(here, [b"d"], there))
        list(move(queue, [b"d"], far))
        arrived = [item.item_id for item in far.lease_many(9)]
        assert arrived == [*(() if is_removed else IDS), b"d"]
        assert raw.keys("jobs:[^m]*") == []

    def test_a_move_goes_on_to_no_other_server(
        self, server: PrivateServer, queue: WorkQueue, foreign: Foreign
    ) -> None:
        first, second = (
            WorkQueue(connect(Server(f"{server.url}?db={db}")), b"jobs") for db in (1, 2)
        )
        foreign.waiting(b"a")
        queue.bury(b"a", reason=_TO % first.connection.address.encode())
        assert [*queue.move_many([], second), *second.lease_many(9)] == []
        assert [*queue.move_many([], first)] == [Outcome(b"a", Status.FINISHED)]
        assert [item.item_id for item in first.lease_many(9)] == [b"a"]

    @pytest.mark.parametrize("before", ["remove_buried", "push_scheduled"])
    def test_another_source_of_one_address_leaves_copies(
        self,
        server: PrivateServer,
        queue: WorkQueue,
        far: WorkQueue,
        foreign: Foreign,
        before: str,
    ) -> None:
        """Each host moves its queue from redis://localhost."""
        foreign.waiting(*IDS)
        _cut(queue, far, IDS, before)
        messages: list[str] = []
        with connect(Server(f"{server.url}?db=2")) as connection:
            connection.address = queue.connection.address
            connection.on_wait = messages.append
            assert list(move(WorkQueue(connection, b"jobs"), [], far)) == []
        (message,) = messages
        assert message.startswith("rwq: jobs has items in transit that this source does not know: ")
        assert list(far.lease_many(9)) == []
        finished = [(outcome.item_id, outcome.status) for outcome in move(queue, [], far)]
        assert finished == [(item_id, Status.FINISHED) for item_id in IDS]
        assert [item.item_id for item in far.lease_many(9)] == IDS

    def test_two_cut_moves_leave_what_they_removed_known(
        self, queue: WorkQueue, far: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(*IDS)
        _cut(queue, far, IDS, "push_scheduled")
        _cut(queue, far, [], "push_scheduled")
        assert {raw.ttl(key) for key in raw.keys("jobs:moved:*")} == {-1}
        assert {outcome.status for outcome in move(queue, [], far)} == {Status.FINISHED}
        assert [item.item_id for item in far.lease_many(9)] == IDS
        assert all(raw.ttl(key) > 0 for key in raw.keys("jobs:moved:*"))

    def test_one_of_an_older_rwq_is_finished(
        self,
        queue: WorkQueue,
        far: WorkQueue,
        left_by_older_rwq: Callable[[bytes, bytes], None],
    ) -> None:
        left_by_older_rwq(b"a", b"a")
        left_by_older_rwq(b"b", b"")
        left_by_older_rwq(b"", b"c")
        assert {o.item_id: o.status for o in queue.move_many([], far)} == dict.fromkeys(
            IDS, Status.FINISHED
        )
        assert [item.item_id for item in far.lease_many(9)] == [b"c", b"a", b"b"]

    def test_an_address_that_leads_to_the_source_now(
        self, server: PrivateServer, queue: WorkQueue, foreign: Foreign
    ) -> None:
        folder, _, socket = server.url.rpartition("/")
        with connect(Server(f"{folder}/./{socket}")) as connection:
            foreign.buried(b"a", _TO % connection.address.encode())
            same = WorkQueue(connection, b"jobs")
            assert list(queue.move_many([], same)) == [Outcome(b"a", Status.CONFLICT)]
        assert queue.state(b"a") is State.WAITING

    def test_an_id_that_is_used_again_in_one_turn(
        self, queue: WorkQueue, far: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")

        def ids() -> Iterator[bytes | Flush]:
            yield b"a"
            yield FLUSH
            far.remove(b"a")
            foreign.waiting(b"a")
            yield b"a"

        _cut(queue, far, ids(), "remove_buried", nth=2)
        assert list(queue.move_many([], far)) == [Outcome(b"a", Status.FINISHED)]

    def test_a_copy_of_an_item_kicked_here_is_removed(
        self,
        queue: WorkQueue,
        far: WorkQueue,
        left_by_older_rwq: Callable[[bytes, bytes], None],
    ) -> None:
        left_by_older_rwq(b"a", b"a")
        queue.kick(b"a")
        assert list(queue.move_many([], far)) == []
        assert (queue.state(b"a"), far.state(b"a")) == (State.WAITING, State.GONE)

    def test_no_copy_is_given_beside_a_possible_original(
        self, queue: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.buried(b"a", _FROM % b"x")
        foreign.buried(b"b", _TO % b"x")
        ends = [queue.release(b"a"), queue.release(b"a", delay_s=9), queue.bury(b"a", reason=b"x")]
        assert [outcome.status for (outcome,) in ends] == [Status.MOVING] * 3
        ends = [queue.complete(b"a"), queue.remove(b"a")]
        ends.append(queue.move(b"a", to=b"other", force=True))
        ends.append(list(queue.edit_many([(b"a", b"data of a", b"new data")])))
        assert [outcome.status for (outcome,) in ends] == [Status.MOVING] * 4
        ((item, is_leased),) = lease_ids(queue, [b"a"])
        assert (is_leased, item.state) == (False, State.BURIED)
        assert queue.bury(b"b")[0].status is Status.BURIED
        assert queue.bury(b"b")[0].status is Status.ALREADY_BURIED
        statuses = [outcome.status for outcome in queue.kick_many([b"a", b"b"])]
        assert statuses == [Status.MOVING, Status.KICKED]
        assert queue.release(b"a", force=True)[0].status is Status.RELEASED
