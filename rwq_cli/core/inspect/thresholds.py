"""Comparing a queue's numbers with limits, for monitoring."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import inf
from typing import Any, NamedTuple

from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.health import Refusal
from rwq_cli.core.inspect.ages import LOADING_S
from rwq_cli.core.inspect.counting import counts as count_queue
from rwq_cli.core.inspect.history import stalled_s
from rwq_cli.core.inspect.listing import choose
from rwq_cli.core.inspect.selection import Selection
from rwq_cli.core.model import Counts, State


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
    """What can have a limit: counts, but for `AGE`, `LEASE` and `STALLED`, which are seconds."""

    WAITING = "waiting"
    AGE = "age"
    ABANDONED = "abandoned"
    PROCESSING = "processing"
    DELAYED = "delayed"
    DUE = "due"
    BURIED = "buried"
    HELD = "held"
    LEASE = "lease"
    RETURNED = "returned"
    ORPHANED = "orphaned"
    STALLED = "stalled"

    @property
    def is_time(self) -> bool:
        return self in (Measure.AGE, Measure.LEASE, Measure.STALLED)


class Range(NamedTuple):
    """The values that raise an alarm: those outside of `low` to `high`, or `is_inside` it."""

    low: float = 0
    high: float = inf
    is_inside: bool = False

    def alarms(self, value: float) -> bool:
        return (self.low <= value <= self.high) is self.is_inside


class Limits(NamedTuple):
    """The ranges of a measure; None for none."""

    warn: Range | None = None
    critical: Range | None = None


class Evaluation(NamedTuple):
    """A measure compared with its limits.

    Attributes:
        value: Seconds or a count; None if it is unknown.
        level: `UNKNOWN` if the value is, and has a limit.
    """

    measure: Measure
    value: int | None
    limits: Limits
    level: Level


class Check(NamedTuple):
    """The counts of a queue, and by measure how they compare.

    Attributes:
        server_up_s: Seconds that the server has been up, if the age may be cut short by that: idle
            times begin again when it starts.
        is_missing: Whether no key of the queue exists, and that is to be an alarm.
    """

    counts: Counts
    by_measure: Mapping[Measure, Evaluation]
    server_up_s: int | None = None
    is_missing: bool = False

    @property
    def refusal(self) -> Refusal | None:
        """Why the server refuses writes."""
        return self.counts.server.refusal if self.counts.server else None

    @property
    def level(self) -> Level:
        alarm = Level.CRITICAL if self.refusal or self.is_missing else Level.OK
        return worst([alarm, *(evaluation.level for evaluation in self.by_measure.values())])


def check(
    queue: Queue, limits: Mapping[Measure, Limits], *, deep: bool = False, grace_s: float = GRACE_S
) -> Check:
    """Count a queue and compare the numbers with limits; `deep` counts orphans, too. If abandoned
    or orphaned items would raise an alarm, only those count that two looks see: see `choose`."""
    counts = count_queue(queue, deep=deep)
    has_limit = limits.get(Measure.STALLED, Limits()) != Limits()
    stalled = stalled_s(queue) if has_limit else None
    for state in (State.ABANDONED, State.ORPHANED):
        level = evaluate(counts, limits).by_measure[Measure(state.value)].level
        if level in (Level.WARNING, Level.CRITICAL):
            confirmed = choose(queue, Selection(frozenset({state})), grace_s=grace_s)
            number: Any = {state.value: sum(1 for _ in confirmed.ids)}
            counts = counts._replace(**number)
    return evaluate(counts, limits, stalled)


def evaluate(counts: Counts, limits: Mapping[Measure, Limits], stalled: int | None = None) -> Check:
    """Compare a queue's numbers, as `WorkQueue.counts` gives them, with the limits; `stalled` is
    for how long nothing has moved, seconds, as its history says."""
    evaluations = {}
    for measure in Measure:
        value = stalled if measure is Measure.STALLED else _value(counts, measure)
        bounds = limits.get(measure, Limits())
        # There may be more than were counted.
        is_exact = value is not None and not (measure is Measure.ABANDONED and counts.is_least)
        level = Level.OK if is_exact or bounds == Limits() else Level.UNKNOWN
        for alarm, limit in ((Level.WARNING, bounds.warn), (Level.CRITICAL, bounds.critical)):
            if value is not None and limit is not None and limit.alarms(value):
                level = alarm
        evaluations[measure] = Evaluation(measure, value, bounds, level)
    age_s, up_s = evaluations[Measure.AGE].value, counts.server and counts.server.uptime_s
    is_cut = age_s and up_s is not None and up_s <= age_s + LOADING_S
    return Check(counts, evaluations, up_s if is_cut else None)


def _value(counts: Counts, measure: Measure) -> int | None:
    if measure is Measure.AGE:
        # With no waiting items, the age is 0.
        return counts.oldest_waiting_s if counts.waiting else 0
    if measure is Measure.LEASE:
        return None if counts.leased is None else (counts.lease_latest_ms or 0) // 1000
    value: int | None = getattr(counts, measure.value)
    return value
