"""What a worker reports, and writes to stderr: any thread notes it, the main thread writes it."""

from collections import deque
from threading import Event as Flag
from typing import NamedTuple

from rwq_cli.core.work.policy import Fate
from rwq_cli.environment import Environment
from rwq_cli.output import human
from rwq_cli.output.escape import escaped

# The last line of a command's stderr is cut to this length; all of it is on stderr.
_LAST_LINE_MAX = 200
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


class Notes:
    """Failures, with the names of their queues if there are several, and other lines."""

    # How often `tick` is to be called, seconds; None for never.
    tick_s: float | None = None

    def __init__(self, environment: Environment, *, names_queues: bool) -> None:
        self._environment = environment
        self._names_queues = names_queues
        self.progress = Progress()
        # Each, and whether it is written with --quiet, too.
        self._lines: deque[tuple[str, bool]] = deque()
        # Set if there is something to write, or else to do for the main thread.
        self.news = Flag()

    def line(self, line: str, *, is_error: bool = True) -> None:
        """Note a line."""
        self._lines.append((line, is_error))
        self.news.set()

    def write(self) -> None:
        """Write what was noted."""
        while self._lines:
            line, is_error = self._lines.popleft()
            (self._environment.error if is_error else self._environment.note)(f"rwq: {line}")

    def tick(self) -> None:
        """Time has passed."""

    def hide(self) -> None:
        """The terminal is about to belong to somebody else."""

    def failed(self, event: Event) -> None:
        """An item was retried, given up, put back after its last attempt, or lost."""
        name = escaped(event.item_id)
        if self._names_queues:
            name += f" of {escaped(event.queue)}"
        how, _, said = (event.reason or b"").partition(b": ")
        if last := said.rpartition(b"\n")[2][:_LAST_LINE_MAX]:
            how += b": " + last
        self.line(f"{name}: {escaped(how)}; {_fate(event)}")


def _fate(event: Event) -> str:
    """What becomes of an item that failed."""
    if event.kind == Fate.RETRY:
        # What waits is taken first.
        when = "not before" if event.has_backlog else "in"
        return f"attempt {event.attempt + 1:,} {when} {human.duration(event.delay_s)}"
    if event.kind == Fate.LOST:
        return "lost, not completed by this worker"
    return f"{event.kind} after attempt {event.attempt:,}" if event.gave_up else event.kind


def commands(number: int) -> str:
    """So many commands."""
    return "1 command" if number == 1 else f"{number:,} commands"


def status(progress: Progress) -> str:
    """What supervisors show."""
    return f"{counted(progress)} · {progress.running:,} running"


def counted(progress: Progress) -> str:
    """What a worker has done."""
    counts = progress.counts
    words = {Fate.COMPLETED: "done", Fate.RETRY: "retry", Fate.BURIED: "buried"}
    for kind in (Fate.REJECTED, Fate.RELEASED, Fate.LOST):
        if counts[kind]:
            words[kind] = kind.value
    return " · ".join(f"{counts[kind]:,} {word}" for kind, word in words.items())
