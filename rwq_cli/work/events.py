"""What a worker reports."""

from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from threading import Event as Flag
from typing import NamedTuple

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
    """How the command of an item ended: with an exit code, or by a signal; None while it runs.

    `pid` is None if no process was started.
    """

    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    run_s: float | None = None


class Event(NamedTuple):
    """Something that happened to an item, at this unix time.

    Attributes:
        attempt: Which attempt it is, from 1; the last one that was made, if none are left.
        returns: How often it failed or was returned before.
        reason: Why it was retried, given up or lost; None for the others.
        delay_s: For a retry, in how many seconds it is due; else None.
        has_backlog: For a retry, whether other items are probably taken before it.
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


class Listener:
    """Tells a person how a worker fares, in the main thread; this one tells nothing."""

    # How often `tick` is called, seconds; None for never.
    tick_s: float | None = None

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
    def status(self, progress: Progress) -> str:  # noqa: ARG002
        return ""

    def tick(self, progress: Progress) -> None: ...
    def hide(self) -> None: ...


class News:
    """What the threads of a worker have for its main thread: events, and what is to be written."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        self.to_say: deque[Callable[[Listener], object]] = deque()
        self.flag = Flag()

    def say(self, what: Callable[[Listener], object]) -> None:
        """Have the main thread write something."""
        self.to_say.append(what)
        self.flag.set()
