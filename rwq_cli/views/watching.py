"""What `--watch` adds to the records of a report: the time, and the rates of queues."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rwq_cli.core.inspect.activity import UNKNOWN_RATES, Rates
from rwq_cli.core.model import Counts
from rwq_cli.output import human
from rwq_cli.output.report import LAST_EXTRA, Column, Section, View

T = TypeVar("T")

# The rates are what a queue is watched for, so they are left out last.
_RATE_RANK = 20


def with_time(view: View[T], at_ms: int) -> View[T]:
    """A view with the time of the tick as the last field.

    Args:
        view: The view.
        at_ms: The time, on the server's clock, unix ms.
    """

    def fields(record: T) -> dict[str, Any]:
        return {**view.fields(record), "at_ms": at_ms}

    at: Column[T] = Column("AT", lambda _: at_ms, field="at_ms")
    return _with_columns(view._replace(fields=fields), [at])


def with_rates(view: View[Counts], rates: Mapping[bytes, Rates]) -> View[Counts]:
    """A view of queues with their rates.

    Args:
        view: The view.
        rates: The rates by the names of the queues; those of others are unknown.
    """

    def of(counts: Counts) -> Rates:
        return rates.get(counts.queue, UNKNOWN_RATES)

    def fields(counts: Counts) -> dict[str, Any]:
        added = {column.name: column.raw(counts) for column in columns}
        return {**view.fields(counts), **added, "rates_are_least": of(counts).is_least}

    columns = rate_columns(of, (_RATE_RANK, _RATE_RANK, LAST_EXTRA))
    sections = view.sections

    def sections_with_rates(counts: Counts) -> Sequence[Section]:
        assert sections is not None
        known = of(counts)
        came, left = (
            human.rate(each, is_least=known.is_least) for each in (known.in_per_s, known.left_per_s)
        )
        text = f"in {came}/s, left {left}/s"
        if known.empty_in_s is not None:
            text += f", empty in {human.duration(known.empty_in_s)}"
        return [*sections(counts), Section("", [("rates", text, None)])]

    shown = view._replace(
        fields=fields,
        columns=(*view.columns, *columns),
        sections=sections and sections_with_rates,
    )
    return _with_columns(shown, columns)


def rate_columns(
    of: Callable[[T], Rates], ranks: tuple[int, int, int]
) -> tuple[Column[T], Column[T], Column[T]]:
    """The columns IN/S, LEFT/S and EMPTY IN.

    Args:
        of: Returns the rates of a record.
        ranks: The ranks of the columns.
    """

    def per_s(
        title: str, field: str, value: Callable[[Rates], float | None], rank: int
    ) -> Column[T]:
        return Column(
            title,
            lambda record: _rounded(value(of(record))),
            lambda record: human.rate(value(of(record)), is_least=of(record).is_least),
            right=True,
            field=field,
            rank=rank,
        )

    return (
        per_s("IN/S", "in_per_second", lambda rates: rates.in_per_s, ranks[0]),
        per_s("LEFT/S", "left_per_second", lambda rates: rates.left_per_s, ranks[1]),
        Column(
            "EMPTY IN",
            lambda record: _rounded(of(record).empty_in_s),
            lambda record: human.duration(of(record).empty_in_s),
            right=True,
            field="empty_in_seconds",
            rank=ranks[2],
        ),
    )


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _with_columns(view: View[T], columns: Sequence[Column[T]]) -> View[T]:
    """A view with further columns of `plain` and `wide`."""
    plain = view.plain_columns or view.columns
    return view._replace(
        plain_columns=(*plain, *columns), all_columns=(*view.all_columns, *columns)
    )
