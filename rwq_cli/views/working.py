"""What a worker shows: its events, its failures, a live line on a terminal, and a summary."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, BinaryIO, NamedTuple

from rwq_cli.core.errors import RwqError, ServerError
from rwq_cli.core.model import Item, Repair
from rwq_cli.environment import Environment
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.exposition import Metric
from rwq_cli.output.field import Field, Fields, plain
from rwq_cli.output.report import COMMAND_STYLE, DRY_RUN, Batch, Records, Section, View, view_of
from rwq_cli.views.command_lines import shell_word
from rwq_cli.work.events import Event, EventKind, Exit, Listener, Progress
from rwq_cli.work.programs import Invocation

_TICK_S = 0.5
# The rate is that of this many ticks.
_RATE_TICKS = 20
_ERASE = b"\r\x1b[2K"
# The last line of a command's stderr is cut to this length; all of it is on stderr.
_LAST_LINE_MAX = 200
_SAMPLE = Event(EventKind.STARTED, b"", b"", 1, 0, Exit(), None, None, False, False, 0.0)


class WorkReport(Batch[Event]):
    """The report of `rwq work`.

    Args:
        has_failed: See `work_report`.
        fields: The fields of `Batch`.
    """

    def __init__(self, *, has_failed: Callable[[], bool], **fields: Any) -> None:
        super().__init__(**fields)
        self._has_failed = has_failed

    def status(self) -> ExitStatus:
        """The exit code, which is PARTIAL even if all items were given up."""
        return ExitStatus.PARTIAL if self._has_failed() else ExitStatus.OK


def work_report(
    queues: Sequence[bytes],
    events: Iterable[Sequence[Event]],
    *,
    has_failed: Callable[[], bool],
    summary_end: Callable[[], str],
    note: Callable[[str], object],
) -> WorkReport:
    """The report of a worker. Reading the events works.

    Args:
        queues: The names of the queues.
        events: What happens.
        has_failed: Whether items were given up, failures ended the worker, or the job log is
            incomplete.
        summary_end: Returns the end of the summary.
        note: Writes a note to stderr.
    """

    def read() -> Iterator[Sequence[Event]]:
        try:
            yield from events
        except RwqError:
            if any(report.totals().values()):
                note(report.summary())
            raise

    report = WorkReport(
        view=event_view(),
        batches=read(),
        count=_count_ends,
        word=lambda event: event.kind.value,
        counted=[kind.value for kind in EventKind if kind is not EventKind.STARTED],
        failed=frozenset(),
        shown=frozenset({EventKind.COMPLETED.value}),
        fields=lambda: {"queues": [escaped(name) for name in queues], "dry_run": False},
        summary_end=summary_end,
        has_failed=has_failed,
    )
    return report


def _count_ends(events: Sequence[Event]) -> dict[str, int]:
    """How many items had each kind of end."""
    counts: dict[str, int] = {}
    for event in events:
        if event.kind is not EventKind.STARTED:
            word = event.kind.value
            counts[word] = counts.get(word, 0) + 1
    return counts


def event_view() -> View[Event]:
    """The view of an event, which has no table."""
    return view_of(EVENT_FIELDS, _SAMPLE)


EVENT_FIELDS: Fields[Event] = Fields(
    "An event of a worker",
    Field(
        "event",
        lambda event: event.kind.value,
        "`started`, `completed`, `retry`, `released`, `buried`, `rejected` or `lost`",
    ),
    Field("queue", lambda event: event.queue, "the queue's name", is_bytes=True),
    Field("id", lambda event: event.item_id, "the item's ID", is_bytes=True, is_id=True),
    Field(
        "attempt",
        lambda event: event.attempt,
        "which attempt it is, from 1; the last one, if none are left",
    ),
    Field("returns", lambda event: event.returns, "how often it failed or was returned before"),
    Field(
        "pid",
        lambda event: event.exit.pid,
        "the process ID of the command; null if none was started",
    ),
    Field(
        "exit",
        lambda event: event.exit.exit_code,
        "its exit code; null while it runs, or if a signal ended it",
    ),
    Field("signal", lambda event: event.exit.signal, "the number of the signal that ended it"),
    Field("seconds", lambda event: _milli(event.exit.run_s), "how long it ran"),
    Field(
        "reason", lambda event: event.reason, "why it was retried, given up or lost", is_bytes=True
    ),
    Field("delay_seconds", lambda event: _milli(event.delay_s), "until the next attempt"),
    Field("gave_up", lambda event: event.gave_up, "whether the item was given up"),
    Field("time", lambda event: _milli(event.at_s), "when, in Unix seconds"),
)


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def joblog_lines(events: Iterable[Event]) -> Iterator[str]:
    """The lines of a job log: one for each item that is done with.

    Columns: time, queue, ID, attempt, what happened, exit code, signal, seconds, reason.
    """
    for event in events:
        if event.kind is EventKind.STARTED:
            continue
        ended = event.exit
        run_s = None if ended.run_s is None else f"{ended.run_s:.3f}"
        cells = (f"{event.at_s:.3f}", event.queue, event.item_id, event.attempt, event.kind.value)
        yield "\t".join(map(plain, (*cells, ended.exit_code, ended.signal, run_s, event.reason)))


class Notes(Listener):
    """Writes failures and notes to stderr.

    Args:
        environment: The streams.
        names_queues: Whether a failure names its queue.
        reconnect_s: How long a lost server is tried again, seconds.
    """

    tick_s: float | None = None

    def __init__(self, environment: Environment, *, names_queues: bool, reconnect_s: float) -> None:
        self._environment = environment
        self._names_queues = names_queues
        self._reconnect_s = reconnect_s

    def failed(self, event: Event) -> None:
        name = escaped(event.item_id)
        if self._names_queues:
            name += f" of {escaped(event.queue)}"
        self._environment.error(f"rwq: {name}: {_short(event.reason or b'')}; {_fate(event)}")

    def stopping(self, running: int) -> None:
        if running:
            them = "it" if running == 1 else "them"
            self._environment.note(
                f"rwq: waiting for {_commands(running)} to end; Ctrl-C ends {them} and releases "
                "the items"
            )

    def ending(self, running: int) -> None:
        if running:
            self._environment.note(
                f"rwq: sent SIGTERM to {_commands(running)}; Ctrl-C sends SIGKILL"
            )

    def is_stopped(self, item_id: bytes, pid: int) -> None:
        self._environment.error(
            f"rwq: {escaped(item_id)}: its command (process {pid}) is stopped; kill -CONT {pid} "
            "lets it go on"
        )

    def result_cut(self, item_id: bytes) -> None:
        self._environment.error(
            f"rwq: {escaped(item_id)}: its command printed more than 1 MiB; only the first "
            "MiB is kept as its result"
        )

    def disconnected(self, error: ServerError) -> None:
        self._environment.error(
            f"rwq: {escaped_text(error.message)}; commands keep running, and rwq will try to "
            f"reconnect for {human.duration(self._reconnect_s)}"
        )

    def reconnected(self, seconds: float) -> None:
        self._environment.error(
            f"rwq: the server is responding again after {human.duration(seconds)}"
        )

    def status(self, progress: Progress) -> str:
        return f"{_counts(progress)} · {_running(progress)}"

    def tick(self, progress: Progress) -> None:
        """Do nothing."""

    def hide(self) -> None:
        """Do nothing."""

    def cleaned(self, queue: bytes, counts: Mapping[Repair, int]) -> None:
        text = ", ".join(f"{repair.value} {number:,}" for repair, number in counts.items())
        self._environment.note(f"rwq: clean light: {text} ({escaped(queue)})")


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


class LiveNotes(Notes):
    """The same, with a live line on the terminal below.

    Args:
        environment: The streams; notes are written above the line.
    """

    tick_s = _TICK_S

    def __init__(self, environment: Environment, *, names_queues: bool, reconnect_s: float) -> None:
        super().__init__(environment, names_queues=names_queues, reconnect_s=reconnect_s)
        self._line = b""
        self._ticks: deque[tuple[float, int]] = deque(maxlen=_RATE_TICKS)
        environment.note_above = self._note_above

    def tick(self, progress: Progress) -> None:
        now_s = monotonic()
        self._ticks.append((now_s, progress.counts[EventKind.COMPLETED]))
        (first_s, first), (_, last) = self._ticks[0], self._ticks[-1]
        rate = (last - first) / (now_s - first_s) if now_s > first_s else 0.0
        text = live_line(progress, rate)[: max(0, self._environment.stderr_width - 1)]
        self._write(_ERASE + text.encode())
        self._line = text.encode()

    def hide(self) -> None:
        if self._line:
            self._line = b""
            self._write(_ERASE)

    def pass_on(self, stream: BinaryIO, data: bytes) -> None:
        """Write what a command printed above the line."""
        if self._line:
            self._write(_ERASE)
        with suppress(OSError):
            stream.write(data)
            if self._line and not data.endswith(b"\n"):
                stream.write(b"\n")
            stream.flush()
        self._write(self._line)

    def _note_above(self, note: str) -> None:
        self.pass_on(self._environment.stderr, note.encode("utf-8", "backslashreplace") + b"\n")

    def _write(self, data: bytes) -> None:
        with suppress(OSError):
            self._environment.stderr.write(data)
            self._environment.stderr.flush()


def live_line(progress: Progress, rate: float) -> str:
    """The live line.

    Args:
        progress: The worker's progress.
        rate: Items completed a second.
    """
    parts = [_counts(progress), f"{rate:,.1f}/s", _running(progress)]
    if progress.left is not None:
        left = f"{progress.left:,} left"
        if progress.left and rate:
            left += f" (~{human.duration(max(1, round(progress.left / rate)))})"
        parts.append(left)
    if progress.is_stopping:
        parts.append("stopping")
    elif progress.is_paused:
        parts.append("paused")
    return " · ".join(parts)


def _counts(progress: Progress) -> str:
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


def _running(progress: Progress) -> str:
    return f"{progress.running:,} running"


def work_metrics(progress: Progress) -> list[Metric]:
    """What a worker has done and is doing."""
    ends = [
        ({"event": kind.value}, number)
        for kind, number in progress.counts.items()
        if kind is not EventKind.STARTED
    ]
    return [
        Metric("work_items_total", "Items handled by this process, by outcome.", ends, "counter"),
        Metric("work_running", "Commands that are running.", [({}, progress.running)]),
    ]


class Planned(NamedTuple):
    """What a dry run would start.

    Attributes:
        items: The items.
        invocation: The command; None if it could not be made.
        reason: Why not; None if it could.
    """

    items: Sequence[Item]
    invocation: Invocation | None
    reason: str | None


_NO_PLAN = Planned([], None, None)


def plan_report(queues: Sequence[bytes], plans: Iterable[Planned]) -> Records[Planned]:
    """The report of a dry run; without a plan, JSON is one of no items."""
    return Records(
        view=plan_view(),
        records=plans,
        empty=lambda: f"No item to work on in {', '.join(map(escaped, queues))}.",
        is_one=True,
        nothing=_NO_PLAN,
        opening=f"{DRY_RUN}this would be run next",
    )


def plan_view() -> View[Planned]:
    """The view of what a dry run would start."""
    return view_of(PLAN_FIELDS, _NO_PLAN, sections=_plan_sections)


def _of_first(name: str, get: Callable[[Item], object], help: str, **kinds: Any) -> Field[Planned]:
    return Field(name, lambda plan: get(plan.items[0]) if plan.items else None, help, **kinds)


def _of_command(name: str, get: Callable[[Invocation], object], help: str) -> Field[Planned]:
    return Field(name, lambda plan: None if plan.invocation is None else get(plan.invocation), help)


PLAN_FIELDS: Fields[Planned] = Fields(
    "What a worker would start",
    _of_first("queue", lambda item: item.queue, "the queue's name", is_bytes=True),
    _of_first("id", lambda item: item.item_id, "the item's ID", is_bytes=True, is_id=True),
    Field("items", lambda plan: len(plan.items), "how many items the command would get"),
    _of_first("returns", lambda item: item.returns or 0, "how often the item was returned"),
    _of_command(
        "command", lambda command: list(map(escaped, command.arguments)), "the words of the command"
    ),
    _of_command("stdin_bytes", lambda command: len(command.stdin or b""), "the size of its stdin"),
    Field("reason", lambda plan: plan.reason, "why no command can be made"),
)


def _plan_sections(plan: Planned) -> list[Section]:
    first = plan.items[0]
    rows: list[tuple[str, str, str | None]] = [("item", escaped(first.item_id), None)]
    rows.append(("queue", escaped(first.queue), None))
    if len(plan.items) > 1:
        rows.append(("items", human.count(len(plan.items)), None))
    returns = first.returns or 0
    rows.append(("returned", "once" if returns == 1 else f"{returns:,} times", None))
    if plan.invocation is None:
        rows.append(("buried", escaped_text(plan.reason or ""), None))
    else:
        words = " ".join(map(shell_word, plan.invocation.arguments))
        rows.append(("command", words, COMMAND_STYLE))
        rows.append(("stdin", human.size(len(plan.invocation.stdin or b"")), None))
    return [Section("", rows)]
