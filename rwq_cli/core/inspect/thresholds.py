"""Comparing a queue's numbers with limits, for monitoring."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import counts as count_queue
from rwq_cli.core.inspect.listing import choose
from rwq_cli.core.inspect.selection import Selection
from rwq_cli.core.model import Counts, State

# Idle times begin a little after the server does, and are whole seconds.
_LOADING_S = 2


class Level(StrEnum):
    """The levels of monitoring systems, from the best to the worst: a known problem must not hide
    behind an unknown number."""

    OK = "OK"
    UNKNOWN = "UNKNOWN"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


def worst(levels: Iterable[Level]) -> Level:
    return max(levels, key=list(Level).index)


class Measure(StrEnum):
    WAITING = "waiting"
    AGE = "age"
    ABANDONED = "abandoned"
    PROCESSING = "processing"
    DELAYED = "delayed"
    BURIED = "buried"
    ORPHANED = "orphaned"


class Limits(NamedTuple):
    """The limits of a measure, seconds for an age, else a count; None for none."""

    warn: float | None = None
    critical: float | None = None


class Evaluation(NamedTuple):
    measure: Measure
    # An age in seconds, or a count; None if it is unknown.
    value: int | None
    limits: Limits
    # An unknown value is `UNKNOWN` only if it has a limit.
    level: Level


class Check(NamedTuple):
    """The counts of a queue, and by measure how they compare."""

    counts: Counts
    by_measure: Mapping[Measure, Evaluation]
    # How long the server has been up, seconds, if the age may be cut short by that: idle times
    # begin again when it starts.
    server_up_s: int | None = None

    @property
    def level(self) -> Level:
        return worst(each.level for each in self.by_measure.values())


def check(
    queue: Queue, limits: Mapping[Measure, Limits], *, deep: bool = False, grace_s: float = GRACE_S
) -> Check:
    """Count a queue and compare the numbers with limits; `deep` counts orphans, too. If abandoned
    or orphaned items would raise an alarm, only those count that two looks see: see `choose`."""
    counts = count_queue(queue, deep=deep)
    for state in (State.ABANDONED, State.ORPHANED):
        found = evaluate(counts, limits).by_measure[Measure(state.value)]
        if found.level in (Level.WARNING, Level.CRITICAL):
            twice = choose(queue, Selection(frozenset({state})), grace_s=grace_s)
            number: Any = {state.value: sum(1 for _ in twice.ids)}
            counts = counts._replace(**number)
    return evaluate(counts, limits)


def evaluate(counts: Counts, limits: Mapping[Measure, Limits]) -> Check:
    """Compare a queue's numbers, as `WorkQueue.counts` gives them, with the limits."""
    # With no waiting items, the age is 0.
    age_s, up_s = counts.oldest_waiting_s if counts.waiting else 0, counts.server_up_s
    evaluations = {}
    for measure in Measure:
        own = limits.get(measure, Limits())
        value = age_s if measure is Measure.AGE else getattr(counts, measure.value)
        # There may be more than were counted.
        is_known = value is not None and not (measure is Measure.ABANDONED and counts.is_least)
        level = Level.OK if is_known or own == Limits() else Level.UNKNOWN
        for limit, above in ((own.warn, Level.WARNING), (own.critical, Level.CRITICAL)):
            if value is not None and limit is not None and value > limit:
                level = above
        evaluations[measure] = Evaluation(measure, value, own, level)
    is_cut = age_s and up_s is not None and up_s <= age_s + _LOADING_S
    return Check(counts, evaluations, up_s if is_cut else None)
