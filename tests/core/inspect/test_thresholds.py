"""Judging numbers by limits: what is above one, what is worst, and what is not known."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.thresholds import (
    Check,
    Level,
    Limits,
    Measure,
    check as check_queue,
    evaluate,
)
from rwq_cli.core.model import Counts
from tests.conftest import FakeClock, Foreign, contents

COUNTS = Counts(
    b"jobs", waiting=12, processing=5, delayed=4, buried=3, abandoned=2, oldest_waiting_s=60
)


@pytest.mark.parametrize(
    ("limits", "level"),
    [
        (Limits(), Level.OK),
        (Limits(warn=12), Level.OK),
        (Limits(warn=11), Level.WARNING),
        (Limits(critical=12), Level.OK),
        (Limits(critical=11), Level.CRITICAL),
        (Limits(warn=11, critical=12), Level.WARNING),
        (Limits(warn=0, critical=11), Level.CRITICAL),
        (Limits(warn=0), Level.WARNING),
    ],
)
def test_the_level_is_that_of_the_highest_limit_exceeded(limits: Limits, level: Level) -> None:
    found = evaluate(COUNTS, {Measure.WAITING: limits})
    assert (found[Measure.WAITING].level, found.level) == (level, level)
    assert found[Measure.WAITING].limits == limits


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (Measure.WAITING, 12),
        (Measure.AGE, 60),
        (Measure.ABANDONED, 2),
        (Measure.PROCESSING, 5),
        (Measure.DELAYED, 4),
        (Measure.BURIED, 3),
        (Measure.ORPHANED, None),
    ],
)
def test_each_measure_reads_its_count(measure: Measure, value: int | None) -> None:
    assert evaluate(COUNTS, {})[measure].value == value
    assert [each.measure for each in evaluate(COUNTS, {}).evaluations] == list(Measure)


class TestAge:
    def unknown(self, waiting: int) -> Counts:
        return Counts(b"jobs", waiting, 0, 0, 0)

    def test_an_unknown_count_with_a_limit_is_unknown(self) -> None:
        limits = {Measure.AGE: Limits(critical=10)}
        assert evaluate(self.unknown(1), limits).level is Level.UNKNOWN
        assert evaluate(self.unknown(1), {}).level is Level.OK

    def test_an_unknown_count_does_not_hide_an_alarm(self) -> None:
        limits = {Measure.AGE: Limits(warn=1), Measure.WAITING: Limits(warn=0)}
        assert evaluate(self.unknown(1), limits).level is Level.WARNING


class TestCheck:
    def check(self, queue: WorkQueue, measure: Measure, *, deep: bool = False) -> Check:
        return check_queue(queue, {measure: Limits(warn=0)}, deep=deep, grace_s=2.5)

    def test_every_measure_of_a_queue_is_counted(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w")
        foreign.abandoned(b"a1", b"a2")
        foreign.leased(b"l")
        foreign.buried(b"b")
        foreign.data(b"o")
        before = contents(raw)
        found = check_queue(queue, {}, deep=True)
        values = {each.measure: each.value for each in found.evaluations if each.value}
        # The server counts idle time in seconds of its own clock, which may tick meanwhile.
        assert values.pop(Measure.AGE, 0) in (0, 1)
        assert values == {
            Measure.WAITING: 1,
            Measure.ABANDONED: 2,
            Measure.PROCESSING: 3,
            Measure.BURIED: 1,
            Measure.ORPHANED: 1,
        }
        assert check_queue(queue, {})[Measure.ORPHANED].value is None
        assert contents(raw) == before

    def test_items_still_abandoned_after_a_second_raise_the_level(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"a")
        assert self.check(queue, Measure.ABANDONED).level is Level.WARNING
        assert clock.slept_s == [2.5]

    @pytest.mark.parametrize("deep", [False, True])
    def test_an_alarm_counts_what_the_counts_do(
        self, queue: WorkQueue, foreign: Foreign, raw: Redis, deep: bool
    ) -> None:
        foreign.abandoned(b"a", b"twice", b"also in main")
        raw.lpush(b"jobs:processing", b"twice")
        raw.lpush(b"jobs:queue", b"also in main")
        found = self.check(queue, Measure.ABANDONED, deep=deep)
        assert found[Measure.ABANDONED].value == queue.counts(deep=deep).abandoned == 3 - deep

    def test_a_worker_between_its_pop_and_its_lease(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"a")
        clock.during_sleep = lambda: foreign.lease(b"a")
        found = self.check(queue, Measure.ABANDONED)
        assert (found.level, found[Measure.ABANDONED].value) == (Level.OK, 0)

    def test_without_an_alarm_there_is_no_second_count(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"a")
        assert check_queue(queue, {Measure.ABANDONED: Limits(warn=1)}).level is Level.OK
        assert clock.slept_s == []
