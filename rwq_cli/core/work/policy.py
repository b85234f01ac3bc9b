"""How a job can end, and what then happens to its item: a pure function."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.schedule import REASON_BYTES_MAX

# The defaults of a retry policy: see `RetryPolicy`.
RETRIES = 3
BACKOFF_S = 10.0
BACKOFF_MAX_S = 600.0
# Larger exponents of the backoff would overflow; no backoff needs them.
_DOUBLINGS_MAX = 60


class OnFail(StrEnum):
    """What happens to an item whose last attempt failed.

    An item that is released, or that stopped the worker, is at the end of the queue and can be
    taken again; each take is one more last attempt.
    """

    BURY = "bury"
    RELEASE = "release"
    REJECT = "reject"
    STOP = "stop"


class Done(NamedTuple):
    """The job succeeded: complete its item, and keep the result if there is one."""

    result: bytes | None = None


class Failure(NamedTuple):
    """The attempt failed: retry it later, or after the last attempt do what the policy says.

    What exceeds `REASON_BYTES_MAX` bytes of the reason is cut off.
    """

    reason: bytes


class PutBack(NamedTuple):
    """The job was not tried: release its item, as the next or the last, and count no attempt.

    Nothing is taken in its place for `rest_s` seconds: what the job lacked is unlikely to be there
    at once.
    """

    front: bool = False
    rest_s: float = 0.0


class GiveUp(NamedTuple):
    """Another attempt would fail, too: bury the item at once, with a reason as of a `Failure`."""

    reason: bytes


JobEnd = Done | Failure | PutBack | GiveUp


class Fate(StrEnum):
    """What became of the item of a job."""

    COMPLETED = "completed"
    RETRY = "retry"
    RELEASED = "released"
    BURIED = "buried"
    REJECTED = "rejected"
    LOST = "lost"


class Step(NamedTuple):
    """What to do with the item of a job, and what is to become of it: never `LOST`.

    `data` is the result to keep of one that is `COMPLETED` or `REJECTED`, else the reason.
    `counted` counts a failed attempt in `Q:returns`, and `stops` ends the worker.
    """

    fate: Fate
    data: bytes | None = None
    delay_s: float = 0.0
    counted: bool = False
    front: bool = False
    gave_up: bool = False
    stops: bool = False

    @property
    def completes(self) -> bool:
        return self.fate in (Fate.COMPLETED, Fate.REJECTED)

    @property
    def is_plain(self) -> bool:
        """Whether it completes the item, and no more."""
        return self.fate is Fate.COMPLETED and self.data is None


@dataclass(frozen=True)
class RetryPolicy:
    """When a failed job is tried again, and what happens after its last attempt.

    Attempts count from 1, and include those of other workers and attempts whose worker was killed.

    Attributes:
        retries: How many attempts follow the first.
        backoff_s: The delay after the first failure, seconds; it doubles with each further one.
        backoff_max_s: The maximum delay, seconds.
        jitter: The fraction by which a delay varies at random, so that items that failed together
            are not retried together.
        on_fail: What happens to an item whose last attempt failed.

    Raises:
        InvalidArgument: A number is negative, or the jitter is greater than 1.
    """

    retries: int = RETRIES
    backoff_s: float = BACKOFF_S
    backoff_max_s: float = BACKOFF_MAX_S
    jitter: float = 0.2
    on_fail: OnFail = OnFail.BURY

    def __post_init__(self) -> None:
        least = min(self.retries, self.backoff_s, self.backoff_max_s, self.jitter)
        if least < 0 or self.jitter > 1:
            raise InvalidArgument(
                "retries and backoff cannot be negative, and the jitter is at most 1",
                "give 0 or more, and a jitter such as 0.2 for 20%",
            )

    def is_last(self, attempt: int) -> bool:
        """Whether no retry follows this attempt."""
        return attempt > self.retries

    def is_exhausted(self, attempt: int) -> bool:
        """Whether the item is given up without this attempt: it killed the worker of its last."""
        return attempt > self.retries + 1 and self.on_fail in (OnFail.BURY, OnFail.REJECT)

    def delay_s(self, attempt: int, random: float) -> float:
        """The delay after a failed attempt, seconds; `random` is at least 0 and less than 1."""
        doubled: float = self.backoff_s * 2.0 ** min(attempt - 1, _DOUBLINGS_MAX)
        usual_s = min(doubled, self.backoff_max_s)
        shortest_s = usual_s * (1 - self.jitter)
        longest_s = min(usual_s * (1 + self.jitter), self.backoff_max_s)
        return shortest_s + random * (longest_s - shortest_s)

    def step(self, end: JobEnd | None, attempt: int, random: float) -> Step:
        """What happens to the item of a job that ended so; None if it is exhausted."""
        match end:
            case Done():
                return Step(Fate.COMPLETED, end.result)
            case PutBack():
                return Step(Fate.RELEASED, front=end.front)
            case GiveUp():
                return Step(Fate.BURIED, end.reason[:REASON_BYTES_MAX], gave_up=True)
            case Failure():
                reason = end.reason[:REASON_BYTES_MAX]
                if not self.is_last(attempt):
                    delay_s = self.delay_s(attempt, random)
                    return Step(Fate.RETRY, reason, delay_s, counted=True)
            case None:
                failed = b"1 attempt" if attempt == 2 else b"%d attempts" % (attempt - 1)
                worker = b"its worker" if attempt == 2 else b"their worker"
                reason = b"no attempts left: %b failed, or %b died" % (failed, worker)
        match self.on_fail:
            case OnFail.BURY:
                return Step(Fate.BURIED, reason, gave_up=True)
            case OnFail.REJECT:
                return Step(Fate.REJECTED, reason, gave_up=True)
            case _:
                stops = self.on_fail is OnFail.STOP
                return Step(Fate.RELEASED, reason, counted=True, gave_up=True, stops=stops)
