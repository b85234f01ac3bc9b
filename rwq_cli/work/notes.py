"""What a worker writes to stderr. Any thread notes something; the main thread alone writes it."""

from collections import deque
from collections.abc import Mapping
from threading import Event as Flag

from rwq_cli.core.errors import ServerError
from rwq_cli.core.repair.actions import Repair
from rwq_cli.environment import Environment
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.work.events import Event, EventKind, Progress

# The last line of a command's stderr is cut to this length; all of it is on stderr.
_LAST_LINE_MAX = 200


class Notes:
    """Failures, with the names of their queues if there are several, and notes."""

    # How often `tick` is to be called, seconds; None for never.
    tick_s: float | None = None

    def __init__(self, environment: Environment, *, names_queues: bool, reconnect_s: float) -> None:
        self._environment = environment
        self._names_queues = names_queues
        self._reconnect_s = reconnect_s
        # Each, and whether it is written with --quiet, too.
        self._lines: deque[tuple[str, bool]] = deque()
        # Set if there is something to write, or else to do for the main thread.
        self.news = Flag()

    def write(self) -> None:
        """Write what was noted."""
        while self._lines:
            line, is_error = self._lines.popleft()
            (self._environment.error if is_error else self._environment.note)(f"rwq: {line}")

    def _note(self, line: str, *, is_error: bool = True) -> None:
        self._lines.append((line, is_error))
        self.news.set()

    def tick(self, progress: Progress) -> None:
        """Time has passed."""

    def hide(self) -> None:
        """The terminal is about to belong to somebody else."""

    def failed(self, event: Event) -> None:
        """An item was retried, given up, put back after its last attempt, or lost."""
        name = escaped(event.item_id)
        if self._names_queues:
            name += f" of {escaped(event.queue)}"
        self._note(f"{name}: {_short(event.reason or b'')}; {_fate(event)}")

    def stopping(self, running: int) -> None:
        """No more items are taken, while so many commands run."""
        if running:
            them = "it" if running == 1 else "them"
            text = f"waiting for {_commands(running)} to end; Ctrl-C ends {them} and releases"
            self._note(f"{text} the items", is_error=False)

    def ending(self, running: int) -> None:
        """SIGTERM was sent to so many commands."""
        if running:
            self._note(
                f"sent SIGTERM to {_commands(running)}; Ctrl-C sends SIGKILL", is_error=False
            )

    def is_stopped(self, item_id: bytes, pid: int) -> None:
        """A command was stopped, as by SIGSTOP."""
        text = f"its command (process {pid}) is stopped; kill -CONT {pid} lets it go on"
        self._note(f"{escaped(item_id)}: {text}")

    def result_cut(self, item_id: bytes) -> None:
        """A command printed more than a result may hold."""
        text = "its command printed more than 1 MiB; only the first MiB is kept as its result"
        self._note(f"{escaped(item_id)}: {text}")

    def disconnected(self, error: ServerError) -> None:
        """The server does not answer, while commands keep running."""
        text = "commands keep running, and rwq will try to reconnect for"
        self._note(f"{escaped_text(error.message)}; {text} {human.duration(self._reconnect_s)}")

    def reconnected(self, seconds: float) -> None:
        """The server answers again."""
        self._note(f"the server is responding again after {human.duration(seconds)}")

    def cleaned(self, queue: bytes, counts: Mapping[Repair, int]) -> None:
        """A clean of this worker did something."""
        text = ", ".join(f"{repair.value} {number:,}" for repair, number in counts.items())
        self._note(f"clean light: {text} ({escaped(queue)})", is_error=False)


def _commands(number: int) -> str:
    return "1 command" if number == 1 else f"{number:,} commands"


def _short(reason: bytes) -> str:
    """How a command failed, and the last line of its stderr."""
    how, _, said = reason.partition(b": ")
    last = said.rpartition(b"\n")[2][:_LAST_LINE_MAX]
    return escaped(how) + (f": {escaped(last)}" if last else "")


def _fate(event: Event) -> str:
    """What becomes of an item that failed."""
    if event.kind is EventKind.RETRY:
        # What waits is taken first.
        when = "not before" if event.has_backlog else "in"
        return f"attempt {event.attempt + 1:,} {when} {human.duration(event.delay_s)}"
    if event.kind is EventKind.LOST:
        return "lost, not completed by this worker"
    if event.gave_up:
        return f"{event.kind.value} after attempt {event.attempt:,}"
    return event.kind.value


def status(progress: Progress) -> str:
    """What supervisors show."""
    return f"{counted(progress)} · {progress.running:,} running"


def counted(progress: Progress) -> str:
    """What a worker has done."""
    counts = progress.counts
    parts = [
        f"{counts[EventKind.COMPLETED]:,} done",
        f"{counts[EventKind.RETRY]:,} retry",
        f"{counts[EventKind.BURIED]:,} buried",
    ]
    for kind in (EventKind.REJECTED, EventKind.RELEASED, EventKind.LOST):
        if counts[kind]:
            parts.append(f"{counts[kind]:,} {kind.value}")
    return " · ".join(parts)
