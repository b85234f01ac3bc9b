"""What a worker shows: its events, its failures, a live line on a terminal, and a summary."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from threading import RLock
from time import monotonic
from typing import BinaryIO, NamedTuple

from rwq_cli.core.model import Item
from rwq_cli.core.work.job import Fate
from rwq_cli.environment import Environment
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.exposition import Metric
from rwq_cli.output.field import ID, NAME, Field, Fields, attribute, field, format_plain
from rwq_cli.output.progress import LiveLine
from rwq_cli.output.sections import COMMAND_STYLE, Section
from rwq_cli.output.tally import OutcomeKind, OutcomeRecord
from rwq_cli.views.command_lines import shell_word
from rwq_cli.work.notes import STARTED, Event, Notes, Progress, counted
from rwq_cli.work.programs import Invocation

_TICK_S = 0.5
# The rate is measured over this many ticks.
_RATE_TICKS = 20

_FIELDS: tuple[Field[Event], ...] = (
    field(
        "event",
        "kind",
        "`started`, `completed`, `retry`, `released`, `buried`, `rejected` or `lost`",
    ),
    field("queue", "queue", "the queue's name", NAME),
    field("id", "item_id", "the item's ID", ID),
    field("attempt", "attempt", "the number of this attempt, from 1, or of the last one"),
    field("returns", "returns", "how often it failed or was returned before"),
    field("pid", "pid", "the command's process ID; null if none was started"),
    field("exit", "exit_code", "its exit code; null until it exits"),
    field("signal", "signal", "the number of the signal that ended it"),
    field("seconds", lambda event: _milli(event.run_s), "how long it ran"),
    field("reason", "reason", "why it was retried, given up or lost", is_bytes=True),
    field("delay_seconds", lambda event: _milli(event.delay_s), "until the next attempt"),
    field("gave_up", "gave_up", "whether the item was given up"),
    field("time", lambda event: _milli(event.at_s), "when, in Unix seconds"),
)
EVENT_FIELDS: Fields[OutcomeRecord[Event]] = Fields(
    "An event of a worker",
    *(column.within(attribute("outcome")) for column in _FIELDS),
    is_stream=True,
    has_summary=True,
)
EVENTS: OutcomeKind[Event] = OutcomeKind(
    EVENT_FIELDS,
    word=lambda event: event.kind,
    item_id=lambda event: event.item_id,
    # Only the end of an item counts.
    counted=[fate.value for fate in Fate],
    printed=frozenset({Fate.COMPLETED.value}),
    names={STARTED: ""},
)


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def joblog_lines(events: Iterable[Event]) -> Iterator[str]:
    """Yield the lines of a job log: one for each item that is done with."""
    # Columns: time, queue, ID, attempt, what happened, exit code, signal, seconds, reason.
    for event in events:
        if event.kind == STARTED:
            continue
        run_s = None if event.run_s is None else f"{event.run_s:.3f}"
        cells = (f"{event.at_s:.3f}", event.queue, event.item_id, event.attempt, event.kind)
        yield "\t".join(
            map(format_plain, (*cells, event.exit_code, event.signal, run_s, event.reason))
        )


class LiveNotes(Notes):
    tick_s = _TICK_S

    def __init__(self, environment: Environment, *, names_queues: bool, colour: bool) -> None:
        super().__init__(environment, names_queues=names_queues)
        self._line = LiveLine(environment, colour=colour)
        # The threads that read what commands print also pass it on.
        self._lock = RLock()
        self._ticks: deque[tuple[float, int]] = deque(maxlen=_RATE_TICKS)

    def tick(self) -> None:
        now_s = monotonic()
        self._ticks.append((now_s, self.progress.counts[Fate.COMPLETED]))
        (first_s, first), (_, last) = self._ticks[0], self._ticks[-1]
        rate = (last - first) / (now_s - first_s) if now_s > first_s else 0.0
        # Imported here, because most workers have no terminal.
        from rich.text import Text

        with self._lock:
            self._line.draw(Text(live_line(self.progress, rate), no_wrap=True, overflow="crop"))

    def hide(self) -> None:
        with self._lock:
            self._line.hide()

    def pass_on(self, stream: BinaryIO, data: bytes) -> None:
        with self._lock, self._line.hidden() as is_shown, suppress(OSError):
            stream.write(data)
            if is_shown and not data.endswith(b"\n"):
                stream.write(b"\n")
            stream.flush()


def live_line(progress: Progress, rate: float) -> str:
    parts = [counted(progress), f"{rate:,.1f}/s", f"{progress.running:,} running"]
    if progress.left is not None:
        remaining = f"{progress.left:,} left"
        if progress.left and rate:
            remaining += f" (~{human.duration(max(1, round(progress.left / rate)))})"
        parts.append(remaining)
    if progress.is_stopping:
        parts.append("stopping")
    elif progress.is_paused:
        parts.append("paused")
    return " · ".join(parts)


def work_metrics(progress: Progress) -> list[Metric]:
    ends = [({"event": fate.value}, number) for fate, number in progress.counts.items()]
    return [
        Metric("work_items_total", "Items handled by this process, by outcome.", ends, "counter"),
        Metric("work_running", "Commands that are running.", [({}, progress.running)]),
    ]


class Planned(NamedTuple):
    """What a dry run would start; without an invocation, `reason` says why not."""

    items: Sequence[Item]
    invocation: Invocation | None
    reason: str | None

    @property
    def first(self) -> Item | None:
        return self.items[0] if self.items else None


# What JSON has if there is no item.
NO_PLAN = Planned([], None, None)

PLAN_FIELDS: Fields[Planned] = Fields(
    "What a worker would start",
    field("queue", "first.queue", "the queue's name", NAME),
    field("id", "first.item_id", "the item's ID", ID),
    field("items", lambda plan: len(plan.items), "how many items the command would get"),
    field(
        "returns",
        lambda plan: plan.first and (plan.first.returns or 0),
        "how often the item was returned",
    ),
    field(
        "command",
        lambda plan: plan.invocation and list(map(escaped, plan.invocation.arguments)),
        "the command's words",
    ),
    field(
        "stdin_bytes",
        lambda plan: plan.invocation and len(plan.invocation.stdin or b""),
        "the size of its stdin",
    ),
    field("reason", "reason", "why no command can be made"),
)


def plan_sections(plan: Planned) -> list[Section]:
    first, returns = plan.items[0], plan.items[0].returns or 0
    rows: list[tuple[str, str, str | None]] = [
        ("item", escaped(first.item_id), None),
        ("queue", escaped(first.queue), None),
        ("returned", "once" if returns == 1 else f"{returns:,} times", None),
    ]
    if len(plan.items) > 1:
        rows.insert(2, ("items", human.count(len(plan.items)), None))
    if plan.invocation is None:
        return [Section("", [*rows, ("buried", escaped_text(plan.reason or ""), None)])]
    words = " ".join(map(shell_word, plan.invocation.arguments))
    stdin = human.size(len(plan.invocation.stdin or b""))
    return [Section("", [*rows, ("command", words, COMMAND_STYLE), ("stdin", stdin, None)])]
