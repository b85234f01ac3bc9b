"""What a worker reports."""

from time import time
from typing import NamedTuple

from rwq_cli.core.work.job import Job
from rwq_cli.core.work.policy import Fate

STARTED = "started"


class Event(NamedTuple):
    """Something that happened to an item, at this unix time: `STARTED`, or its fate.

    Of an item without attempts left, `attempt` is the last one that was made. What is known of its
    command follows: its process if one was started, and its exit code or the signal that ended it.
    It has a reason if it was retried, given up or lost. Of a retry, it has the delay, and whether
    other items are probably taken before it.
    """

    at_s: float
    kind: str
    queue: bytes
    item_id: bytes
    attempt: int
    returns: int
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    run_s: float | None = None
    reason: bytes | None = None
    delay_s: float | None = None
    has_backlog: bool = False
    gave_up: bool = False

    @classmethod
    def of(cls, job: Job, pid: int | None = None) -> "Event":
        """The start of a job."""
        return cls(time(), STARTED, job.queue, job.item_id, job.attempt, job.returns, pid)


class Progress:
    """The progress of a worker.

    `vanished` are those that were lost, and not by what their own commands did. `left` is how many
    items wait; None if unknown.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Fate, 0)
        self.gave_up = self.vanished = self.running = 0
        self.left: int | None = None
        self.is_paused = self.is_stopping = False
