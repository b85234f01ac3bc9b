"""Running a function for each item."""

import gc
import os
import signal
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from math import inf, nan
from typing import Any

import pytest
import redis

from rwq_cli.core import Connection, InvalidArgument, Server, WorkQueue, connect
from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import ServerError, Unreachable
from rwq_cli.core.work.control import (
    Contact,
    EndReason,
    Lost,
    Outage,
    Started,
    StopToken,
    WorkEvent,
)
from rwq_cli.core.work.job import (
    Done,
    Ended,
    Failure,
    Fate,
    GiveUp,
    Job,
    JobEnd,
    Loss,
    OnFail,
    PutBack,
    RetryPolicy,
)
from tests.conftest import QUEUE, Backend, Foreign, StartServer, contents
from tests.driver import until
from tests.long import usual
from tests.proxies import VirtualAddress

AT_ONCE = RetryPolicy(backoff_s=0)


@pytest.fixture
def queue(backend: Backend) -> WorkQueue:
    """The queue under test, on the system's clock."""
    return WorkQueue(backend.connect(), QUEUE)


def ignore(_job: Job) -> None:
    """A handler that does nothing."""


@pytest.mark.parametrize("concurrency", [1, 4])
def test_every_item_is_run_once_and_completed(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, concurrency: int
) -> None:
    ids = [b"%d" % number for number in range(200)]
    foreign.waiting(*ids)
    ran: list[tuple[bytes, bytes]] = []
    summary = queue.work(
        lambda job: ran.append((job.item_id, job.data)), drain=True, concurrency=concurrency
    )
    assert Counter(ran) == Counter((item_id, b"data of " + item_id) for item_id in ids)
    assert (summary.fates, summary.given_up) == ({Fate.COMPLETED: 200}, 0)
    assert summary.why is EndReason.DRAINED
    assert contents(raw) == {}


def test_one_at_a_time_runs_in_the_calling_thread(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2", b"3")
    ran = []
    queue.work(lambda job: ran.append((job.item_id, threading.current_thread())), drain=True)
    assert ran == [(item_id, threading.main_thread()) for item_id in (b"1", b"2", b"3")]


def test_a_handler_says_how_its_job_ended(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    ends: dict[bytes, Any] = {
        b"nothing": None,
        b"bytes": b"result",
        b"done": Done(b"more"),
        b"bury": GiveUp(b"bad data"),
        b"fail": Failure(b"not now"),
        b"back": PutBack(),
    }
    foreign.waiting(*ends)
    summary = queue.work(lambda job: ends[job.item_id], max_items=6)
    assert summary.fates == {Fate.COMPLETED: 3, Fate.BURIED: 1, Fate.RETRY: 1, Fate.RELEASED: 1}
    assert (summary.given_up, summary.why) == (1, EndReason.MAX_ITEMS)
    results = [queue.result(item_id).result for item_id in (b"nothing", b"bytes", b"done")]
    assert [kept and kept.result for kept in results] == [None, b"result", b"more"]
    assert raw.get(queue.keys.lease(b"bury")) == b"rwq-buried:bad data"
    assert raw.zrange(queue.keys.delayed, 0, -1) == [b"fail"]
    assert raw.lrange(queue.keys.main, 0, -1) == [b"back"]


def test_an_exception_is_retried_then_buried(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    attempts: list[tuple[int, bool]] = []

    def fail(job: Job) -> None:
        if job.item_id == b"1":
            attempts.append((job.attempt, job.is_last))
            raise ValueError(f"number {job.attempt} \ud800")

    summary = queue.work(fail, drain=True, policy=AT_ONCE)
    assert attempts == [(1, False), (2, False), (3, False), (4, True)]
    assert summary.fates == {Fate.RETRY: 3, Fate.BURIED: 1, Fate.COMPLETED: 1}
    assert summary.given_up == 1
    assert raw.get(queue.keys.lease(b"1")) == b"rwq-buried:ValueError: number 4 \\ud800"


@pytest.mark.parametrize(
    "value",
    [
        *(3, GiveUp("text"), Failure(None), Done(1)),  # type: ignore[arg-type]
        *(PutBack(rest_s=rest_s) for rest_s in (nan, inf, -1)),
    ],
)
def test_a_value_that_is_no_end_is_a_failed_attempt(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, value: Any
) -> None:
    foreign.waiting(b"1")
    summary = queue.work(lambda _job: value, drain=True, policy=RetryPolicy(1, backoff_s=0))
    assert summary.fates == {Fate.RETRY: 1, Fate.BURIED: 1}
    reason = raw.get(queue.keys.lease(b"1"))
    assert f"the handler returned a {type(value).__name__}, w".encode() in (reason or b"")


class WithoutText(Exception):
    def __str__(self) -> str:
        raise LookupError


def test_an_exception_without_text_is_a_failed_attempt(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1")

    def fail(_job: Job) -> None:
        raise WithoutText

    assert queue.work(fail, drain=True, policy=RetryPolicy(0)).fates == {Fate.BURIED: 1}
    reason = raw.get(queue.keys.lease(b"1"))
    assert reason == b"rwq-buried:WithoutText: its text raises LookupError"


def test_a_list_of_too_few_ends_says_so(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    summary = queue.work(lambda _jobs: [None], batch=2, drain=True, policy=RetryPolicy(0))
    assert summary.fates == {Fate.BURIED: 2}
    reason = raw.get(queue.keys.lease(b"1"))
    assert reason == b"rwq-buried:the handler returned 1 ends for 2 jobs"


@pytest.mark.parametrize(
    ("value", "what"),
    [(5, "int, which is not a JobEnd"), (PutBack(rest_s=-1), "PutBack, with a value")],
)
def test_a_wrong_end_is_named_by_its_kind(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, value: Any, what: str
) -> None:
    foreign.waiting(b"1")
    assert queue.work(lambda _: value, drain=True, policy=RetryPolicy(0)).fates == {Fate.BURIED: 1}
    assert f"returned a {what}".encode() in raw.get(queue.keys.lease(b"1"))


class Coroutine:
    async def __call__(self, _job: Job) -> None:
        """Never awaited."""


@pytest.mark.parametrize(
    "handler", [Coroutine(), Coroutine().__call__, partial(Coroutine()), None, "resize"]
)
def test_what_is_no_function_is_refused_at_once(
    queue: WorkQueue, foreign: Foreign, handler: Any
) -> None:
    foreign.waiting(b"1")
    with pytest.raises(TypeError, match=r"coroutine function|not (NoneType|str)"):
        queue.work(handler, drain=True)
    assert queue.counts().waiting == 1


def test_a_drain_waits_for_its_own_retries_only(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    foreign.delayed(b"later", 32_000_000_000_000)
    ran = []

    def fail_once(job: Job) -> None:
        ran.append(job.item_id)
        if job.attempt == 1:
            raise ValueError

    policy = RetryPolicy(backoff_s=0.2, jitter=0)
    summary = queue.work(fail_once, drain=True, policy=policy)
    assert ran == [b"1", b"1"]
    assert summary.fates == {Fate.RETRY: 1, Fate.COMPLETED: 1}


def test_a_short_rest_does_not_wait_for_a_longer_one(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    ran: list[bytes] = []

    def rest_once(job: Job) -> PutBack | None:
        ran.append(job.item_id)
        if ran.count(job.item_id) > 1:
            return None
        if job.item_id == b"2":
            until(lambda: raw.lrange(queue.keys.main, 0, -1) == [b"1"])
        return PutBack(rest_s=3600 if job.item_id == b"1" else 0.05)

    summary = queue.work(rest_once, drain=True, concurrency=2)
    assert summary.fates == {Fate.RELEASED: 2, Fate.COMPLETED: 2}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_worker_ends_after_its_items(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, concurrency: int
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(9)))
    summary = queue.work(ignore, max_items=5, concurrency=concurrency)
    assert (summary.fates, summary.why) == ({Fate.COMPLETED: 5}, EndReason.MAX_ITEMS)
    assert raw.llen(queue.keys.main) == 4
    assert raw.llen(queue.keys.processing) == 0


def test_a_worker_ends_when_it_is_idle(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    summary = queue.work(ignore, idle_s=0.05)
    assert (summary.fates, summary.why) == ({Fate.COMPLETED: 1}, EndReason.IDLE)


def test_a_worker_ends_after_the_last_try_of_an_item(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    policy = RetryPolicy(retries=0, on_fail=OnFail.STOP)
    summary = queue.work(lambda _job: Failure(b"no"), policy=policy)
    assert (summary.given_up, summary.why) == (1, EndReason.ON_FAIL)
    assert raw.lrange(queue.keys.main, 0, -1) == [b"1", b"2"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_others_at_the_last_failure_are_put_back(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, concurrency: int
) -> None:
    ids = [b"%d" % number for number in range(9)]
    foreign.waiting(*ids)
    events: list[WorkEvent] = []
    summary = queue.work(
        lambda _job: GiveUp(b"no"), max_failures=3, concurrency=concurrency, on_event=events.append
    )
    ran = {event.job.item_id for event in events if isinstance(event, Started)}
    assert len(ran) == len([event for event in events if isinstance(event, Ended)])
    assert (summary.fates, summary.why) == ({Fate.BURIED: len(ran)}, EndReason.MAX_FAILURES)
    assert 3 <= len(ran) < 3 + concurrency
    waiting = raw.lrange(queue.keys.main, 0, -1)
    assert sorted(waiting) == [item_id for item_id in ids if item_id not in ran]
    assert raw.exists(queue.keys.returns, queue.keys.processing) == 0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_token_stops_a_worker_after_its_job(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, concurrency: int
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(20)))
    stop = StopToken()
    summary = queue.work(lambda _job: stop.set(), stop=stop, concurrency=concurrency)
    assert summary.why is EndReason.STOPPED
    assert 1 <= summary.fates[Fate.COMPLETED] <= concurrency
    assert raw.llen(queue.keys.main) == 20 - summary.fates[Fate.COMPLETED]
    assert raw.llen(queue.keys.processing) == 0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_token_stops_an_idle_worker_at_once(queue: WorkQueue, concurrency: int) -> None:
    stop = StopToken()
    threading.Timer(0.1, stop.set).start()
    assert queue.work(ignore, stop=stop, concurrency=concurrency).why is EndReason.STOPPED


def test_a_drain_ends_when_the_last_of_several_is_done(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"1")

    def add_one(job: Job) -> None:
        # The others are idle by now; the new item is theirs, too.
        time.sleep(0.1)
        if job.item_id == b"1":
            foreign.waiting(b"2")

    summary = queue.work(add_one, drain=True, concurrency=3)
    assert summary.fates == {Fate.COMPLETED: 2}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_interrupt_puts_running_items_back_in_front(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, concurrency: int
) -> None:
    foreign.waiting(b"1", b"2")

    def interrupt(_job: Job) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        queue.work(interrupt, concurrency=concurrency)
    waiting = raw.lrange(queue.keys.main, 0, -1)
    # Two threads may learn of their items in another order.
    assert (waiting if concurrency == 1 else sorted(waiting, reverse=True)) == [b"2", b"1"]
    assert raw.exists(queue.keys.returns, queue.keys.processing) == 0


@pytest.mark.parametrize("last", ["1", "2"])
def test_an_interrupt_lets_several_functions_return(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, last: str
) -> None:
    foreign.waiting(b"1", b"2", b"3")
    both = threading.Barrier(2)

    def interrupt(_job: Job) -> None:
        if both.wait(30) == 0:
            # The calling thread is waiting by then.
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
        # Whichever thread is the last is waited for.
        time.sleep(0.5 if threading.current_thread().name.endswith(last) else 0.2)

    with pytest.raises(KeyboardInterrupt):
        queue.work(interrupt, concurrency=2)
    assert raw.lrange(queue.keys.main, 0, -1) == [b"3"]
    assert raw.exists(queue.keys.item(b"1"), queue.keys.item(b"2")) == 0
    assert raw.exists(queue.keys.processing) == 0


def test_a_listener_that_raises_ends_the_worker(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")

    def refuse(event: WorkEvent) -> None:
        assert not isinstance(event, Started), "refused"

    with pytest.raises(AssertionError, match="refused"):
        queue.work(ignore, drain=True, on_event=refuse)
    assert raw.lrange(queue.keys.main, 0, -1) == [b"2", b"1"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_listener_that_raises_is_told_of_each_loss(
    queue: WorkQueue, foreign: Foreign, concurrency: int
) -> None:
    foreign.waiting(b"1", b"2", b"3", b"4")
    told: list[bytes] = []

    def refuse(event: WorkEvent) -> None:
        if isinstance(event, Lost):
            told.append(event.job.item_id)
            raise ValueError(len(told))

    def lose(jobs: list[Job]) -> None:
        for job in jobs:
            foreign.lease(job.item_id)
        until(lambda: len(told) >= len(jobs))

    with pytest.raises(ValueError, match="1"):
        queue.work(lose, batch=4, for_s=1, concurrency=concurrency, on_event=refuse)
    assert sorted(told) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(("concurrency", "has_end"), [(1, True), (2, False)])
def test_a_stopped_worker_ends_though_the_server_hangs(
    start_server: StartServer, concurrency: int, has_end: bool
) -> None:
    server, stop, ended = start_server(), StopToken(), list[Ended]()

    def hang() -> None:
        os.kill(server.process.pid, signal.SIGSTOP)
        # What waits for work begins its next look.
        threading.Timer(0 if has_end else 1.5, stop.set).start()

    def note(event: WorkEvent) -> None:
        if isinstance(event, Contact) and not has_end:
            hang()
        if isinstance(event, Ended):
            ended.append(event)

    with connect(Server(server.url, reply_timeout_s=10**6)) as connection:
        queue = WorkQueue(connection, QUEUE)
        if has_end:
            queue.add(b"data")
        summary = queue.work(
            lambda _job: hang(), stop=stop, stop_s=1, concurrency=concurrency, on_event=note
        )
    os.kill(server.process.pid, signal.SIGCONT)
    assert summary.why is EndReason.STOPPED
    assert [event.job.loss for event in ended] == [Loss.UNACKNOWLEDGED] * has_end


def test_a_refused_end_ends_the_worker(start_server: StartServer) -> None:
    server, events = start_server("--proto-max-bulk-len", "1mb"), list[WorkEvent]()
    limits: dict[str, Any] = {"for_s": 1, "reconnect_s": 0.5, "drain": True}
    with connect(Server(server.url)) as connection:
        queue = WorkQueue(connection, QUEUE)
        queue.add(b"data")
        with pytest.raises(ServerError):
            queue.work(lambda _job: bytes(1 << 21), on_event=events.append, **limits)
    lost = [event.job.loss for event in events if isinstance(event, Ended)]
    assert lost == [Loss.UNACKNOWLEDGED]
    assert [type(event) for event in events].count(Outage) == 1


def test_impossible_options_are_refused(queue: WorkQueue) -> None:
    with pytest.raises(InvalidArgument):
        queue.work(ignore, concurrency=0)


# Leases.


@pytest.mark.parametrize("slow", ["handler", "listener"])
def test_a_lease_is_renewed_while_the_handler_runs(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, slow: str
) -> None:
    foreign.waiting(b"1")

    def wait_for_renewals(at: object) -> None:
        if isinstance(at, Job if slow == "handler" else Started):
            for _ in range(2):
                raw.pexpire(queue.keys.lease(b"1"), 100_000)
                until(lambda: raw.pttl(queue.keys.lease(b"1")) <= 1500)

    summary = queue.work(wait_for_renewals, drain=True, for_s=1.5, on_event=wait_for_renewals)
    assert summary.fates == {Fate.COMPLETED: 1}


def test_leases_are_renewed_while_an_error_ends_it(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    refused = threading.Event()

    def refuse(event: WorkEvent) -> None:
        if isinstance(event, Lost):
            refused.set()
            raise ValueError("refused")

    def run(job: Job) -> None:
        if job.item_id == b"1":
            foreign.lease(b"1")
        assert refused.wait(30)
        if job.item_id == b"1":
            return
        raw.pexpire(queue.keys.lease(b"2"), 100_000)
        until(lambda: raw.pttl(queue.keys.lease(b"2")) <= 1500)

    with pytest.raises(ValueError, match="refused"):
        queue.work(run, concurrency=2, for_s=1.5, on_event=refuse)
    assert raw.exists(queue.keys.item(b"2")) == 0


def test_an_item_whose_lease_was_lost_is_not_completed(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1")
    events: list[WorkEvent] = []
    lost = threading.Event()

    def note(event: WorkEvent) -> None:
        events.append(event)
        if isinstance(event, Lost):
            lost.set()

    def lose(job: Job) -> None:
        foreign.lease(b"1")
        lost.wait(30)
        assert job.loss is Loss.TAKEN

    summary = queue.work(lose, drain=True, for_s=1, on_event=note)
    assert summary.fates == {Fate.LOST: 1}
    assert [type(event) for event in events] == [Contact, Started, Lost, Ended]
    assert raw.get(queue.keys.lease(b"1")) == b"them"
    assert raw.exists(queue.keys.item(b"1"))


def test_a_function_can_ask_for_its_lease(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1")

    def ask(job: Job) -> None:
        assert job.touch(for_s=600)
        assert raw.ttl(queue.keys.lease(b"1")) > 500
        foreign.lease(b"1")
        assert not job.is_lost
        assert not job.touch()
        assert (job.is_lost, job.loss) == (True, Loss.TAKEN)

    summary = queue.work(ask, max_items=1)
    assert (summary.fates["lost"], summary.fates["completed"]) == (1, 0)


def test_a_job_leased_too_long_ago_is_not_run(connection: Connection, foreign: Foreign) -> None:
    class Late(Connection):
        """On which the first lease ends on the way."""

        late_s = 0.0

        def call_all(self, commands: Any, **options: Any) -> list[Any]:
            replies = super().call_all(commands, **options)
            if not self.late_s and foreign.raw.exists(foreign.keys.lease(b"1")):
                # Not of this copy alone.
                Late.late_s = 100.0
                foreign.lease(b"1")
            return replies

        def monotonic(self) -> float:
            return Clock().monotonic() + self.late_s

    foreign.waiting(b"1", b"2")
    late = Late(connection.client(), connection.name)
    clock = Clock()
    clock.monotonic = late.monotonic  # type: ignore[method-assign]
    ran: list[bytes] = []
    WorkQueue(late, QUEUE, clock=clock).work(
        lambda job: ran.append(job.item_id), for_s=60, drain=True
    )
    assert ran == [b"2"]


# A server that is gone.


def _interrupt_service(raw: redis.Redis, socket: "os.PathLike[str]", seconds: float) -> None:
    """Let no client reach the server for so long."""
    hidden = f"{os.fspath(socket)}.hidden"
    os.rename(socket, hidden)
    raw.client_kill_filter(_type="normal", skipme=True)
    time.sleep(seconds)
    os.rename(hidden, socket)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_server_that_comes_back_in_time_loses_no_job(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    monkeypatch.setattr("rwq_cli.core.work.loop.RECONNECT_PAUSE_S", 0.05)
    server = start_server()
    ids = [b"%d" % number for number in range(6)]
    events: list[WorkEvent] = []
    ran: list[bytes] = []
    with server.client() as raw:
        Foreign(raw).waiting(*ids)
        connection = connect(Server(server.url))
        gone: list[Any] = []

        def run(job: Job) -> None:
            if not gone:
                gone.append(
                    threading.Thread(target=_interrupt_service, args=(raw, server.socket, 0.4))
                )
                gone[0].start()
            ran.append(job.item_id)
            time.sleep(0.1)

        summary = WorkQueue(connection, QUEUE).work(
            run, drain=True, for_s=60, concurrency=concurrency, on_event=events.append
        )
        gone[0].join()
        connection.close()
        assert summary.fates == {Fate.COMPLETED: 6}
        assert sorted(ran) == ids
        assert contents(raw) == {}
    assert any(isinstance(event, Outage) for event in events)


@pytest.mark.ci
def test_an_outage_seen_by_renewals_ends_when_told(start_server: StartServer) -> None:
    server = start_server()
    events: list[WorkEvent] = []
    with server.client() as raw:
        Foreign(raw).waiting(b"1")
        hidden = f"{server.socket}.hidden"

        def seen(kind: type[WorkEvent]) -> int:
            return sum(isinstance(event, kind) for event in events)

        def run(_job: Job) -> None:
            os.rename(server.socket, hidden)
            raw.client_kill_filter(_type="normal", skipme=True)
            until(lambda: seen(Outage))
            os.rename(hidden, server.socket)
            until(lambda: seen(Contact) == 2)

        with connect(Server(server.url)) as connection:
            WorkQueue(connection, QUEUE).work(run, drain=True, for_s=12, on_event=events.append)
    (again,) = [event for event in events[1:] if isinstance(event, Contact)]
    assert again.after_s is not None


@pytest.mark.ci
def test_a_link_that_has_died_silently_loses_no_job(start_server: StartServer) -> None:
    server = start_server()
    with server.client() as raw, closing(VirtualAddress(server.socket)) as address:
        Foreign(raw).waiting(b"1")

        def run(_job: Job) -> None:
            address.forget(resets=False)
            # Longer than a lease.
            time.sleep(13)

        with connect(Server(address.url)) as connection:
            summary = WorkQueue(connection, QUEUE).work(run, drain=True, for_s=12)
    assert summary.fates == {Fate.COMPLETED: 1}


def test_a_server_that_was_never_there_ends_the_worker(tmp_path: Any) -> None:
    connection = connect(Server(f"unix://{tmp_path}/none"))
    with pytest.raises(Unreachable):
        WorkQueue(connection, QUEUE).work(ignore, reconnect_s=0)


@pytest.mark.ci
def test_memory_does_not_grow_with_the_number_of_items(
    connection: Connection, raw: redis.Redis
) -> None:
    # Which nothing follows that another test has left.
    queue, foreign = WorkQueue(connection, b"memory"), Foreign(raw, b"memory")
    items = usual(2_000, long=100_000)
    sizes: list[int] = []
    snapshots: list[tracemalloc.Snapshot] = []

    def run(job: Job) -> Callable[[], None] | Any:
        number = int(job.item_id)
        if number in (items // 3, items - 1):
            # What failed is in cycles, with its traceback.
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            snapshots.append(tracemalloc.take_snapshot())
        return Failure(b"why") if number % 100 == 0 else None

    for first in range(0, items, 1000):
        foreign.waiting(*(b"%d" % number for number in range(first, first + 1000)))
    tracemalloc.start()
    try:
        queue.work(run, max_items=items)
    finally:
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 20_000, snapshots[1].compare_to(snapshots[0], "lineno")[:9]


@pytest.mark.parametrize("is_forgiven", [True, False])
@pytest.mark.parametrize("end", [Failure(b"why"), PutBack(front=True)])
def test_a_failure_counts_if_the_worker_was_stopped(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis, end: JobEnd, is_forgiven: bool
) -> None:
    foreign.waiting(b"1")
    policy, attempts = RetryPolicy(3, backoff_s=0), []
    for _ in range(4):
        stop = StopToken()

        def be_stopped(job: Job, stop: StopToken = stop) -> JobEnd:
            attempts.append(job.attempt)
            before = raw.hget(queue.keys.returns, "1")
            stop.set()
            if is_forgiven and before is not None:
                until(lambda: raw.hget(queue.keys.returns, "1") != before)
            # Every other attempt is put back.
            return end if len(attempts) % 2 else Failure(b"why")

        queue.work(be_stopped, stop=stop, policy=policy, for_s=2)
    all_fail = isinstance(end, Failure)
    assert attempts == ([1, 2, 3, 4] if all_fail else [1, 1, 2, 2])
    assert raw.hget(queue.keys.returns, "1") == (b"3" if all_fail else b"2")
    assert queue.counts().buried == all_fail


def test_what_a_worker_was_told_to_stop_is_not_counted(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    """As if each was killed, a second after SIGTERM, three times."""
    foreign.waiting(b"1")
    for _ in range(3):
        stop = StopToken()

        def be_killed(_job: Job, stop: StopToken = stop) -> PutBack:
            before = raw.hget(queue.keys.returns, "1")
            stop.set()
            until(lambda: before is None or raw.hget(queue.keys.returns, "1") != before)
            # The clean that comes when its lease has ended.
            raw.delete(queue.keys.lease(b"1"), queue.keys.old_lease(b"1"))
            queue.light_clean(grace_s=0, bury_after=3)
            return PutBack()

        queue.work(be_killed, stop=stop, for_s=2)
    assert queue.counts().waiting == 1
    assert raw.hgetall(queue.keys.returns) == {b"1": b"1"}
