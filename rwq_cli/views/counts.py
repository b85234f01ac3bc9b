"""The counts of queues: `rwq stats` and `rwq queues`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rwq_cli.core.model import Counts, State
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.report import LAST_EXTRA, Column, Cut, Records, Row, Section, View

# The JSON fields after the queue's name: attributes of `Counts`, with `_seconds` for `_s`.
_FIELDS = (
    *("waiting", "processing", "leased", "held", "abandoned", "delayed", "due", "buried"),
    *("returned", "orphaned", "unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types"),
    *("returns", "results", "oldest_waiting_seconds", "lease_soonest_ms", "lease_latest_ms"),
    *("payload_sampled", "payload_min_bytes", "payload_median_bytes", "payload_max_bytes"),
)
# The headings that are not the names of the fields.
_TITLES = {
    "oldest_waiting_seconds": "NEXT ITEM",
    "lease_soonest_ms": "FIRST LEASE ENDS",
    "lease_latest_ms": "LAST LEASE ENDS",
    "payload_sampled": "SAMPLED",
    "payload_min_bytes": "SMALLEST",
    "payload_median_bytes": "MEDIAN",
    "payload_max_bytes": "LARGEST",
}
# The broken states have plural names in some counts.
_BROKEN = frozenset(
    state.value.replace("-", "_") + plural
    for state in State
    if state.is_broken
    for plural in ("", "s")
)


def counts_fields(counts: Counts) -> dict[str, Any]:
    """A queue's counts as JSON; null is unknown."""
    numbers = {name: getattr(counts, name.replace("_seconds", "_s")) for name in _FIELDS}
    return {**bytes_fields("queue", counts.queue), **numbers}


def _column(name: str, rank: int) -> Column[Counts]:
    def value(counts: Counts) -> int | None:
        number: int | None = getattr(counts, name.replace("_seconds", "_s"))
        return number

    return Column(
        _TITLES.get(name) or name.upper().replace("_", " "),
        value,
        lambda counts: _cell(name, value(counts)),
        right=True,
        style=lambda counts: "red" if name in _BROKEN and value(counts) else None,
        field=name,
        rank=rank,
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


def _columns(*names: str) -> tuple[Column[Counts], ...]:
    """The columns of these counts; on a narrow terminal, the last are left out first."""
    first = LAST_EXTRA + len(names)
    queue: Column[Counts] = Column("QUEUE", lambda counts: counts.queue, cut=Cut.MIDDLE)
    return (queue, *(_column(name, first - index) for index, name in enumerate(names)))


_LENGTHS = ("waiting", "processing", "delayed", "buried")
_STATES = ("waiting", "leased", "abandoned", "held", "delayed", "buried")


def stats_report(counts: Iterable[Counts], *, fast: bool, deep: bool, one: bool) -> Records[Counts]:
    """The report of `rwq stats`: one queue at length, or several as a table."""
    names = (*_STATES, "orphaned", "duplicated", "ghosts") if deep else _STATES
    view = _view(_columns(*(_LENGTHS if fast else names)), _sections if one else None)

    def note(counts: Counts, _output: OutputFormat) -> str | None:
        denied = deep and counts.results is None
        return "rwq: this user may not read results; they are not counted" if denied else None

    return Records(
        view=view._replace(plain_columns=_columns(*names)),
        records=counts,
        is_one=one,
        note=note,
    )


def queues_view() -> View[Counts]:
    """The lengths of queues, and their abandoned items."""
    columns = _columns("waiting", "processing", "abandoned", "delayed", "buried")
    # `queues` reads no other counts.
    return _view(columns)._replace(
        plain_columns=_columns(*_LENGTHS, "abandoned"), all_columns=columns
    )


def _view(
    columns: Sequence[Column[Counts]], sections: Callable[[Counts], Sequence[Section]] | None = None
) -> View[Counts]:
    sample = Counts(b"", 0, 0, 0, 0)
    return View(
        counts_fields,
        lambda counts: counts.queue,
        sample,
        columns,
        sections,
        all_columns=_columns(*_FIELDS),
    )


# In the order of `stats`; the last are shown only if there are any.
_ROWS = (
    *("waiting", "leased", "abandoned", "held", "delayed", "due", "buried", "orphaned"),
    *("unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types"),
)
_RARE = ("returned", "returns", "results")


def _sections(counts: Counts) -> list[Section]:
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
    sections = [Section(escaped(counts.queue), rows, numbers=True)]
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
    return [*sections, Section("", more)] if more else sections


def leases_end(counts: Counts) -> str | None:
    """When the leases of a queue end, such as `in 5s to 4m59s`; None if that is unknown."""
    if counts.lease_soonest_ms is None or counts.lease_latest_ms is None:
        return None
    ends = (counts.lease_soonest_ms / 1000, counts.lease_latest_ms / 1000)
    return f"in {' to '.join(dict.fromkeys(map(human.duration, ends)))}"
