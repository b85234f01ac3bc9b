"""Jobs, how they can end, and what then happens to their items: pure functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import NamedTuple

from rwq_cli.core.clock import LEASE_S, checked_s, lease_time_ms
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.schedule import REASON_BYTES_MAX
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, Status
from rwq_cli.core.state.rules import is_guard

# The defaults of a retry policy: see `RetryPolicy`.
RETRIES = 3
BACKOFF_S = 10.0
BACKOFF_MAX_S = 600.0
# How long nothing is taken in place of an item that was released: it may be the only one, and fail
# at once again.
_REST_S = 1.0
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

    Raises:
        InvalidArgument: A number is negative, a time longer than a hundred years, or the jitter
            greater than 1.
    """

    retries: int = RETRIES
    backoff_s: float = BACKOFF_S
    backoff_max_s: float = BACKOFF_MAX_S
    jitter: float = 0.2
    on_fail: OnFail = OnFail.BURY

    def __post_init__(self) -> None:
        checked_s("a backoff", self.backoff_s)
        checked_s("a backoff", self.backoff_max_s)
        if not (self.retries >= 0 and 0 <= self.jitter <= 1):
            raise InvalidArgument(
                "retries cannot be negative, and the jitter is from 0 to 1",
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

    def rest_s(self, end: JobEnd, attempt: int) -> float:
        """How long nothing is taken in place of a job that ended so, seconds."""
        if isinstance(end, PutBack):
            return end.rest_s
        is_released = isinstance(end, Failure) and self.on_fail is OnFail.RELEASE
        return _REST_S if is_released and self.is_last(attempt) else 0.0

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


class Loss(StrEnum):
    """Why a worker does not hold an item any more.

    `TAKEN`: somebody has leased it again. `ENDED`: its lease ended, or was ended by force. `MOVED`:
    it was delayed or buried. `GONE`: it was completed or removed. `WRONG_TYPE`: something else has
    its data key or a lease key. `UNREACHABLE`: its lease ended by the client's clock while the
    server did not answer. `UNACKNOWLEDGED`: the worker had to end before the server had said that
    the end of the job has arrived.
    """

    TAKEN = "taken"
    ENDED = "ended"
    MOVED = "moved"
    GONE = "gone"
    WRONG_TYPE = "wrong-type"
    UNREACHABLE = "unreachable"
    UNACKNOWLEDGED = "unacknowledged"

    @classmethod
    def of(cls, outcome: Outcome) -> "Loss":
        """Return why a call found that an item is held no more."""
        if outcome.status is Status.MISSING:
            return cls.GONE
        if outcome.status is Status.WRONG_TYPE:
            return cls.WRONG_TYPE
        if outcome.holder is None:
            return cls.ENDED
        return cls.MOVED if is_guard(Lease(outcome.holder, None)) else cls.TAKEN


@dataclass(eq=False, slots=True)
class Job:
    """An item that a worker has leased.

    Attributes:
        holder: The value of its lease, unique to the call that leased it.
        returns: How often an attempt failed, or a clean returned it.
        is_last: Whether no retry follows if this attempt fails.
        deadline_s: When the lease ends, on the clock of the queue.
        loss: Why it is not held any more; None while it is.
        slot: Which of the functions that run at once has it, from 0.
        is_forgiven: Whether a clean does not count its return.
    """

    handle: Queue
    item_id: bytes
    data: bytes
    holder: bytes
    returns: int
    is_last: bool
    deadline_s: float
    loss: Loss | None = None
    has_started: bool = False
    slot: int = 0
    is_forgiven: bool = False

    @property
    def key(self) -> tuple[bytes, bytes]:
        """No other held job has the same."""
        return self.handle.name, self.item_id

    @property
    def queue(self) -> bytes:
        """The name of its queue."""
        return self.handle.name

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.returns + 1

    @property
    def is_lost(self) -> bool:
        """Whether the lease was found lost: another worker may have the item by now."""
        return self.loss is not None

    def touch(self, *, for_s: float = LEASE_S) -> bool:
        """Ask the server whether the lease still stands, and let it end `for_s` seconds from now.

        The worker renews it anyway; this is for a function that is about to do what must not be
        done twice. It may be called by any thread.

        Raises:
            ServerError: It is not known whether the lease still stands.
        """
        lease_ms, sent_s = lease_time_ms(for_s), self.handle.clock.monotonic()
        words = self.item_id, self.holder
        reply = self.handle.run("touch", *words, lease_ms=lease_ms, has_owners=True)
        (outcome,) = OutcomeBatch.from_reply([self.item_id], reply)
        if outcome.status is Status.TOUCHED:
            self.deadline_s = sent_s + for_s
        else:
            self.loss = self.loss or Loss.of(outcome)
        return not self.is_lost


@dataclass(eq=False, slots=True)
class Ended:
    """The end of a job; listeners are told of it when the server has acknowledged it.

    Attributes:
        end: How it ended; None if the item was given up without this attempt.
        fate: What becomes of it: that of the step, unless it is found lost.
        in_doubt: Whether a call was sent for it whose reply was lost.
        refused_since_s: Since when it is sent in vain, on the clock; inf if it is not.
    """

    job: Job
    end: JobEnd | None
    step: Step
    fate: Fate
    in_doubt: bool = False
    refused_since_s: float = inf

    @property
    def gave_up(self) -> bool:
        return self.step.gave_up and self.fate is not Fate.LOST

    @property
    def has_failed(self) -> bool:
        """Whether this counts as a failure: of the attempt, or by giving the item up."""
        return self.gave_up or (isinstance(self.end, Failure) and self.fate is not Fate.LOST)

    @property
    def was_unused(self) -> bool:
        """Whether the job was put back without being started."""
        return isinstance(self.end, PutBack) and not self.job.has_started


class ExchangeResult(NamedTuple):
    """What an exchange with the server took, settled and found lost; and why not all of it."""

    jobs: Sequence[Job] = ()
    ended: Sequence[Ended] = ()
    lost: Sequence[Job] = ()
    error: ServerError | None = None


Value = JobEnd | bytes | None
BatchValue = Value | list[Value]
Handler = Callable[[Job], Value] | Callable[[list[Job]], BatchValue]
