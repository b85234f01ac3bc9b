"""Running a function for each item: `WorkQueue.work`."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from math import inf
from threading import Event, Lock, Thread
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.results import RESULT_TTL_S
from rwq_cli.core.work.job import Ended, ExchangeResult, Job
from rwq_cli.core.work.policy import Done, Failure, Fate, GiveUp, JobEnd, RetryPolicy
from rwq_cli.core.work.session import WorkSession

# The pause after a call that failed.
_RECONNECT_PAUSE_S = 1.0
# An idle worker checks this often whether it is to end, besides being woken.
_IDLE_S = 60.0
# How long the calling thread may take to notice a signal that came at a bad moment.
_SIGNAL_S = 1.0

Handler = Callable[[Job], JobEnd | bytes | None]


class EndReason(StrEnum):
    """Why a worker ended."""

    STOPPED = "stopped"
    DRAINED = "drained"
    IDLE = "idle"
    MAX_ITEMS = "max-items"
    MAX_FAILURES = "max-failures"
    ON_FAIL = "on-fail"


class Started(NamedTuple):
    """A job begins."""

    job: Job


class Lost(NamedTuple):
    """A running job has lost its item; its handler goes on, and its result is ignored."""

    job: Job


class Outage(NamedTuple):
    """A call failed, and is tried again."""

    error: ServerError


WorkEvent = Started | Ended | Lost | Outage


class WorkSummary(NamedTuple):
    """What a worker did.

    Attributes:
        fates: How many jobs had which fate.
        given_up: How many items were buried, rejected, or released after the last attempt.
        why: Why it ended.
    """

    fates: dict[Fate, int]
    given_up: int
    why: EndReason


class StopToken:
    """Asks workers to finish what they run and end; for other threads and signal handlers."""

    def __init__(self) -> None:
        self._is_set = False
        self._sessions: list[WorkSession] = []

    @property
    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._is_set

    def set(self) -> None:
        """Take no more items."""
        self._is_set = True
        # A copy: other threads may end their sessions meanwhile.
        for session in list(self._sessions):
            session.wake()

    def watch(self, session: WorkSession) -> None:
        """Wake this session when the token is set."""
        self._sessions.append(session)

    def forget(self, session: WorkSession) -> None:
        """Stop waking this session."""
        self._sessions.remove(session)


class WorkRules(NamedTuple):
    """When a worker ends, and how long it waits for a server that is gone.

    Attributes:
        drain: End when no queue has an item to lease, and this worker has no retries pending.
        max_items: End after this many items.
        max_failures: End after this many failures.
        idle_s: End after this time without work, seconds.
        reconnect_s: How long a server may be gone, seconds.
    """

    drain: bool = False
    max_items: float = inf
    max_failures: float = inf
    idle_s: float = inf
    reconnect_s: float = 300.0


def work(
    queue: Queue,
    handler: Handler,
    *,
    more_queues: Sequence[Queue] = (),
    fair: bool = False,
    concurrency: int = 1,
    lease_s: float = 300.0,
    policy: RetryPolicy | None = None,
    result_ttl_s: float = RESULT_TTL_S,
    drain: bool = False,
    max_items: float = inf,
    max_failures: float = inf,
    idle_s: float = inf,
    reconnect_s: float = 300.0,
    stop: StopToken | None = None,
    on_event: Callable[[WorkEvent], object] | None = None,
) -> WorkSummary:
    """Call a function for each item, until the worker is to end.

    The item is completed when the function returns, and kept leased until then; bytes that it
    returns are kept as the result. An exception is a failed attempt: the item is retried later, and
    after its last attempt buried with the exception as the reason. A function can also return
    `PutBack` or `GiveUp`, or a `Failure` of its own. Nothing is done with an item whose lease was
    lost.

    An exception that is not an `Exception`, such as KeyboardInterrupt, puts the item back and ends
    the worker. With several functions at once, an interrupt of the calling thread takes no more
    items and is raised when they have returned; a second one puts their items back.

    Args:
        queue: The queue.
        handler: The function. With a concurrency of 1 it runs in the calling thread, else in
            several threads at once.
        more_queues: More queues, in order of preference after this one, on the same connection.
        fair: Try the queues in random order instead.
        concurrency: How many functions run at once.
        lease_s: How long a lease lasts, seconds; it is renewed while the function runs.
        policy: When failed items are tried again; None for the default.
        result_ttl_s: How long results are kept, seconds.
        drain: End when no queue has an item to lease, and this worker has no retries pending.
        max_items: End after this many items.
        max_failures: End after this many failures.
        idle_s: End after this time without work, seconds.
        reconnect_s: How long the server may be gone, seconds. Then the error is raised.
        stop: Ends the worker after the items that run.
        on_event: Called for each event, by one thread at a time.

    Raises:
        InvalidArgument: A number is too small, or the queues are not on one connection.
        TypeError: The handler returned something else than None, bytes or a `JobEnd`.
        ServerError: The server refused a call, or was gone for too long. A clean returns items that
            are still leased when their leases have ended.
    """
    if concurrency < 1:
        raise InvalidArgument("the concurrency must be at least 1", "give 1 or more")
    queues = (queue, *more_queues)
    with WorkSession(
        queues, lease_s=lease_s, policy=policy, fair=fair, result_ttl_s=result_ttl_s
    ) as session:
        rules = WorkRules(drain, max_items, max_failures, idle_s, reconnect_s)
        return _Worker(session, handler, rules, stop or StopToken(), on_event).run(concurrency)


class _Worker:
    """Some threads that take items from one session, and one that renews their leases.

    Args:
        session: The session.
        handler: The function.
        rules: When to end.
        stop: The caller's request to end.
        on_event: The listener.
    """

    def __init__(
        self,
        session: WorkSession,
        handler: Handler,
        rules: WorkRules,
        stop: StopToken,
        on_event: Callable[[WorkEvent], object] | None,
    ) -> None:
        self._session = session
        self._handler = handler
        self._rules = rules
        self._stop = stop
        self._on_event = on_event
        self._clock = session.clock
        self._fates: Counter[Fate] = Counter()
        self._given_up = self._failures = 0
        # Items that are taken, or about to be, and not settled; and all that were taken so far.
        self._running = self._taken = 0
        self._is_waiting = False
        self._why: EndReason | None = None
        self._failure: BaseException | None = None
        self._busy_s = self._clock.monotonic()
        self._lock = Lock()
        self._event_lock = Lock()
        # Only one thread waits for work or for the server; the others wait for it.
        self._idle_lock = Lock()
        self._has_ended = Event()

    def run(self, concurrency: int) -> WorkSummary:
        """Work until the end."""
        self._stop.watch(self._session)
        renewer = Thread(target=self._renew, name="rwq-renewals", daemon=True)
        renewer.start()
        try:
            if concurrency == 1:
                self._serve()
            else:
                self._serve_in_threads(concurrency)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._session.release_all()
            raise
        finally:
            self._stop.forget(self._session)
            self._has_ended.set()
            renewer.join()
        return WorkSummary(dict(self._fates), self._given_up, self._why or EndReason.STOPPED)

    def _serve_in_threads(self, concurrency: int) -> None:
        # Not joined: before Python 3.13, a join that is interrupted takes its thread for ended.
        returned: list[Event] = []
        try:
            for number in range(1, concurrency + 1):
                event = Event()
                Thread(
                    target=self._serve_or_fail,
                    args=(event,),
                    name=f"rwq-work-{number}",
                    daemon=True,
                ).start()
                returned.append(event)
            _wait_for_all(returned)
        except BaseException:
            self._end(EndReason.STOPPED)
            _wait_for_all(returned)
            raise

    def _serve_or_fail(self, returned: Event) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._failure = self._failure or error
            self._end(EndReason.STOPPED)
        finally:
            returned.set()

    def _serve(self) -> None:
        """Take one item after the other; the end of one and the next take share a round trip."""
        ends: list[tuple[Job, JobEnd]] = []
        while True:
            takes = self._reserve()
            result = self._session.exchange(ends, take=int(takes))
            ends = []
            self._record(result, takes)
            if result.error is not None and not result.error.is_transient:
                raise result.error
            if result.jobs:
                ends = [(job, self._run_counted(job)) for job in result.jobs]
            elif result.error is not None:
                self._wait_for_server(result.error)
            elif not takes:
                return
            elif all(ended.end is not None for ended in result.ended):
                # An item that was given up came in place of a job: do not wait, look again.
                self._wait_for_work()

    def _reserve(self) -> bool:
        """Reserve one more item; return False if no more are to be taken."""
        with self._lock:
            if self._stop.is_set:
                self._why = self._why or EndReason.STOPPED
            if self._why is not None:
                return False
            if self._taken >= self._rules.max_items:
                return False
            self._taken += 1
            self._running += 1
            return True

    def _record(self, result: ExchangeResult, takes: bool) -> None:
        """Count what an exchange settled, and tell the listener."""
        with self._lock:
            if takes and not result.jobs:
                self._taken -= 1
                self._running -= 1
            for ended in result.ended:
                self._running -= ended.end is not None
                self._fates[ended.fate] += 1
                self._given_up += ended.step.gave_up and ended.fate is not Fate.LOST
                if ended.end is None:
                    self._taken += 1
                    self._count_failure()
            if result.jobs or result.ended:
                self._busy_s = self._clock.monotonic()
            if self._taken >= self._rules.max_items and not self._running:
                self._why = self._why or EndReason.MAX_ITEMS
            if self._is_waiting and not self._running:
                self._session.wake()
        for job in result.lost:
            self._tell(Lost(job))
        for ended in result.ended:
            self._tell(ended)

    def _count_failure(self) -> None:
        self._failures += 1
        if self._failures >= self._rules.max_failures:
            self._why = self._why or EndReason.MAX_FAILURES

    def _tell(self, event: WorkEvent) -> None:
        if self._on_event is not None:
            with self._event_lock:
                self._on_event(event)

    def _run_counted(self, job: Job) -> JobEnd:
        """Run a job. Whether its failure ends the worker is known before the next take."""
        end = self._call_handler(job)
        if isinstance(end, Failure | GiveUp):
            with self._lock:
                self._count_failure()
                if self._session.policy.step(end, job.attempt, 0.0).stops:
                    self._why = self._why or EndReason.ON_FAIL
        return end

    def _call_handler(self, job: Job) -> JobEnd:
        """Call the handler."""
        if self._on_event is not None:
            self._tell(Started(job))
        try:
            value = self._handler(job)
        except Exception as error:
            return Failure(f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace"))
        if value is None or isinstance(value, bytes):
            return Done(value)
        if not isinstance(value, JobEnd):
            raise TypeError(f"the handler returned a {type(value).__name__}")
        return value

    def _end(self, why: EndReason) -> None:
        """End all threads after what they run."""
        self._why = self._why or why
        self._session.wake()

    def _wait_for_work(self) -> None:
        """Wait until there may be work, or it is time to end."""
        with self._idle_lock:
            with self._lock:
                wait_s = self._decide_wait_s()
                self._is_waiting = wait_s > 0
            try:
                if wait_s > 0:
                    self._session.wait_for_work(wait_s)
                return
            except ServerError as failure:
                error = failure
            finally:
                self._is_waiting = False
        self._wait_for_server(error)

    def _decide_wait_s(self) -> float:
        """Decide how long to wait for work, seconds: 0, and why, if it is time to end."""
        waits_s = [_IDLE_S]
        if not self._running:
            now_s = self._clock.monotonic()
            ends_s = {EndReason.IDLE: self._busy_s + self._rules.idle_s}
            if self._rules.drain:
                ends_s[EndReason.DRAINED] = self._session.last_retry_s
            for why, end_s in ends_s.items():
                waits_s.append(end_s - now_s)
                if end_s <= now_s:
                    self._why = self._why or why
        return 0.0 if self._why is not None or self._stop.is_set else min(waits_s)

    def _wait_for_server(self, error: ServerError) -> None:
        """Pause after a call that failed, or raise its error if it is useless to repeat it."""
        if not error.is_transient:
            raise error
        self._tell(Outage(error))
        with self._idle_lock:
            if self._session.error is None:
                return
            gone_s = self._clock.monotonic() - self._session.failing_since_s
            if gone_s >= self._rules.reconnect_s:
                raise error
            self._session.pause(_RECONNECT_PAUSE_S)

    def _renew(self) -> None:
        """Renew leases while handlers run."""
        session, longest_s = self._session, self._session.lease_s / 6
        try:
            while not self._has_ended.wait(max(0.01, min(longest_s, session.next_renewal_s))):
                if session.next_renewal_s > 0:
                    continue
                for job in session.renew():
                    self._tell(Lost(job))
                if session.error is not None:
                    self._tell(Outage(session.error))
        except BaseException as error:
            self._failure = self._failure or error
            self._end(EndReason.STOPPED)


def _wait_for_all(events: Iterable[Event]) -> None:
    for event in events:
        # Python handles a signal that arrives as a wait begins only when the wait ends.
        while not event.wait(_SIGNAL_S):
            pass
