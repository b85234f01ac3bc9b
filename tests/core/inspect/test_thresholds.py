"""Judging numbers by limits: what is above one, what is worst, and what is not known."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.thresholds import Level, Limits, Measure, check, evaluate
from rwq_cli.core.model import Counts
from tests.conftest import FakeClock, Foreign

COUNTS = Counts(
    b"jobs", waiting=12, processing=5, delayed=4, buried=3, abandoned=2, oldest_waiting_s=60
)
UNKNOWN_AGE = Counts(b"jobs", 1, 0, 0, 0)
AN_ABANDONED = {Measure.ABANDONED: Limits(warn=0)}


def test_the_level_is_that_of_the_highest_limit_exceeded() -> None:
    for limits, level in (
        (Limits(), Level.OK),
        (Limits(warn=12), Level.OK),
        (Limits(warn=11), Level.WARNING),
        (Limits(critical=12), Level.OK),
        (Limits(critical=11), Level.CRITICAL),
        (Limits(warn=11, critical=12), Level.WARNING),
        (Limits(warn=0, critical=11), Level.CRITICAL),
    ):
        found = evaluate(COUNTS, {Measure.WAITING: limits})
        assert (found[Measure.WAITING].level, found.level) == (level, level)


def test_an_unknown_count_with_a_limit_is_unknown_and_hides_no_alarm() -> None:
    age = {Measure.AGE: Limits(critical=10)}
    assert evaluate(COUNTS, {})[Measure.AGE].value == 60
    assert evaluate(UNKNOWN_AGE, age).level is Level.UNKNOWN
    assert evaluate(UNKNOWN_AGE, {}).level is Level.OK
    both = {**age, Measure.WAITING: Limits(warn=0)}
    assert evaluate(UNKNOWN_AGE, both).level is Level.WARNING


@pytest.mark.parametrize("deep", [False, True])
def test_an_alarm_is_raised_by_what_is_still_abandoned_after_a_second_look(
    queue: WorkQueue, foreign: Foreign, raw: Redis, clock: FakeClock, deep: bool
) -> None:
    foreign.abandoned(b"a", b"twice", b"also in main")
    raw.lpush(b"jobs:processing", b"twice")
    raw.lpush(b"jobs:queue", b"also in main")
    assert check(queue, {Measure.ABANDONED: Limits(warn=3)}, deep=deep).level is Level.OK
    assert clock.slept_s == []
    found = check(queue, AN_ABANDONED, deep=deep, grace_s=2.5)
    assert found.level is Level.WARNING
    assert found[Measure.ABANDONED].value == queue.counts(deep=deep).abandoned == 3 - deep
    assert clock.slept_s == [2.5]
    # Workers that were between their pops and their leases.
    clock.during_sleep = lambda: foreign.lease(b"a", b"twice", b"also in main")
    found = check(queue, AN_ABANDONED, deep=deep)
    assert (found.level, found[Measure.ABANDONED].value) == (Level.OK, 0)
