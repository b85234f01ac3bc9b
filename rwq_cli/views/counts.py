"""The counts of queues: `rwq stats` and `rwq queues`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rwq_cli.core.model import Counts, State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Cut, Field, Fields
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import Output
from rwq_cli.output.sections import Row, Section

if TYPE_CHECKING:
    from rwq_cli.views.watching import Tick

# The broken states have plural names in some counts.
_BROKEN = frozenset(
    state.value.replace("-", "_") + plural
    for state in State
    if state.is_broken
    for plural in ("", "s")
)
# Columns are left out in the reverse of this order.
_FIRST_RANK = 40


def _count(number: int, name: str, help: str, title: str = "") -> Field[Counts]:
    """A field that is an attribute of `Counts`, with `_seconds` for `_s`."""

    def value(counts: Counts) -> int | None:
        known: int | None = getattr(counts, name.replace("_seconds", "_s"))
        return known

    return Field(
        name,
        value,
        help,
        title=title,
        format=lambda counts: _cell(name, value(counts)),
        right=True,
        style=lambda counts: "red" if name in _BROKEN and value(counts) else None,
        rank=_FIRST_RANK - number,
        may_be_unknown=True,
    )


def _cell(name: str, number: int | None) -> str:
    if name.endswith("_seconds"):
        return human.ago(number)
    if name.endswith("_ms"):
        return human.duration(None if number is None else number / 1000)
    if name == "payload_sampled" and not number:
        # None was examined.
        return "-"
    return human.size(number) if name.endswith("_bytes") else human.count(number)


COUNT_FIELDS: Fields[Counts] = Fields(
    "The counts of a queue",
    Field(
        "queue",
        lambda counts: counts.queue,
        "the queue's name",
        is_bytes=True,
        is_id=True,
        cut=Cut.MIDDLE,
    ),
    *(
        _count(number, *declared)
        for number, declared in enumerate(
            (
                ("waiting", "the length of the main list"),
                ("processing", "the length of the list of items that workers took"),
                ("leased", "of these: with a lease that expires"),
                (
                    "held",
                    "of these: with a lease without expiry; with `--deep`, also those in no list",
                ),
                (
                    "abandoned",
                    "of these: without a lease; `queues` looks at up to 1,000",
                ),
                ("delayed", "set aside until their time, including those that are due now"),
                ("due", "of these: due now"),
                ("buried", "set aside"),
                ("returned", "items that were returned at least once"),
                ("orphaned", "in no list, without a lease; `--deep` only"),
                ("unlisted", "in no list, with a lease; `--deep` only"),
                ("duplicated", "listed more than once; `--deep` only"),
                ("ghosts", "entries without data; `--deep` only"),
                ("stray_leases", "leases without an item; `--deep` only"),
                ("wrong_types", "keys of the wrong type; `--deep` only"),
                ("returns", "the returns of all items together; `--deep` only"),
                ("results", "results that are kept; `--deep` only"),
                ("oldest_waiting_seconds", "since the next item was last used", "NEXT ITEM"),
                ("lease_soonest_ms", "until the first lease expires", "FIRST LEASE ENDS"),
                ("lease_latest_ms", "until the last lease expires", "LAST LEASE ENDS"),
                (
                    "payload_sampled",
                    "how many waiting items were measured for the next three",
                    "SAMPLED",
                ),
                ("payload_min_bytes", "the smallest data", "SMALLEST"),
                ("payload_median_bytes", "the median", "MEDIAN"),
                ("payload_max_bytes", "the largest data", "LARGEST"),
            )
        )
    ),
)

LENGTHS = ("queue", "waiting", "processing", "delayed", "buried")
QUEUES_PLAIN = (*LENGTHS, "abandoned")
_QUEUES = ("queue", "waiting", "processing", "abandoned", "delayed", "buried")
_STATES = ("queue", "waiting", "leased", "abandoned", "held", "delayed", "buried")
_DEEP = (*_STATES, "orphaned", "duplicated", "ghosts")


def write_queues(out: Output, counts: Iterable[Counts], tick: "Tick | None", *, empty: str) -> None:
    """Write the lengths of queues, and their abandoned items: `queues` reads no other counts."""
    _write_table(out, counts, _QUEUES, QUEUES_PLAIN, tick, wide=_QUEUES, empty=empty)


def write_stats(
    out: Output,
    counts: Iterable[Counts],
    tick: "Tick | None",
    *,
    fast: bool,
    deep: bool,
    one: bool,
) -> None:
    """Write the counts of one queue at length, or those of several as a table."""
    output, plain = out.options.format, _DEEP if deep else _STATES
    columns = LENGTHS if fast else plain
    is_detailed = output is not OutputFormat.WIDE and (tick is None or output.is_table)
    if one and is_detailed:
        fields = COUNT_FIELDS if tick is None else COUNT_FIELDS.plus(tick.time, *tick.rate_fields())
        out.describe(
            counts,
            fields,
            lambda each: [*count_sections(each), *([tick.section(each)] if tick else [])],
            csv_columns=columns,
        )
        return
    _write_table(out, counts, columns, plain, tick)


def _write_table(
    out: Output,
    counts: Iterable[Counts],
    columns: Sequence[str],
    plain: Sequence[str],
    tick: "Tick | None",
    *,
    wide: Sequence[str] = (),
    empty: str = "",
) -> None:
    if tick is None:
        out.table(counts, COUNT_FIELDS, columns, plain_columns=plain, wide=wide, empty=empty)
        return
    *rates, least = tick.rate_fields()
    out.table(
        counts,
        COUNT_FIELDS.plus(tick.time, *rates, least),
        (*columns, *rates),
        plain_columns=(*plain, tick.time, *rates),
        wide=wide and (*wide, tick.time, *rates),
        empty=empty,
        csv_also=[tick.time],
    )


# In the order of `stats`; the last are shown only if there are any.
_ROWS = (
    *("waiting", "leased", "abandoned", "held", "delayed", "due", "buried", "orphaned"),
    *("unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types"),
)
_RARE = ("returned", "returns", "results")


def count_sections(counts: Counts) -> list[Section]:
    """The counts of one queue at length."""
    numbers = {name: getattr(counts, name) for name in (*_ROWS, *_RARE)}
    rows: list[Row] = [
        (name.replace("_", " "), human.count(number), "red" if name in _BROKEN and number else None)
        for name, number in numbers.items()
        if number is not None and (number or name in _ROWS)
    ]
    if counts.leased is None:
        rows.insert(1, ("processing", human.count(counts.processing), None))
    unknown = [name.replace("_", " ") for name, number in numbers.items() if number is None]
    if unknown:
        how = "" if counts.leased is None else " (--deep counts them)"
        rows.append(("not counted", ", ".join(unknown) + how, "dim"))
    more: list[Row] = []
    if counts.oldest_waiting_s is not None:
        more.append(("next item", f"last used {human.ago(counts.oldest_waiting_s)}", None))
    if (when := leases_end(counts)) is not None:
        more.append(("leases end", when, None))
    if counts.payload_sampled:
        smallest, median, largest = map(
            human.size,
            (counts.payload_min_bytes, counts.payload_median_bytes, counts.payload_max_bytes),
        )
        sample = f"(a sample of {human.count(counts.payload_sampled)} waiting)"
        more.append(("payloads", f"{smallest} to {largest}, median {median} {sample}", None))
    sections = [Section(escaped(counts.queue), rows, numbers=True)]
    return [*sections, Section("", more)] if more else sections


def leases_end(counts: Counts) -> str | None:
    """When the leases of a queue end, such as `in 5s to 4m59s`; None if that is unknown."""
    if counts.lease_soonest_ms is None or counts.lease_latest_ms is None:
        return None
    ends = (counts.lease_soonest_ms / 1000, counts.lease_latest_ms / 1000)
    return f"in {' to '.join(dict.fromkeys(map(human.duration, ends)))}"
