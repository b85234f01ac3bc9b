"""The counts of queues: `rwq stats` and `rwq queues`; and what `--watch` adds to records."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.model import Counts
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import AGO, ID, SIZE, Field, Fields, attribute, field
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import Output
from rwq_cli.output.sections import Line, Section

if TYPE_CHECKING:
    from rwq_cli.core.inspect.rates import Rates

NOT_COUNTED = "not counted"


def count_field(
    name: str, path: str, help: str = "a count", rank: int = 0, style: str | None = None
) -> Field[Any]:
    """Return the field of a count, shown as `-` if unknown, `>41,000` if more; styled above 0."""
    count = attribute(path)

    def is_least(record: Any) -> bool:
        return record.is_least and name in ("abandoned", "running")

    def due(record: Any) -> str:
        number = getattr(record, "due", None) if name == "delayed" else None
        return f" ({human.count(number)} due)" if number else ""

    return field(
        name,
        count,
        help,
        format=lambda record: f"{'>' * is_least(record)}{human.count(count(record))}{due(record)}",
        right=True,
        style=lambda record: style if count(record) or is_least(record) else None,
        rank=rank,
        may_be_unknown=True,
    )


# Every count with its meaning, for monitoring, too; those of items first.
ITEMS = {
    "waiting": "items that wait to be leased: the length of the main list",
    "processing": "the length of the list of items that workers took",
    "leased": "in processing, with a lease that expires",
    "held": "in processing, with a lease without expiry; with `--deep`, also those in no list",
    "abandoned": "in processing, without a lease; `queues` counts for a second at most",
    "delayed": "set aside until their time, including those that are due now",
    "due": "delayed items that are due now",
    "buried": "items that were set aside",
    "returned": "items that were returned at least once",
    "orphaned": "in no list, without a lease; `--deep` only",
    "unlisted": "in no list, with a lease; `--deep` only",
    "duplicated": "listed more than once; `--deep` only",
}
OTHERS = {
    "ghosts": "entries without data; `--deep` only",
    "stray_leases": "leases without an item; `--deep` only",
    "wrong_types": "keys of the wrong type; `--deep` only",
    "returns": "the returns of all items together; `--deep` only",
    "results": "results that are kept; `--deep` only",
}
_BROKEN = ("held", "abandoned", "orphaned", "unlisted", "duplicated", *tuple(OTHERS)[:3])
_LEFT = {"show": lambda ms: human.duration(None if ms is None else ms / 1000), "right": True}
_SAMPLED = {"show": lambda number: human.count(number or None), "right": True}
_MEASURES = (
    ("oldest_waiting_seconds", "since the next item was last used", AGO, "NEXT ITEM"),
    ("lease_soonest_ms", "until the first lease expires", _LEFT, "FIRST LEASE ENDS"),
    ("lease_latest_ms", "until the last lease expires", _LEFT, "LAST LEASE ENDS"),
    ("payload_sampled", "how many waiting items were sampled", _SAMPLED, "SAMPLED"),
    ("payload_min_bytes", "the smallest data", SIZE, "SMALLEST"),
    ("payload_median_bytes", "the median", SIZE, "MEDIAN"),
    ("payload_max_bytes", "the largest data", SIZE, "LARGEST"),
)


COUNT_FIELDS: Fields[Counts] = Fields(
    "The counts of a queue",
    field("queue", "queue", "the queue's name", ID),
    *(
        # On a narrow terminal the last one is left out first, and the most urgent one last.
        count_field(
            *(name, name, help, 50 if name == "abandoned" else rank),
            "red" if name in _BROKEN else None,
        )
        for rank, (name, help) in zip(range(40, 0, -1), {**ITEMS, **OTHERS}.items(), strict=False)
    ),
    *(
        field(name, name.replace("_seconds", "_s"), help, kind, title, rank, may_be_unknown=True)
        for rank, (name, help, kind, title) in zip(range(23, 0, -1), _MEASURES, strict=False)
    ),
    field("abandoned_is_least", "is_least", "whether there may be more: the time to count was up"),
)


def _rate(name: str, title: str, rank: int, help: str) -> "Field[Rates]":
    number = attrgetter(f"{name.partition('second')[0]}s")

    def value(rates: "Rates") -> float | None:
        per_second: float | None = number(rates)
        return None if per_second is None else round(per_second, 3)

    def cell(rates: "Rates") -> str:
        is_time = name == "empty_in_seconds"
        return (human.duration if is_time else human.rate)(number(rates))

    help = f"{help} (`stats`, `queues`)"
    return Field(name, value, help, title, cell, right=True, rank=rank, may_be_unknown=True)


# They are what a queue is watched for, so they are left out last.
RATE_FIELDS = (
    _rate("added_per_second", "IN/S", 20, "how many were added; null if unknown"),
    _rate("done_per_second", "DONE/S", 20, "how many were completed, removed or moved away"),
    _rate("empty_in_seconds", "EMPTY IN", 3, "until nothing waits, at the current rates"),
)


class Tick(NamedTuple):
    at_ms: int
    rates: "Mapping[bytes, Rates]" = MappingProxyType({})

    @property
    def time(self) -> Field[Any]:
        """The time, as the last field of a record."""
        return Field("at_ms", lambda _: self.at_ms, "the time of the tick", title="AT")

    def rate_fields(self) -> list[Field[Counts]]:
        """Return the fields of a queue's rates."""
        return [rate.within(self.rates_of) for rate in RATE_FIELDS]

    def rates_of(self, counts: Counts) -> "Rates":
        # Only --watch needs it.
        from rwq_cli.core.inspect.rates import Rates

        return self.rates.get(counts.queue) or Rates()

    def section(self, counts: Counts) -> Section:
        added, done, empty_in = (column.cell(counts) for column in self.rate_fields())
        is_draining = self.rates_of(counts).empty_in_s is not None
        end = f", empty in {empty_in}" if is_draining else ""
        return Section("", [("rates", f"in {added}/s, done {done}/s{end}", None)])


LENGTHS = ("queue", "waiting", "processing", "delayed", "buried")
QUEUES_PLAIN = (*LENGTHS, "abandoned")
QUEUES = ("queue", "waiting", "processing", "abandoned", "delayed", "buried")
_STATES = ("queue", "waiting", "leased", "abandoned", "held", "delayed", "buried")
_DEEP = (*_STATES, "orphaned", "duplicated", "ghosts")


def write_stats(
    out: Output, counts: Iterable[Counts], tick: Tick | None, *, fast: bool, deep: bool, one: bool
) -> None:
    output, plain = out.options.output, _DEEP if deep else _STATES
    columns = LENGTHS if fast else plain
    is_detailed = output is not OutputFormat.WIDE and (tick is None or output.is_table)
    if not (one and is_detailed):
        write_counts(out, counts, columns, plain, tick)
        return
    out.describe(
        counts,
        COUNT_FIELDS.plus(*([tick.time, *tick.rate_fields()] if tick else ())),
        lambda record: [*count_sections(record), *([tick.section(record)] if tick else [])],
        csv_columns=columns,
    )


def write_counts(
    out: Output,
    counts: Iterable[Counts],
    columns: Sequence[str],
    plain: Sequence[str],
    tick: Tick | None,
    *,
    wide: Sequence[str] = (),
    empty: str = "",
) -> None:
    at, rates = ([tick.time], tick.rate_fields()) if tick else ([], [])
    out.table(
        counts,
        COUNT_FIELDS.plus(*at, *rates),
        (*columns, *rates),
        plain_columns=(*plain, *at, *rates),
        wide=wide and (*wide, *at, *rates),
        empty=empty,
        csv_also=at,
    )


# In the order of `stats`; those of `_RARE` are shown only if there are any.
_ROWS = (*_DEEP[1:8], "unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types")
_RARE = ("returned", "returns", "results")


def count_sections(counts: Counts) -> list[Section]:
    names = [name for name in (*_ROWS, *_RARE) if name in _ROWS or getattr(counts, name) != 0]
    unknown = [name.replace("_", " ") for name in names if getattr(counts, name) is None]
    if counts.leased is None:
        names.insert(1, "processing")
    rows = COUNT_FIELDS.rows(counts, *names)
    if unknown:
        remedy = "" if counts.leased is None else " (--deep counts them)"
        rows.append((NOT_COUNTED, ", ".join(unknown) + remedy, "dim"))
    more: list[Line] = []
    if counts.oldest_waiting_s is not None:
        more.append(("next item", f"last used {human.ago(counts.oldest_waiting_s)}", None))
    if counts.lease_soonest_ms is not None and counts.lease_latest_ms is not None:
        ends = (counts.lease_soonest_ms / 1000, counts.lease_latest_ms / 1000)
        when = " to ".join(dict.fromkeys(map(human.duration, ends)))
        more.append(("leases end", f"in {when}", None))
    if counts.payload_sampled:
        sizes = (counts.payload_min_bytes, counts.payload_median_bytes, counts.payload_max_bytes)
        smallest, median, largest = map(human.size, sizes)
        sample = f"(a sample of {human.count(counts.payload_sampled)} waiting)"
        more.append(("payloads", f"{smallest} to {largest}, median {median} {sample}", None))
    sections = [Section(escaped(counts.queue), rows, numbers=True)]
    return [*sections, Section("", more)] if more else sections
