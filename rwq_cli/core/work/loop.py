"""The loop of a worker: it takes items, has them run, renews their leases meanwhile, and ends them.

Each of some threads takes an item, runs it, and ends it with the call that takes the next one. One
more thread renews the leases of all. Whatever fails in one of them ends the worker.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from threading import Event, Lock, Thread

from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.work.control import (
    Contact,
    EndReason,
    Failed,
    Lost,
    Outage,
    Started,
    StopConditions,
    StopToken,
    WorkEvent,
    WorkLimits,
    WorkSummary,
)
from rwq_cli.core.work.job import ExchangeResult, Job
from rwq_cli.core.work.policy import Done, Failure, GiveUp, JobEnd, OnFail, PutBack
from rwq_cli.core.work.session import WorkSession

# The pause after a call that failed.
_RECONNECT_PAUSE_S = 1.0
# An idle worker checks this often whether it is to end, besides being woken.
_IDLE_S = 60.0
# How long the calling thread may take to notice a signal that came at a bad moment, and how late
# leases are renewed after the machine or this process was frozen.
_LOOK_S = 1.0
# How long a thread takes nothing after an item was released or stopped the worker: it may be the
# only one, and fail at once again.
_REST_S = 1.0

Value = JobEnd | bytes | None
Handler = Callable[[Job], Value] | Callable[[list[Job]], Value]


class Worker:
    """Some threads that take items from one session, and one that renews their leases.

    The arguments are those of `WorkQueue.work`.
    """

    def __init__(
        self,
        session: WorkSession,
        handler: Callable[..., Value],
        limits: WorkLimits,
        *,
        batch: int | None = None,
        stop: StopToken | None = None,
        on_event: Callable[[WorkEvent], object] | None = None,
    ) -> None:
        self._session = session
        self._handler = handler
        self._batch = batch
        self._limits = limits
        self._conditions = StopConditions(limits, session)
        self._stop = stop or StopToken()
        self._on_event = on_event
        self._clock = session.clock
        self._is_waiting = False
        self._failure: BaseException | None = None
        # Whether the server has answered, and since when it does not.
        self._has_contact = False
        self._out_since_s: float | None = None
        # Protects what was set so far.
        self._lock = Lock()
        self._event_lock = Lock()
        # Only one thread waits for work or for the server; the others wait for it.
        self._idle_lock = Lock()
        self._has_ended = Event()

    def run(self, concurrency: int) -> WorkSummary:
        """Work until the end."""
        if concurrency < 1 or (self._batch or 1) < 1:
            raise InvalidArgument(
                "the concurrency and the batch must be at least 1", "give 1 or more"
            )
        self._stop.sessions.append(self._session)
        renewer = Thread(target=self._renew, name="rwq-renewals", daemon=True)
        try:
            renewer.start()
            if concurrency == 1:
                self._serve(0)
            else:
                self._serve_in_threads(concurrency)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._record(self._session.release_all())
            for ended in self._session.held.abandon():
                self._tell(ended)
            raise
        finally:
            self._stop.sessions.remove(self._session)
            self._has_ended.set()
            if renewer.ident is not None:
                renewer.join()
        return self._conditions.summary()

    def _serve_in_threads(self, concurrency: int) -> None:
        # Not joined: before Python 3.13, a join that is interrupted takes its thread for ended.
        returned: list[Event] = []

        def serve(slot: int, event: Event) -> None:
            try:
                self._serve(slot)
            except BaseException as error:
                self._fail(error)
            finally:
                event.set()

        try:
            for slot in range(concurrency):
                event, name = Event(), f"rwq-work-{slot + 1}"
                Thread(target=serve, args=(slot, event), name=name, daemon=True).start()
                returned.append(event)
            _wait_for_all(returned)
        except BaseException as error:
            self._fail(error)
            _wait_for_all(returned)
            raise

    def _fail(self, error: BaseException) -> None:
        """End all threads after what they run."""
        self._failure = self._failure or error
        self._conditions.end(EndReason.STOPPED)
        self._session.waiter.wake()
        # The listener may be what failed.
        with suppress(Exception):
            self._tell(Failed(error))

    # Taking, running and ending items.

    def _serve(self, slot: int) -> None:
        """Take one item after the other; the end of one and the next take share a round trip."""
        ends: list[tuple[Job, JobEnd]] = []
        while True:
            rest_s = max((self._rest_s(job, end) for job, end in ends), default=0.0)
            reserved = 0 if rest_s or self._is_ending() or self._stop.is_paused else self._reserve()
            sent_s = self._clock.monotonic()
            result = self._session.exchange(ends, take=reserved)
            if result.error is None and (ends or reserved):
                self._note_contact()
            ends = []
            self._record(result, reserved, sent_s)
            if result.error is not None:
                self._note_error(result.error)
            if result.jobs:
                for job in self._session.renew_late(result.jobs):
                    self._tell(Lost(job))
                jobs = [job for job in result.jobs if job.loss is None]
                # What was settled with them may have ended the worker.
                is_over = not jobs or self._is_ending()
                end = PutBack(front=True) if is_over else self._run(jobs, slot)
                ends = [(job, end) for job in result.jobs]
            elif result.error is not None:
                self._pause()
            elif rest_s:
                until_s = time.monotonic() + rest_s
                while not self._is_ending() and (left_s := until_s - time.monotonic()) > 0:
                    time.sleep(min(0.1, left_s))
            elif reserved:
                # An item that was given up came in place of a job: do not wait, look again.
                if all(ended.end is not None for ended in result.ended):
                    self._wait_for_work()
            elif self._stop.is_paused and not self._is_ending():
                self._wait_while_paused()
            else:
                return

    def _is_ending(self) -> bool:
        """Whether no more jobs are to be started."""
        if self._stop.is_set:
            self._conditions.end(EndReason.STOPPED)
        self._conditions.drains |= self._stop.drains
        return self._conditions.why is not None

    def _reserve(self) -> int:
        with self._lock:
            return self._conditions.reserve(self._batch or 1)

    def _record(self, result: ExchangeResult, reserved: int = 0, sent_s: float = -inf) -> None:
        """Count what an exchange settled, and tell the listener."""
        with self._lock:
            self._conditions.note(result, reserved, sent_s)
            if not self._conditions.unsettled:
                self._conditions.check()
                if self._is_waiting:
                    self._session.waiter.wake()
        for job in result.lost:
            self._tell(Lost(job))
        for ended in result.ended:
            if not ended.was_unused:
                self._tell(ended)

    def _tell(self, event: WorkEvent) -> None:
        if self._on_event is not None:
            with self._event_lock:
                self._on_event(event)

    def _run(self, jobs: Sequence[Job], slot: int) -> JobEnd:
        """Call the handler; whatever it raises but an `Exception` puts the items back."""
        try:
            for job in jobs:
                job.has_started, job.slot = True, slot
                self._tell(Started(job))
            try:
                value = self._handler(jobs[0] if self._batch is None else list(jobs))
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                return Failure(text.encode("utf-8", "backslashreplace"))
            if value is None or isinstance(value, bytes):
                return Done(value)
            if not isinstance(value, Done | Failure | PutBack | GiveUp):
                raise TypeError(f"the handler returned a {type(value).__name__}")
            return value
        except BaseException:
            # Although others still run.
            self._record(self._session.exchange([(job, PutBack(front=True)) for job in jobs]))
            raise

    def _rest_s(self, job: Job, end: JobEnd) -> float:
        """How long a thread takes nothing after this end, seconds."""
        if isinstance(end, PutBack):
            return end.rest_s
        policy = self._session.held.policy
        is_released = isinstance(end, Failure) and policy.on_fail is OnFail.RELEASE
        return _REST_S if is_released and policy.is_last(job.attempt) else 0.0

    # Waiting for work, and for the server.

    def _wait_for_work(self) -> None:
        """Wait until there may be work, or it is time to end."""
        with self._idle_lock:
            with self._lock:
                wait_s = self._decide_wait_s()
                self._is_waiting = wait_s > 0
            try:
                if wait_s > 0:
                    self._session.wait_for_work(wait_s)
                    self._note_contact()
                return
            except ServerError as failure:
                error = failure
            finally:
                self._is_waiting = False
        self._note_error(error)
        self._pause()

    def _decide_wait_s(self) -> float:
        """Decide how long to wait for work, seconds; 0 if it is time to look again, or to end."""
        again_s = inf if self._conditions.unsettled else self._conditions.check()
        if self._conditions.why is not None or self._stop.is_set or self._stop.is_paused:
            return 0.0
        return min(_IDLE_S, again_s - self._clock.monotonic())

    def _wait_while_paused(self) -> None:
        with self._idle_lock:
            if self._stop.is_paused and not self._is_ending():
                self._session.waiter.pause(_IDLE_S)
        with self._lock:
            # Nobody has looked for work meanwhile.
            self._conditions.look_again()

    def _note_contact(self) -> None:
        """Note that a call succeeded."""
        if self._has_contact and self._out_since_s is None:
            return
        with self._lock:
            since_s, self._out_since_s = self._out_since_s, None
            is_news, self._has_contact = since_s is not None or not self._has_contact, True
        if is_news:
            self._tell(Contact(None if since_s is None else self._clock.monotonic() - since_s))

    def _note_error(self, error: ServerError) -> None:
        """Tell the listener of a call that failed, or raise its error if that ends the worker."""
        with self._lock:
            # A server that was never reached probably has another address.
            is_over = not self._has_contact or self._conditions.ends_on(error)
        if is_over:
            raise error
        self._note_outage(error)

    def _note_outage(self, error: ServerError) -> None:
        with self._lock:
            if self._out_since_s is None:
                self._out_since_s = self._session.failing_since_s
        self._tell(Outage(error, self._limits.reconnect_s))

    def _pause(self) -> None:
        """Pause after a call that failed, unless another one has succeeded since."""
        with self._idle_lock:
            if self._session.error is not None:
                self._session.waiter.pause(_RECONNECT_PAUSE_S)

    # Renewing leases.

    def _renew(self) -> None:
        """Renew leases while handlers run."""
        session, longest_s = self._session, min(_LOOK_S, self._session.lease_s / 6)
        try:
            while not self._has_ended.wait(max(0.01, min(longest_s, session.next_renewal_s))):
                if self._stop.is_set:
                    with suppress(ServerError):
                        session.forgive()
                if session.next_renewal_s > 0:
                    continue
                for job in session.renew():
                    self._tell(Lost(job))
                if session.error is None:
                    self._note_contact()
                else:
                    self._note_outage(session.error)
        except BaseException as error:
            self._fail(error)


def _wait_for_all(events: Iterable[Event]) -> None:
    for event in events:
        # Python handles a signal that arrives as a wait begins only when the wait ends.
        while not event.wait(_LOOK_S):
            pass
