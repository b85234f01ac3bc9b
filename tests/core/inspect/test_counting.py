"""Counts by state, None for what cannot be read; and limits, by which they are judged."""

import pytest
from redis import Redis

from rwq_cli.core import Counts, WorkQueue
from rwq_cli.core.inspect.counting import counts as count_queue
from rwq_cli.core.inspect.thresholds import Level, Limits, Measure, Range, check, evaluate
from tests.conftest import FakeClock, Foreign


def test_the_counts_of_an_empty_queue_are_zero(queue: WorkQueue) -> None:
    assert queue.lengths() == Counts(b"jobs", 0, 0, 0, 0)
    shallow = Counts(b"jobs", 0, 0, 0, 0, leased=0, held=0, abandoned=0, due=0)
    assert queue.counts()._replace(server=None) == shallow
    deep = ("orphaned", "unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types")
    zeros = dict.fromkeys((*deep, "returns", "results"), 0)
    assert queue.counts(deep=True)._replace(server=None) == shallow._replace(**zeros)


def test_the_leases_that_end_first_and_last(queue: WorkQueue, foreign: Foreign) -> None:
    """Each state: `test_agreement.py`."""
    foreign.leased(b"first", ttl_ms=10_000)
    foreign.lease(b"first", ttl_ms=9000, generations="old")
    foreign.leased(b"last", ttl_ms=500_000, generations="new")
    foreign.leased(b"held", ttl_ms=None)
    foreign.abandoned(b"abandoned")
    foreign.delayed(b"due", 1)
    foreign.raw.hset(foreign.keys.returns, mapping={b"first": 1, b"gone": 2})
    counts = queue.counts()
    assert (counts.leased, counts.held, counts.abandoned, counts.due) == (2, 1, 1, 1)
    # Only a deep count looks whether what was counted is there.
    assert (counts.returned, queue.counts(deep=True).returned) == (2, 1)
    assert counts.lease_soonest_ms is not None
    assert counts.lease_latest_ms is not None
    assert 9000 < counts.lease_soonest_ms <= 10_000
    assert 400_000 < counts.lease_latest_ms <= 500_000


def test_returns_are_summed_and_invalid_counts_ignored(queue: WorkQueue, raw: Redis) -> None:
    raw.hset(b"jobs:returns", mapping={b"%d" % number: number for number in range(3000)})
    raw.hset(b"jobs:returns", mapping={b"text": b"x", b"minus": b"-4", b"\xff": b""})
    raw.mset({b"jobs:item:%d" % number: b"" for number in range(3000)})
    raw.mset({b"jobs:item:" + item_id: b"" for item_id in (b"text", b"minus", b"\xff")})
    counts = queue.counts(deep=True)
    assert (counts.returned, counts.returns) == (3003, sum(range(3000)))


def test_processing_is_told_apart_as_time_allows(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.abandoned(*(b"%d" % number for number in range(1500)))
    counts = count_queue(queue, within_s=-1)
    assert (counts.processing, counts.leased, counts.is_least) == (1500, None, True)
    assert 0 < (counts.abandoned or 0) < 1500
    limits = {Measure.ABANDONED: Limits(warn=Range(high=10_000))}
    assert evaluate(counts, limits).level is Level.UNKNOWN
    counts = count_queue(queue, within_s=60)
    assert (counts.abandoned, counts.leased, counts.is_least) == (1500, 0, False)


@pytest.mark.needs("no-touch")
def test_sizes_are_sampled_at_both_ends_of_main(raw: Redis, queue: WorkQueue) -> None:
    """50 of each end of main; with fewer than 100 each counts once."""
    ids = [b"%d" % number for number in range(300)]
    raw.mset({b"jobs:item:" + item_id: b"x" * int(item_id) for item_id in ids})
    raw.lpush(b"jobs:queue", *ids)
    counts = queue.counts()
    assert (
        counts.payload_sampled,
        counts.payload_min_bytes,
        counts.payload_median_bytes,
        counts.payload_max_bytes,
    ) == (100, 0, 49, 299)
    raw.ltrim(b"jobs:queue", 0, 59)
    counts = queue.counts()
    assert (counts.payload_sampled, counts.payload_min_bytes) == (60, 240)


COUNTS = Counts(
    b"jobs", waiting=12, processing=5, delayed=4, buried=3, abandoned=2, oldest_waiting_s=60
)
UNKNOWN_AGE = Counts(b"jobs", 1, 0, 0, 0)
AN_ABANDONED = {Measure.ABANDONED: Limits(warn=Range(high=0))}


def test_an_unknown_count_hides_no_alarm() -> None:
    age = {Measure.AGE: Limits(critical=Range(high=10))}
    assert evaluate(COUNTS, {}).by_measure[Measure.AGE].value == 60
    assert evaluate(UNKNOWN_AGE, age).level is Level.UNKNOWN
    assert evaluate(UNKNOWN_AGE, {}).level is Level.OK
    both = {**age, Measure.WAITING: Limits(warn=Range(high=0))}
    assert evaluate(UNKNOWN_AGE, both).level is Level.WARNING


@pytest.mark.parametrize("deep", [False, True])
def test_an_alarm_needs_a_second_look(
    queue: WorkQueue, foreign: Foreign, raw: Redis, clock: FakeClock, deep: bool
) -> None:
    foreign.abandoned(b"a", b"twice", b"also in main")
    raw.lpush(b"jobs:processing", b"twice")
    raw.lpush(b"jobs:queue", b"also in main")
    assert (
        check(queue, {Measure.ABANDONED: Limits(warn=Range(high=3))}, deep=deep).level is Level.OK
    )
    assert clock.slept_s == []
    found = check(queue, AN_ABANDONED, deep=deep, grace_s=2.5)
    assert found.level is Level.WARNING
    abandoned = found.by_measure[Measure.ABANDONED].value
    assert abandoned == queue.counts(deep=True).abandoned == 2
    assert clock.slept_s == [2.5]
    # Workers that were between their pops and their leases.
    clock.during_sleep = lambda: foreign.lease(b"a", b"twice", b"also in main")
    found = check(queue, AN_ABANDONED, deep=deep)
    assert (found.level, found.by_measure[Measure.ABANDONED].value) == (Level.OK, 0)
