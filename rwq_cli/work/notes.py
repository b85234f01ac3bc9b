"""What a worker writes to stderr. Any thread notes something; the main thread alone writes it."""

from collections import deque
from threading import Event as Flag

from rwq_cli.core.work.policy import Fate
from rwq_cli.environment import Environment
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.work.events import Event, Progress

# The last line of a command's stderr is cut to this length; all of it is on stderr.
_LAST_LINE_MAX = 200


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
