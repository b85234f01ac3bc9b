"""Jobs, and what became of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.work.policy import Failure, Fate, JobEnd, PutBack, Step


class Loss(StrEnum):
    """Why a worker does not hold an item any more.

    `TAKEN`: another worker has leased it. `ENDED`: its lease ended, or was ended by force. `MOVED`:
    it was delayed or buried. `GONE`: it was completed or removed. `WRONG_TYPE`: something else has
    its data key or a lease key. `UNREACHABLE`: its lease ended by the client's clock while the
    server did not answer.
    """

    TAKEN = "taken"
    ENDED = "ended"
    MOVED = "moved"
    GONE = "gone"
    WRONG_TYPE = "wrong-type"
    UNREACHABLE = "unreachable"


@dataclass(eq=False, slots=True)
class Job:
    """An item that a worker has leased.

    Attributes:
        handle: Its queue.
        item_id: The ID.
        data: The payload.
        holder: The value of its lease, unique to the call that leased it.
        returns: How often an attempt failed, or a clean returned it.
        is_last: Whether no retry follows if this attempt fails.
        deadline_s: When the lease ends, on the clock of the queue.
        loss: Why it is not held any more; None while it is.
        has_started: Whether the worker has begun to run it.
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


@dataclass(eq=False, slots=True)
class Ended:
    """The end of a job; listeners are told of it when the server has acknowledged it.

    Attributes:
        job: The job.
        end: How it ended; None if the item was given up without this attempt.
        step: What is to be done with the item.
        fate: What becomes of it: that of the step, unless it is found lost.
        in_doubt: Whether a call was sent for it whose reply was lost.
    """

    job: Job
    end: JobEnd | None
    step: Step
    fate: Fate
    in_doubt: bool = False

    @property
    def gave_up(self) -> bool:
        """Whether the item was given up."""
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
Handler = Callable[[Job], Value] | Callable[[list[Job]], Value]
