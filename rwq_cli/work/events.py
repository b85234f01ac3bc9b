"""What a worker reports."""

from enum import StrEnum
from time import time
from typing import NamedTuple

from rwq_cli.core.work.job import Job


class EventKind(StrEnum):
    """What happened to an item."""

    STARTED = "started"
    COMPLETED = "completed"
    RETRY = "retry"
    RELEASED = "released"
    BURIED = "buried"
    REJECTED = "rejected"
    LOST = "lost"


class Exit(NamedTuple):
    """How the command of an item ended: with an exit code, or by a signal; None while it runs.

    `pid` is None if no process was started.
    """

    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    run_s: float | None = None


class Event(NamedTuple):
    """Something that happened to an item, at this unix time.

    Of an item without attempts left, `attempt` is the last one that was made. It has a reason if it
    was retried, given up or lost. Of a retry, it has the delay, and whether other items are
    probably taken before it.
    """

    at_s: float
    kind: EventKind
    queue: bytes
    item_id: bytes
    attempt: int
    returns: int
    exit: Exit
    reason: bytes | None = None
    delay_s: float | None = None
    has_backlog: bool = False
    gave_up: bool = False

    @classmethod
    def of(cls, job: Job, kind: EventKind, exited: Exit) -> "Event":
        """What happens to a job now."""
        return cls(time(), kind, job.queue, job.item_id, job.attempt, job.returns, exited)


class Progress:
    """The progress of a worker.

    `vanished` are those that were lost, and not by what their own commands did. `left` is how many
    items wait; None if unknown.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(EventKind, 0)
        self.gave_up = self.vanished = self.running = 0
        self.left: int | None = None
        self.is_paused = self.is_stopping = False
