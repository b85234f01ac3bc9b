"""Judging a queue's numbers by limits, for monitoring."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import count_states
from rwq_cli.core.inspect.listing import Selection
from rwq_cli.core.inspect.selection import choose_ids
from rwq_cli.core.model import Counts, State

Sleep = Callable[[float], None]


class Level(StrEnum):
    """How it stands, by the names that monitoring knows."""

    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"
    UNKNOWN = "UNKNOWN"


# From the best to the worst: what is known to be bad must not hide behind what is not known.
_ORDER = (Level.OK, Level.UNKNOWN, Level.WARNING, Level.CRITICAL)


class Measure(StrEnum):
    """What can be limited."""

    WAITING = "waiting"
    AGE = "age"
    ABANDONED = "abandoned"
    PROCESSING = "processing"
    DELAYED = "delayed"
    BURIED = "buried"
    ORPHANED = "orphaned"


@dataclass(frozen=True, slots=True)
class Limits:
    """Above what a measure is bad.

    Attributes:
        warn: It is a warning above this; None for never. An age in seconds, else a number.
        critical: It is critical above this; None for never.
    """

    warn: float | None = None
    critical: float | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One measure.

    Attributes:
        measure: Which.
        value: An age in seconds, else a number; None where it is not known.
        limits: Its limits.
        level: What they say of it. What is not known is `UNKNOWN` only where it has a limit.
    """

    measure: Measure
    value: int | None
    limits: Limits
    level: Level


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found.

    Attributes:
        counts: The numbers.
        evaluations: Every measure, in the order of `Measure`.
    """

    counts: Counts
    evaluations: tuple[Evaluation, ...]

    @property
    def level(self) -> Level:
        """The worst of all."""
        return worst([each.level for each in self.evaluations])

    def __getitem__(self, measure: Measure) -> Evaluation:
        return next(each for each in self.evaluations if each.measure is measure)


def worst(levels: Sequence[Level]) -> Level:
    """The worst of some levels; what is not known is worse than what is well, and no more."""
    return max(levels, key=_ORDER.index)


def check(
    queue: Queue,
    limits: Mapping[Measure, Limits],
    *,
    deep: bool,
    grace_s: float,
    sleep: Sleep,
) -> Check:
    """Count a queue and evaluate the numbers.

    A worker between its pop and its lease looks abandoned for a moment, and a producer's item
    orphaned between its data and its push. Where that would raise an alarm, they are counted by
    two looks, as for a clean.

    Args:
        queue: The queue.
        limits: The limits of the measures that have any.
        deep: Walk over the whole queue, for orphans.
        grace_s: Seconds between the two looks, where a second one is needed.
        sleep: Waits for so many seconds.
    """
    counts = count_states(queue, sample_sizes=False, deep=deep)
    found = evaluate(counts, limits)
    for measure in (Measure.ABANDONED, Measure.ORPHANED):
        if found[measure].level in (Level.WARNING, Level.CRITICAL):
            sought = Selection(states=frozenset({State(measure.value)}))
            ids = choose_ids(queue, sought, limit=None, grace_s=grace_s, sleep=sleep)
            if measure is Measure.ABANDONED:
                counts = replace(counts, abandoned=len(ids))
            else:
                counts = replace(counts, orphaned=len(ids))
            found = evaluate(counts, limits)
    return found


def evaluate(counts: Counts, limits: Mapping[Measure, Limits]) -> Check:
    """Compare a queue's numbers with limits.

    Args:
        counts: The numbers, as `WorkQueue.counts` gives them.
        limits: The limits of the measures that have any.
    """
    evaluations = []
    for measure in Measure:
        own, value = limits.get(measure, Limits()), _value(counts, measure)
        evaluations.append(Evaluation(measure, value, own, _level(value, own)))
    return Check(counts, tuple(evaluations))


def _value(counts: Counts, measure: Measure) -> int | None:
    if measure is Measure.AGE:
        # Where nothing waits, nothing waits too long.
        return counts.oldest_waiting_s if counts.waiting else 0
    value: int | None = getattr(counts, measure.value)
    return value


def _level(value: int | None, limits: Limits) -> Level:
    if limits.warn is None and limits.critical is None:
        return Level.OK
    if value is None:
        return Level.UNKNOWN
    if limits.critical is not None and value > limits.critical:
        return Level.CRITICAL
    if limits.warn is not None and value > limits.warn:
        return Level.WARNING
    return Level.OK
