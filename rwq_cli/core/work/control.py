"""What a worker tells, how it is asked to end, and why it has ended."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.errors import ServerError
from rwq_cli.core.work.job import Ended, Job
from rwq_cli.core.work.policy import Fate

if TYPE_CHECKING:
    from rwq_cli.core.work.session import WorkSession


class Started(NamedTuple):
    """A job begins."""

    job: Job


class Lost(NamedTuple):
    """A running job has lost its item; its handler goes on, and its result is ignored."""

    job: Job


class Outage(NamedTuple):
    """A call failed, and is tried again."""

    error: ServerError


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
        self.releases: list[Callable[[], None]] = []

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

    def release(self) -> None:
        """Put back whatever runs, whatever becomes of its functions."""
        for release in list(self.releases):
            release()

    def renew(self) -> list[Job]:
        """Renew all leases now; returns the jobs whose leases were found lost."""
        return [job for session in list(self.sessions) for job in session.renew()]

    def _wake(self) -> None:
        for session in list(self.sessions):
            session.waiter.wake()
