"""What a worker reports."""

from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """What happened to an item."""

    STARTED = "started"
    COMPLETED = "completed"
    RETRY = "retry"
    RELEASED = "released"
    BURIED = "buried"
    REJECTED = "rejected"
    LOST = "lost"


class Event(NamedTuple):
    """Something that happened to an item.

    Attributes:
        kind: What.
        queue: The queue's name.
        item_id: The ID.
        attempt: Which attempt it is, from 1; the last one that was made, if none are left.
        returns: How often it failed or was returned before.
        pid: The process ID of the command; None if none was started.
        exit_code: The exit code of the command; None while it runs, or if a signal ended it.
        signal: The number of the signal that ended it; None for none.
        run_s: How long it ran, seconds; None while it runs.
        reason: Why it was retried, given up or lost; None for the others.
        delay_s: For a retry, in how many seconds it is due; else None.
        gave_up: Whether it was given up.
        at_s: When, unix time.
    """

    kind: EventKind
    queue: bytes
    item_id: bytes
    attempt: int
    returns: int
    pid: int | None
    exit_code: int | None
    signal: int | None
    run_s: float | None
    reason: bytes | None
    delay_s: float | None
    gave_up: bool
    at_s: float


class Progress:
    """The progress of a worker.

    Attributes:
        counts: How many items had each kind of end.
        gave_up: How many of them were given up.
        running: How many commands run.
        left: How many items wait; None if unknown.
        is_paused: Whether it takes nothing for now.
        is_stopping: Whether it has stopped taking items.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(EventKind, 0)
        self.gave_up = self.running = 0
        self.left: int | None = None
        self.is_paused = self.is_stopping = False
