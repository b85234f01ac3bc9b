"""Running a function for each item: `WorkQueue.work`."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from threading import Event, Lock, Thread
from typing import NamedTuple

from rwq_cli.core.clock import LEASE_S, RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.work.job import Ended, ExchangeResult, Job
from rwq_cli.core.work.policy import Done, Failure, Fate, JobEnd, PutBack, RetryPolicy
from rwq_cli.core.work.session import WorkSession
from rwq_cli.core.work.stopping import RECONNECT_S, EndReason, StopConditions, WorkLimits

# The pause after a call that failed.
_RECONNECT_PAUSE_S = 1.0
# An idle worker checks this often whether it is to end, besides being woken.
_IDLE_S = 60.0
# How long the calling thread may take to notice a signal that came at a bad moment.
_SIGNAL_S = 1.0

Handler = Callable[[Job], JobEnd | bytes | None]


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


def work(
    queue: Queue,
    handler: Handler,
    *,
    more_queues: Sequence[Queue] = (),
    fair: bool = False,
    concurrency: int = 1,
    lease_s: float = LEASE_S,
    policy: RetryPolicy | None = None,
    result_ttl_s: float = RESULT_TTL_S,
    drain: bool = False,
    max_items: float = inf,
    max_failures: float = inf,
    idle_s: float = inf,
    reconnect_s: float = RECONNECT_S,
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
        limits = WorkLimits(drain, max_items, max_failures, idle_s, reconnect_s)
        return _Worker(session, handler, limits, stop or StopToken(), on_event).run(concurrency)


class _Worker:
    """Some threads that take items from one session, and one that renews their leases.

    Args:
        session: The session.
        handler: The function.
        limits: When to end.
        stop: The caller's request to end.
        on_event: The listener.
    """

    def __init__(
        self,
        session: WorkSession,
        handler: Handler,
        limits: WorkLimits,
        stop: StopToken,
        on_event: Callable[[WorkEvent], object] | None,
    ) -> None:
        self._session = session
        self._handler = handler
        self._conditions = StopConditions(limits, session)
        self._stop = stop
        self._on_event = on_event
        self._clock = session.clock
        self._fates: Counter[Fate] = Counter()
        self._given_up = 0
        # Items that are taken, or about to be, and not settled.
        self._running = 0
        self._is_waiting = False
        self._failure: BaseException | None = None
        # Protects what was set so far.
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
        why = self._conditions.why or EndReason.STOPPED
        return WorkSummary(dict(self._fates), self._given_up, why)

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
            self._end()
            _wait_for_all(returned)
            raise

    def _serve_or_fail(self, returned: Event) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._failure = self._failure or error
            self._end()
        finally:
            returned.set()

    def _serve(self) -> None:
        """Take one item after the other; the end of one and the next take share a round trip."""
        ends: list[tuple[Job, JobEnd]] = []
        while True:
            reserved = self._reserve()
            sent_s = self._clock.monotonic()
            result = self._session.exchange(ends, take=reserved)
            ends = []
            self._record(result, reserved, sent_s)
            if result.error is not None:
                self._note_error(result.error)
            if result.jobs:
                # What was settled with it may have ended the worker.
                is_ending = self._is_ending()
                ends = [
                    (job, PutBack(front=True) if is_ending else self._run(job))
                    for job in result.jobs
                ]
            elif result.error is not None:
                self._pause()
            elif not reserved:
                return
            elif all(ended.end is not None for ended in result.ended):
                # An item that was given up came in place of a job: do not wait, look again.
                self._wait_for_work()

    def _is_ending(self) -> bool:
        """Whether no more jobs are to be started."""
        with self._lock:
            if self._stop.is_set:
                self._conditions.end(EndReason.STOPPED)
            return self._conditions.why is not None

    def _reserve(self) -> int:
        """Reserve one more item; return 0 if no more are to be taken."""
        if self._is_ending():
            return 0
        with self._lock:
            reserved = self._conditions.reserve(1)
            self._running += reserved
            return reserved

    def _record(self, result: ExchangeResult, reserved: int, sent_s: float) -> None:
        """Count what an exchange settled, and tell the listener."""
        used = [ended for ended in result.ended if not ended.was_unused]
        with self._lock:
            self._conditions.note(result, reserved, sent_s)
            self._running += len(result.jobs) - reserved
            self._running -= sum(ended.end is not None for ended in result.ended)
            self._fates.update(ended.fate for ended in used)
            self._given_up += sum(ended.gave_up for ended in used)
            if not self._running:
                self._conditions.check()
                if self._is_waiting:
                    self._session.wake()
        for job in result.lost:
            self._tell(Lost(job))
        for ended in used:
            self._tell(ended)

    def _tell(self, event: WorkEvent) -> None:
        if self._on_event is not None:
            with self._event_lock:
                self._on_event(event)

    def _run(self, job: Job) -> JobEnd:
        """Call the handler."""
        job.has_started = True
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

    def _end(self) -> None:
        """End all threads after what they run."""
        self._conditions.end(EndReason.STOPPED)
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
        self._note_error(error)
        self._pause()

    def _decide_wait_s(self) -> float:
        """Decide how long to wait for work, seconds; 0 if it is time to look again, or to end."""
        again_s = inf if self._running else self._conditions.check()
        if self._conditions.why is not None or self._stop.is_set:
            return 0.0
        return min(_IDLE_S, again_s - self._clock.monotonic())

    def _note_error(self, error: ServerError) -> None:
        """Tell the listener of a call that failed, or raise its error if that ends the worker."""
        with self._lock:
            is_over = self._conditions.ends_on(error)
        if is_over:
            raise error
        self._tell(Outage(error))

    def _pause(self) -> None:
        """Pause after a call that failed, unless another one has succeeded since."""
        with self._idle_lock:
            if self._session.error is not None:
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
            self._end()


def _wait_for_all(events: Iterable[Event]) -> None:
    for event in events:
        # Python handles a signal that arrives as a wait begins only when the wait ends.
        while not event.wait(_SIGNAL_S):
            pass
