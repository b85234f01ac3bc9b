"""What is measured, and what the table says of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.processes import Run

# How much worse the other version may be before a row is named.
TOLERANCE = 1.05


@dataclass(frozen=True)
class Unit:
    """How a value is written.

    Attributes:
        name: Behind the number.
        factor: The value is multiplied by this first.
        digits: Digits after the point.
    """

    name: str
    factor: float = 1.0
    digits: int = 2

    def show(self, value: float) -> str:
        """A value with this unit."""
        return f"{value * self.factor:,.{self.digits}f} {self.name}"


SECONDS = Unit("s")
MILLISECONDS = Unit("ms", 1000, 0)
MIB = Unit("MiB", digits=0)
BYTES = Unit("bytes", digits=0)
CALLS = Unit("an item")


def microseconds_each(count: int) -> Unit:
    """Seconds for so many items, written as microseconds an item."""
    return Unit("µs each", 1e6 / count, 1)


@dataclass(frozen=True)
class Sample:
    """One measurement; less is better.

    Attributes:
        row: What was done. Samples of one name are one row.
        value: What rwq needed.
        unit: How to write it.
        limit: What the ratio may be at most.
        reference: What it is compared with; empty if the limit is for the value itself.
        reference_value: What that needed, in the same unit.
        run: The process, if the value is its time.
    """

    row: str
    value: float
    unit: Unit
    limit: float
    reference: str = ""
    reference_value: float = 1.0
    run: Run | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table, from all samples of one program.

    Of each figure the best is taken: other processes on the machine can only add to it.

    Attributes:
        name: What was done.
        unit: How to write the value.
        value: What rwq needed.
        reference: What it is compared with; empty if nothing.
        reference_value: What that needed.
        limit: What the ratio may be at most.
        client_cpu_s: CPU time of rwq; None if the value is no time.
        server_cpu_s: CPU time of the server; None if the value is no time.
        note: What else to show behind the value.
    """

    name: str
    unit: Unit
    value: float
    reference: str
    reference_value: float
    limit: float
    client_cpu_s: float | None = None
    server_cpu_s: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """The figure that the limit is for."""
        return self.value / self.reference_value

    @property
    def is_within_limit(self) -> bool:
        """Whether the limit is kept."""
        return self.ratio <= self.limit

    @property
    def shown_value(self) -> str:
        """The value with its unit and note."""
        return self.unit.show(self.value) + (f" ({self.note})" if self.note else "")

    @property
    def shown_reference(self) -> str:
        """The reference with its value; empty if there is none."""
        if not self.reference:
            return ""
        return f"{self.reference}: {self.unit.show(self.reference_value)}"


def rows_of(samples: Iterable[Sample]) -> list[Row]:
    """The rows of one program's samples, in the order in which they first came."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        grouped.setdefault(sample.row, []).append(sample)
    return [_row(name, group) for name, group in grouped.items()]


def _row(name: str, samples: list[Sample]) -> Row:
    first = samples[0]
    runs = [sample.run for sample in samples if sample.run]
    return Row(
        name=name,
        unit=first.unit,
        value=min(sample.value for sample in samples),
        reference=first.reference,
        reference_value=min(sample.reference_value for sample in samples),
        limit=first.limit,
        client_cpu_s=min(run.client_cpu_s for run in runs) if runs else None,
        server_cpu_s=min(run.server_cpu_s for run in runs) if runs else None,
    )


@dataclass(frozen=True)
class Comparison:
    """The same row of two versions.

    Attributes:
        old: The other version's.
        new: This version's.
    """

    old: Row
    new: Row

    @property
    def ratio(self) -> float:
        """New to old; above 1 is worse."""
        return _ratio(self.new.value, self.old.value)

    @property
    def is_worse(self) -> bool:
        """Whether the new version needs more than 5 % more."""
        return self.ratio > TOLERANCE

    @property
    def cpu_ratios(self) -> tuple[float, float] | None:
        """New to old in CPU time of rwq and of the server; None if the row is no time."""
        old, new = self.old, self.new
        if old.client_cpu_s is None or new.client_cpu_s is None:
            return None
        return (
            _ratio(new.client_cpu_s, old.client_cpu_s),
            _ratio(new.server_cpu_s or 0, old.server_cpu_s or 0),
        )


def _ratio(new: float, old: float) -> float:
    return new / old if old else (1.0 if not new else float("inf"))
