"""What a worker tells, how it is asked to end, and when it ends: one set of rules for all."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import AuthenticationFailed, PermissionDenied, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.work.job import Ended, ExchangeResult, Fate, Job, RetryPolicy

if TYPE_CHECKING:
    from rwq_cli.core.work.session import WorkSession

RECONNECT_S = 300.0
STOP_S = 10.0


class Started(NamedTuple):
    """A job begins."""

    job: Job


class Lost(NamedTuple):
    """A job has lost its item before its end; its handler goes on, and its result is ignored."""

    job: Job


class Outage(NamedTuple):
    """The server is lost; calls are tried again, for this many seconds in all."""

    error: ServerError
    patience_s: float


class Contact(NamedTuple):
    """The server answers: for the first time, or again after this many seconds."""

    after_s: float | None


class Failed(NamedTuple):
    """The worker ends because of this error, when the functions that run have returned."""

    error: BaseException


WorkEvent = Started | Ended | Lost | Outage | Contact | Failed


class EndReason(StrEnum):
    """Why a worker ended."""

    STOPPED = "stopped"
    DRAINED = "drained"
    IDLE = "idle"
    MAX_ITEMS = "max-items"
    MAX_FAILURES = "max-failures"
    ON_FAIL = "on-fail"


class WorkSummary(NamedTuple):
    """What a worker did: how many jobs had which fate, and why it ended.

    `given_up` items were buried, rejected, or released after the last attempt. A fate that no job
    had counts 0.
    """

    fates: Counter[Fate]
    given_up: int
    why: EndReason


class WorkOptions(TypedDict, total=False):
    """The options of `WorkQueue.work` that do not depend on the function."""

    more_queues: Sequence[Queue]
    fair: bool
    concurrency: int
    for_s: float
    policy: RetryPolicy | None
    result_ttl_s: float
    drain: bool
    max_items: float
    max_failures: float
    idle_s: float
    reconnect_s: float
    rate: float
    stop: "StopToken | None"
    stop_s: float
    on_event: Callable[[WorkEvent], object] | None


class StopToken:
    """Asks workers to end, or to pause; for other threads and signal handlers."""

    def __init__(self) -> None:
        self.is_set = self.is_paused = self.drains = False
        # Since when, on the clock of the workers, and how long ends may take to be acknowledged.
        self.since_s, self.within_s = -inf, inf
        # Those of the workers that it asks; copied before use, because they end meanwhile.
        self.sessions: set[WorkSession] = set()

    def set(self, *, within_s: float = inf) -> None:
        """Finish what runs, and end; when nothing runs, within so many seconds, if that is less
        than the worker's own `stop_s`."""
        if not self.is_set:
            self.since_s = Clock().monotonic()
        self.is_set, self.within_s = True, min(self.within_s, within_s)
        self._wake()

    def pause(self, *, is_paused: bool = True) -> None:
        """Take nothing for now, or go on."""
        self.is_paused = is_paused
        self._wake()

    def drain(self) -> None:
        """End when there is nothing to take."""
        self.drains = True
        self._wake()

    def renew(self) -> list[Job]:
        """Renew all leases now; returns the jobs whose leases were found lost."""
        return [job for session in list(self.sessions) for job in session.renew()]

    def _wake(self) -> None:
        for session in list(self.sessions):
            session.waiter.wake()


@dataclass
class StopConditions:
    """Counts what a worker does, and decides by its limits when it ends; see `WorkQueue.work`."""

    session: "WorkSession"
    drains: bool = False
    max_items: float = inf
    max_failures: float = inf
    idle_s: float = inf
    reconnect_s: float = RECONNECT_S
    # Items a second.
    rate: float = inf
    # None while it goes on.
    why: EndReason | None = None
    _fates: Counter[Fate] = field(default_factory=Counter)
    _taken: int = 0
    _failures: int = 0
    _given_up: int = 0
    # When the last exchange was sent, if it was to take items and there were none; else None.
    _empty_at_s: float | None = None
    # From when on the rate allows another item.
    _next_take_s: float = -inf
    _idle_since_s: float | None = None

    def end(self, why: EndReason) -> None:
        self.why = self.why or why

    @property
    def pause_s(self) -> float:
        """How long nothing is taken yet, because of the rate, seconds."""
        return max(0.0, self._next_take_s - self.session.clock.monotonic())

    def may_take(self, count: int) -> int:
        return int(max(0, min(count, self.max_items - self._taken)))

    def note(self, result: ExchangeResult, asked: int, sent_s: float) -> None:
        """Note the result of an exchange that `asked` for so many. It may end the worker."""
        jobs_taken = len(result.jobs)
        for ended in result.ended:
            if ended.was_unused:
                self._taken -= 1
                continue
            # Without an end, it was taken, and given up at once.
            jobs_taken += ended.end is None
            self._fates[ended.fate] += 1
            self._failures += ended.has_failed
            if ended.gave_up:
                self._given_up += 1
                if ended.step.stops:
                    self.end(EndReason.ON_FAIL)
        self._taken += jobs_taken
        if jobs_taken:
            now_s = self.session.clock.monotonic()
            self._next_take_s = max(now_s, self._next_take_s) + jobs_taken / self.rate
        if self._failures >= self.max_failures:
            self.end(EndReason.MAX_FAILURES)
        if jobs_taken or result.ended:
            # What has ended may have added items.
            self.look_again()
        if asked and not jobs_taken and result.error is None:
            self._empty_at_s = sent_s

    def look_again(self) -> None:
        """Note that there may be items to take, and that the worker was not idle."""
        self._empty_at_s = self._idle_since_s = None

    def check(self) -> float:
        """Decide whether a worker ends that runs nothing and whose exchanges have all returned. If
        not: returns when it is to try to take items again, and then to check again."""
        if self._taken >= self.max_items:
            self.end(EndReason.MAX_ITEMS)
        if self.why is not None or self._empty_at_s is None:
            return inf
        now_s = self.session.clock.monotonic()
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        again_s = self._idle_since_s + self.idle_s
        if again_s <= now_s:
            self.end(EndReason.IDLE)
        if self.drains:
            # Whatever was retried is in the queues, or was taken by another worker.
            last_retry_s = self.session.held.last_retry_s
            if self._empty_at_s >= last_retry_s:
                self.end(EndReason.DRAINED)
            again_s = min(again_s, last_retry_s)
        return again_s

    def ends_on(self, error: ServerError) -> bool:
        """Whether a failed call ends the worker. The time of an outage is not idle time."""
        self._idle_since_s = None
        # Another call may have succeeded since, but the end of a job has a time of its own.
        gone_s = self.session.clock.monotonic() - self.session.outage_since_s
        is_over = gone_s >= self.reconnect_s
        # A password or permissions may be changed step by step.
        may_pass = error.is_transient or isinstance(error, AuthenticationFailed | PermissionDenied)
        return is_over or not may_pass

    def summary(self) -> WorkSummary:
        return WorkSummary(self._fates, self._given_up, self.why or EndReason.STOPPED)


class Listener:
    """Tells of what happens, one event at a time, whichever thread notes it."""

    def __init__(
        self, conditions: StopConditions, on_event: Callable[[WorkEvent], object] | None
    ) -> None:
        self._conditions, self._session = conditions, conditions.session
        self._on_event, self._turn = on_event, RLock()
        # Whether it was told that the server does not answer; None before the server has.
        self._is_out: bool | None = None
        self._out_since_s = 0.0

    def tell(self, *events: WorkEvent) -> None:
        """Tell of all events, whatever the listener does; then raise its first error."""
        if self._on_event is None:
            return
        errors: list[BaseException] = []
        for event in events:
            try:
                with self._turn:
                    self._on_event(event)
            except BaseException as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def note_contact(self) -> None:
        """Tell when the server begins to answer, and when it no longer does."""
        error = self._session.outage
        if self._is_out is (error is not None):
            # A listener may be slow, and renewals do not wait for it without a reason.
            return
        with self._turn:
            was_out, self._is_out = self._is_out, error is not None
            if error is not None and not was_out:
                self._out_since_s = self._session.outage_since_s
                self.tell(Outage(error, self._conditions.reconnect_s))
            elif error is None and was_out is not False:
                after_s = self._session.clock.monotonic() - self._out_since_s if was_out else None
                self.tell(Contact(after_s))

    def note_error(self, error: ServerError) -> None:
        """Tell of a call that failed, or raise its error if that ends the worker."""
        # A server that was never reached probably has another address.
        if self._is_out is None or self._conditions.ends_on(error):
            raise error
        self.note_contact()
