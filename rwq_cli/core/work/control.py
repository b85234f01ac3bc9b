"""What a worker tells, how it is asked to end, and when it ends: one set of rules for all."""

from collections import Counter
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.errors import AuthenticationFailed, ServerError
from rwq_cli.core.work.job import Ended, ExchangeResult, Job
from rwq_cli.core.work.policy import Fate

if TYPE_CHECKING:
    from rwq_cli.core.work.session import WorkSession

RECONNECT_S = 300.0


class Started(NamedTuple):
    """A job begins."""

    job: Job


class Lost(NamedTuple):
    """A running job has lost its item; its handler goes on, and its result is ignored."""

    job: Job


class Outage(NamedTuple):
    """A call failed, and is tried again, for this many seconds in all."""

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
    """Asks workers to end, or to pause; for other threads and signal handlers.

    Attributes:
        is_set: Whether to finish what runs and end.
        is_paused: Whether to take nothing for now.
        drains: Whether to end when there is nothing to take.
    """

    def __init__(self) -> None:
        self.is_set = self.is_paused = self.drains = False
        # Of the workers that it asks; copied before use, because their threads end them meanwhile.
        self.sessions: list[WorkSession] = []

    def set(self) -> None:
        """Take no more items."""
        self.is_set = True
        self._wake()

    def pause(self, *, is_paused: bool = True) -> None:
        """Take nothing for now, or go on."""
        self.is_paused = is_paused
        self._wake()

    def drain(self) -> None:
        """End when there is nothing to take."""
        self.drains = True
        self._wake()

    @property
    def held(self) -> list[Job]:
        """The jobs whose ends the server has not acknowledged."""
        return [job for session in list(self.sessions) for job in session.held.all]

    def renew(self) -> list[Job]:
        """Renew all leases now; returns the jobs whose leases were found lost."""
        return [job for session in list(self.sessions) for job in session.renew()]

    def _wake(self) -> None:
        for session in list(self.sessions):
            session.waiter.wake()


class WorkLimits(NamedTuple):
    """When a worker ends, and how long it waits for a server that is gone; see `WorkQueue.work`."""

    drain: bool = False
    max_items: float = inf
    max_failures: float = inf
    idle_s: float = inf
    reconnect_s: float = RECONNECT_S


class StopConditions:
    """Counts what a worker does, and decides by its limits when it ends. It is not thread-safe.

    It is told of each exchange, by `reserve` before and `note` after. All times are on the clock of
    the session.
    """

    def __init__(self, limits: WorkLimits, session: "WorkSession") -> None:
        self._limits = limits
        self._session = session
        self.drains = limits.drain
        # None while it goes on.
        self.why: EndReason | None = None
        # How many items are taken, or about to be, and not settled.
        self.unsettled = 0
        self._fates: Counter[Fate] = Counter()
        self._taken = self._failures = self._given_up = 0
        # When the last attempt to take items that found none was sent; None if there may be some.
        self._empty_at_s: float | None = None
        # When the last exchange was sent that settled a job. The job may have added items, so that
        # an earlier attempt to take some proves nothing.
        self._settled_at_s = -inf
        self._idle_since_s: float | None = None

    def end(self, why: EndReason) -> None:
        """End the worker, unless it ends already."""
        self.why = self.why or why

    def reserve(self, count: int) -> int:
        """Count up to this many items as taken; returns how many the next exchange may take."""
        left = 0.0 if self.why is not None else self._limits.max_items - self._taken
        count = int(max(0, min(count, left)))
        self._taken += count
        self.unsettled += count
        return count

    def note(self, result: ExchangeResult, reserved: int, sent_s: float) -> None:
        """Note the result of an exchange that was to take so many. It may end the worker."""
        taken = len(result.jobs)
        for ended in result.ended:
            if ended.end is None:
                # It was taken, and given up at once.
                taken += 1
            else:
                self.unsettled -= 1
            if ended.was_unused:
                self._taken -= 1
                continue
            self._fates[ended.fate] += 1
            self._failures += ended.has_failed
            if ended.gave_up:
                self._given_up += 1
                if ended.step.stops:
                    self.end(EndReason.ON_FAIL)
        self._taken += taken - reserved
        self.unsettled += len(result.jobs) - reserved
        if self._failures >= self._limits.max_failures:
            self.end(EndReason.MAX_FAILURES)
        if result.ended:
            self._settled_at_s = max(self._settled_at_s, sent_s)
            if self._empty_at_s is not None and self._empty_at_s < sent_s:
                self._empty_at_s = None
        if taken:
            self._empty_at_s = None
        elif reserved and result.error is None and sent_s >= self._settled_at_s:
            self._empty_at_s = max(self._empty_at_s or -inf, sent_s)
        if taken or result.ended:
            self._idle_since_s = None

    def look_again(self) -> None:
        """Note that there may be items to take, and that the worker was not idle."""
        self._empty_at_s = self._idle_since_s = None

    def check(self) -> float:
        """Decide whether a worker ends that runs nothing and whose exchanges have all returned.

        If not: returns when it is to try to take items again, and then to check again.
        """
        if self._taken >= self._limits.max_items:
            self.end(EndReason.MAX_ITEMS)
        if self.why is not None or self._empty_at_s is None:
            return inf
        now_s = self._session.clock.monotonic()
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        again_s = self._idle_since_s + self._limits.idle_s
        if again_s <= now_s:
            self.end(EndReason.IDLE)
        if self.drains:
            # Whatever was retried is in the queues, or was taken by another worker.
            last_retry_s = self._session.held.last_retry_s
            if self._empty_at_s >= last_retry_s:
                self.end(EndReason.DRAINED)
            again_s = min(again_s, last_retry_s)
        return again_s

    def ends_on(self, error: ServerError) -> bool:
        """Whether a failed call ends the worker. The time of an outage is not idle time."""
        self._idle_since_s = None
        session = self._session
        gone_s = session.clock.monotonic() - session.failing_since_s
        # Another call may have succeeded since.
        is_over = session.error is not None and gone_s >= self._limits.reconnect_s
        # The password may have been changed, and be known a moment later.
        return is_over or not (error.is_transient or isinstance(error, AuthenticationFailed))

    def summary(self) -> WorkSummary:
        """What the worker did."""
        return WorkSummary(dict(self._fates), self._given_up, self.why or EndReason.STOPPED)
