"""What `--watch` adds to records: the time of a tick, and the rates of queues."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rwq_cli.core.inspect.activity import UNKNOWN_RATES, Rates
from rwq_cli.core.model import Counts
from rwq_cli.output import human
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.sections import Section

T = TypeVar("T")

# The rates are what a queue is watched for, so they are left out last.
_RATE_RANK = 20
_EMPTY_IN_RANK = 3


@dataclass(frozen=True)
class Tick:
    """One of the times at which a command writes its records.

    Attributes:
        at_ms: The time, on the server's clock, unix ms.
        rates: The rates by the names of the queues; those of others are unknown.
    """

    at_ms: int
    rates: Mapping[bytes, Rates] = field(default_factory=dict)

    @property
    def time(self) -> "Field[Any]":
        """The time, as the last field of a record."""
        return Field("at_ms", lambda _: self.at_ms, "the time of the tick", title="AT")

    def rate_fields(self) -> "tuple[Field[Counts], ...]":
        """The fields of a queue's rates."""
        columns = rate_columns(self.rates_of, (_RATE_RANK, _RATE_RANK, _EMPTY_IN_RANK))
        least: Field[Counts] = Field(
            "rates_are_least",
            lambda counts: self.rates_of(counts).is_least,
            "whether the rates may be higher (`stats`, `queues`)",
        )
        return (*columns, least)

    def rates_of(self, counts: Counts) -> Rates:
        """The rates of a queue."""
        return self.rates.get(counts.queue, UNKNOWN_RATES)

    def section(self, counts: Counts) -> Section:
        """The rates of a queue, for its detailed record."""
        known = self.rates_of(counts)
        came, left = (
            human.rate(each, is_least=known.is_least) for each in (known.in_per_s, known.left_per_s)
        )
        text = f"in {came}/s, left {left}/s"
        if known.empty_in_s is not None:
            text += f", empty in {human.duration(known.empty_in_s)}"
        return Section("", [("rates", text, None)])


def rate_columns(
    of: Callable[[T], Rates], ranks: tuple[int, int, int]
) -> tuple[Field[T], Field[T], Field[T]]:
    """The fields IN/S, LEFT/S and EMPTY IN."""

    def per_s(
        title: str, name: str, value: Callable[[Rates], float | None], rank: int, help: str
    ) -> Field[T]:
        return Field(
            name,
            lambda record: _rounded(value(of(record))),
            help,
            title=title,
            format=lambda record: human.rate(value(of(record)), is_least=of(record).is_least),
            right=True,
            rank=rank,
            may_be_unknown=True,
        )

    return (
        per_s(
            "IN/S",
            "in_per_second",
            lambda rates: rates.in_per_s,
            ranks[0],
            "how many were added or returned (`stats`, `queues`)",
        ),
        per_s(
            "LEFT/S",
            "left_per_second",
            lambda rates: rates.left_per_s,
            ranks[1],
            "how many were completed, removed or returned (`stats`, `queues`)",
        ),
        Field(
            "empty_in_seconds",
            lambda record: _rounded(of(record).empty_in_s),
            "until nothing waits, at the current rates (`stats`, `queues`)",
            title="EMPTY IN",
            format=lambda record: human.duration(of(record).empty_in_s),
            right=True,
            rank=ranks[2],
            may_be_unknown=True,
        ),
    )


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


# What `--watch` adds, for the reference.
TICK_FIELDS: Fields[Counts] = Fields("What --watch adds", *Tick(0).rate_fields(), Tick(0).time)
