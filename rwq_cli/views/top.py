"""What `rwq top` shows: its columns, its header, and the summary of one queue."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from rwq_cli.core.inspect.rates import Rates, Sample
from rwq_cli.core.model import Counts, Item
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import DURATION, Cut, Field, Fields, field
from rwq_cli.output.sections import Piece
from rwq_cli.views.counts import NOT_COUNTED, RATE_FIELDS, count_field, count_sections
from rwq_cli.views.history import sparkline


class QueueRow(NamedTuple):
    """What is known of a queue; None for what is unknown."""

    queue: bytes
    sample: Sample
    # In processing, what is not abandoned and what is; whether there may be more of both.
    running: int | None = None
    abandoned: int | None = None
    is_least: bool = False
    # About how long the next item has waited.
    next_age_s: int | None = None
    rates: Rates = Rates()
    # How many items waited in the last samples, the latest last.
    history: Sequence[int] = ()


_HISTORY_CELLS = 20
# How many reasons a summary names.
_REASONS = 5


_HISTORY = {
    "format": lambda row: sparkline(row.history[-_HISTORY_CELLS:]).rjust(_HISTORY_CELLS),
    "style": lambda _row: "cyan",
}
_IN, _DONE, _EMPTY_IN = (
    rate_field.within(attrgetter("rates"))._replace(rank=rank)
    for rate_field, rank in zip(RATE_FIELDS, (6, 8, 5), strict=True)
)

QUEUE_COLUMNS: tuple[Field[QueueRow], ...] = (
    field("queue", "queue", "its name", cut=Cut.MIDDLE),
    count_field("waiting", "sample.waiting", rank=12),
    count_field("running", "running", rank=10),
    count_field("abandoned", "abandoned", rank=13, style="red"),
    count_field("delayed", "sample.delayed", rank=4),
    count_field("buried", "sample.buried", rank=9, style="yellow"),
    _IN,
    _DONE,
    field("next_age_seconds", "next_age_s", "the age of the next item", DURATION, "NEXT AGE", 7),
    _EMPTY_IN,
    field(
        "history", "sample.waiting", "what waited at the last minutes, and now", _HISTORY, rank=1
    ),
)
# Those that rows can be sorted by: a history has no order.
SORT_COLUMNS = QUEUE_COLUMNS[:-1]


sort_column = Fields("A queue in top", *SORT_COLUMNS).column_by


def sorted_rows(
    rows: Iterable[QueueRow], column: Field[QueueRow], *, reverse: bool
) -> list[QueueRow]:
    if not column.right:
        return sorted(rows, key=lambda row: row.queue, reverse=reverse)

    def place(row: QueueRow) -> tuple[bool, float, bytes]:
        number = column.get(row)
        return number is None, (number or 0) * (1 if reverse else -1), row.queue

    return sorted(rows, key=place)


def sort_columns(sort_field: Field[QueueRow], *, reverse: bool) -> list[Field[QueueRow]]:
    """Return all columns; a mark in the title shows which one the rows are sorted by."""
    mark = "▲" if reverse is sort_field.right else "▼"
    return [
        column._replace(title=column.heading + mark) if column.name == sort_field.name else column
        for column in QUEUE_COLUMNS
    ]


# A queue of which the next item has waited for this long, while nothing was done.
_STUCK_S = 600


def has_trouble(row: QueueRow) -> bool:
    """Whether something is abandoned or buried, or nothing moves."""
    is_stuck = (row.next_age_s or 0) >= _STUCK_S and not row.rates.done_per_s
    return bool(row.abandoned or row.is_least or row.sample.buried or is_stuck)


def total_row(rows: Sequence[QueueRow]) -> QueueRow:
    """The sums of several queues; None for what is unknown of one."""

    def total(numbers: Iterable[float | None]) -> Any:
        samples = list(numbers)
        return None if None in samples else sum(number for number in samples if number is not None)

    samples = [row.sample for row in rows]
    counts = (
        sum(getattr(sample, name) for sample in samples)
        for name in ("waiting", "processing", "delayed", "buried")
    )
    return QueueRow(
        b"total",
        Sample(0.0, *counts),
        total(row.running for row in rows),
        total(row.abandoned for row in rows),
        any(row.is_least for row in rows),
        rates=Rates(
            total(row.rates.added_per_s for row in rows),
            total(row.rates.done_per_s for row in rows),
        ),
    )


def state_parts(counts: Counts) -> list[Piece]:
    rows = [row for section in count_sections(counts) for row in section.lines]
    return [(f"{label} {value}", style) for label, value, style in rows if label != NOT_COUNTED]


def reason_parts(buried: Sequence[Item], total: int) -> list[Piece]:
    """Return how many items are buried for each reason, the most frequent first."""
    if not buried:
        return []
    reasons = Counter(item.reason or b"" for item in buried)
    first = "" if len(buried) == total else f"the first {human.count(len(buried))} "
    parts: list[Piece] = [(f"{first}buried by reason:", None)]
    most_common = reasons.most_common(_REASONS)
    for reason, count in most_common:
        parts.append((f"{human.count(count)} {escaped(reason) or '(none)'}", "yellow"))
    if others := reasons.total() - sum(count for _, count in most_common):
        parts.append((f"{human.count(others)} others", None))
    return parts
