"""Cleans and the doctor."""

from collections.abc import Iterator

from benchmarks.filling import QUEUE
from benchmarks.processes import Run
from benchmarks.results import BYTES, MIB, SECONDS, Sample
from benchmarks.turn import RAW_WALK, Case, Turn

_MIB = 1024 * 1024


def _light_clean(turn: Turn) -> Iterator[Sample]:
    waiting, abandoned = turn.size(1_000_000), turn.size(100_000)
    turn.fill(waiting=waiting, abandoned=abandoned)
    walk_s = turn.raw_walk_s()
    run = turn.rwq("clean", "light", "--grace", "0")
    assert turn.server.client.llen(f"{QUEUE}:queue") == waiting + abandoned
    title = f"light clean: {abandoned:,} abandoned, {waiting:,} waiting"
    yield Sample(title, run.seconds, SECONDS, 2.5, RAW_WALK, walk_s, run)


def _deep_clean(turn: Turn) -> Iterator[Sample]:
    yield from _deep_clean_of(turn, turn.size(1_000_000))[1]


def _deep_clean_ten_million(turn: Turn) -> Iterator[Sample]:
    small, _ = _deep_clean_of(turn, turn.size(1_000_000))
    items = turn.size(10_000_000)
    large, samples = _deep_clean_of(turn, items)
    yield from samples
    title = f"deep clean of {items:,}, growth"
    yield Sample(title, large.seconds, SECONDS, 12, "of a tenth", small.seconds, large)
    turn.server.empty()


def _deep_clean_of(turn: Turn, items: int) -> tuple[Run, list[Sample]]:
    """A deep clean of a queue with a tenth orphaned."""
    turn.fill(waiting=items - items // 10, orphaned=items // 10)
    walk_s = turn.raw_walk_s()
    base_mib = turn.rwq("stats", "--fast").peak_mib
    run = turn.rwq("clean", "deep", "--grace", "0")
    assert turn.server.client.llen(f"{QUEUE}:queue") == items
    each = (run.peak_mib - base_mib) * _MIB / items
    title = f"deep clean of {items:,}, {items // 10:,} orphaned"
    return run, [
        Sample(title, run.seconds, SECONDS, 12, RAW_WALK, walk_s, run),
        Sample(f"{title}, memory an item", each, BYTES, 150),
    ]


def _doctor(turn: Turn) -> Iterator[Sample]:
    """The doctor against a deep clean that only looks, on a queue with a tenth orphaned."""
    items = turn.size(1_000_000)
    turn.fill(waiting=items - items // 10, orphaned=items // 10)
    walk_s = turn.raw_walk_s()
    clean = turn.rwq("clean", "deep", "--dry-run", "--grace", "0")
    doctor = turn.rwq("doctor", "--grace", "0", statuses=(0, 1))
    dry_run = f"clean deep --dry-run of {items:,}, {items // 10:,} orphaned"
    title = f"doctor of {items:,}, {items // 10:,} orphaned"
    reference = "clean deep --dry-run"
    yield Sample(dry_run, clean.seconds, SECONDS, 12, RAW_WALK, walk_s, clean)
    yield Sample(title, doctor.seconds, SECONDS, 1.3, reference, clean.seconds, doctor)
    yield Sample(f"{title}, peak memory", doctor.peak_mib, MIB, 1.3, reference, clean.peak_mib)


CASES = [
    Case("light-clean", "a light clean", _light_clean),
    Case("deep-clean", "a deep clean of 1,000,000", _deep_clean),
    Case(
        "deep-clean-many",
        "a deep clean of 10,000,000",
        _deep_clean_ten_million,
        rounds=1,
        own_longest_call=True,
    ),
    Case("doctor", "the doctor", _doctor),
]
