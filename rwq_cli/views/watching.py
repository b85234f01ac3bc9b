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

    columns = [
        _rate("IN/S", "in_per_second", of, lambda rates: rates.in_per_s),
        _rate("LEFT/S", "left_per_second", of, lambda rates: rates.left_per_s),
        Column[Counts](
            "EMPTY IN",
            lambda counts: _rounded(of(counts).empty_in_s),
            lambda counts: human.duration(of(counts).empty_in_s),
            right=True,
            field="empty_in_seconds",
            rank=LAST_EXTRA,
        ),
    ]
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


def _rate(
    title: str, field: str, of: Callable[[Counts], Rates], value: Callable[[Rates], float | None]
) -> Column[Counts]:
    def cell(counts: Counts) -> str:
        rates = of(counts)
        return human.rate(value(rates), is_least=rates.is_least)

    return Column(
        title,
        lambda counts: _rounded(value(of(counts))),
        cell,
        right=True,
        field=field,
        rank=_RATE_RANK,
    )


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _with_columns(view: View[T], columns: Sequence[Column[T]]) -> View[T]:
    """A view with further columns of `plain` and `wide`."""
    plain = view.plain_columns or view.columns
    return view._replace(
        plain_columns=(*plain, *columns), all_columns=(*view.all_columns, *columns)
    )
