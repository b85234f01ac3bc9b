"""What a worker reports."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from rwq_cli.core.errors import ServerError
from rwq_cli.core.repair.actions import Repair


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
    """How the command of an item ended.

    Attributes:
        pid: Its process ID; None if none was started.
        exit_code: Its exit code; None while it runs, or if a signal ended it.
        signal: The number of the signal that ended it; None for none.
        run_s: How long it ran, seconds; None while it runs.
    """

    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    run_s: float | None = None


class Event(NamedTuple):
    """Something that happened to an item.

    Attributes:
        kind: What.
        queue: The queue's name.
        item_id: The ID.
        attempt: Which attempt it is, from 1; the last one that was made, if none are left.
        returns: How often it failed or was returned before.
        exit: How its command ended.
        reason: Why it was retried, given up or lost; None for the others.
        delay_s: For a retry, in how many seconds it is due; else None.
        has_backlog: For a retry, whether other items are probably taken before it.
        gave_up: Whether it was given up.
        at_s: When, unix time.
    """

    kind: EventKind
    queue: bytes
    item_id: bytes
    attempt: int
    returns: int
    exit: Exit
    reason: bytes | None
    delay_s: float | None
    has_backlog: bool
    gave_up: bool
    at_s: float


class Progress:
    """The progress of a worker.

    Attributes:
        counts: How many items had each kind of end.
        gave_up: How many of them were given up.
        vanished: How many were lost, and not by what their own commands did.
        running: How many commands run.
        left: How many items wait; None if unknown.
        is_paused: Whether it takes nothing for now.
        is_stopping: Whether it has stopped taking items.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(EventKind, 0)
        self.gave_up = self.vanished = self.running = 0
        self.left: int | None = None
        self.is_paused = self.is_stopping = False


class Listener(Protocol):
    """What tells a person how a worker fares: called by the main thread alone.

    Attributes:
        tick_s: How often `tick` is called, seconds; None for never.
    """

    tick_s: float | None

    # An item was retried, given up, put back after its last attempt, or lost.
    def failed(self, event: Event) -> None: ...

    # No more items are taken; SIGTERM was sent; with how many commands that run.
    def stopping(self, running: int) -> None: ...
    def ending(self, running: int) -> None: ...

    # A command was stopped, as by SIGSTOP; it printed more than a result may hold.
    def is_stopped(self, item_id: bytes, pid: int) -> None: ...
    def result_cut(self, item_id: bytes) -> None: ...

    # The server does not answer, while commands keep running; it does again.
    def disconnected(self, error: ServerError) -> None: ...
    def reconnected(self, seconds: float) -> None: ...

    def cleaned(self, queue: bytes, counts: Mapping[Repair, int]) -> None: ...

    # What supervisors show; time has passed; the terminal is about to belong to somebody else.
    def status(self, progress: Progress) -> str: ...
    def tick(self, progress: Progress) -> None: ...
    def hide(self) -> None: ...
