"""What `--watch` adds to records: the time of a tick, and the rates of queues."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rwq_cli.core.inspect.activity import UNKNOWN_RATES, Rates
from rwq_cli.core.model import Counts
from rwq_cli.output import human
from rwq_cli.output.field import Field
from rwq_cli.output.sections import Section

T = TypeVar("T")

# The rates are what a queue is watched for, so they are left out last.
_RANKS = (20, 20, 3)
_RATES = (
    ("in_per_second", "IN/S", "in_per_s", "how many were added or returned (`stats`, `queues`)"),
    (
        "left_per_second",
        "LEFT/S",
        "left_per_s",
        "how many were completed, removed or returned (`stats`, `queues`)",
    ),
    (
        "empty_in_seconds",
        "EMPTY IN",
        "empty_in_s",
        "until nothing waits, at the current rates (`stats`, `queues`)",
    ),
)


def rate_columns(of: Callable[[T], Rates], ranks: tuple[int, ...]) -> list[Field[T]]:
    def column(name: str, title: str, attribute: str, help: str, rank: int) -> Field[T]:
        def value(record: T) -> float | None:
            number: float | None = getattr(of(record), attribute)
            return None if number is None else round(number, 3)

        def cell(record: T) -> str:
            rates = of(record)
            number: float | None = getattr(rates, attribute)
            if attribute == "empty_in_s":
                return human.duration(number)
            return human.rate(number, is_least=rates.is_least)

        return Field(
            name, value, help, title, format=cell, right=True, rank=rank, may_be_unknown=True
        )

    return [column(*row, rank) for row, rank in zip(_RATES, ranks, strict=True)]


@dataclass(frozen=True)
class Tick:
    at_ms: int
    rates: Mapping[bytes, Rates] = field(default_factory=dict)

    @property
    def time(self) -> Field[Any]:
        """The time, as the last field of a record."""
        return Field("at_ms", lambda _: self.at_ms, "the time of the tick", title="AT")

    def rate_fields(self) -> list[Field[Counts]]:
        """The fields of a queue's rates; the last one is no column."""
        least: Field[Counts] = Field(
            "rates_are_least",
            lambda counts: self.rates_of(counts).is_least,
            "whether the rates may be higher (`stats`, `queues`)",
        )
        return [*rate_columns(self.rates_of, _RANKS), least]

    def rates_of(self, counts: Counts) -> Rates:
        return self.rates.get(counts.queue, UNKNOWN_RATES)

    def section(self, counts: Counts) -> Section:
        came, left, empty_in, _ = (column.cell(counts) for column in self.rate_fields())
        is_draining = self.rates_of(counts).empty_in_s is not None
        end = f", empty in {empty_in}" if is_draining else ""
        return Section("", [("rates", f"in {came}/s, left {left}/s{end}", None)])
