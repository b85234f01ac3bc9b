"""An ID that is completed, added anew and popped between the two looks names another item."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from tests.conftest import FakeClock, Foreign
from tests.digest import digest

LARGE = b"head" + bytes(2000) + b"%d" + bytes(2000) + b"tail"


def repair(queue: WorkQueue, how: str, *, dry_run: bool) -> int:
    """How many items a clean repairs, or the doctor fixes."""
    if how == "doctor":
        found = queue.diagnose(fix=True, dry_run=dry_run).findings
        return sum(finding.fixed for finding in found)
    clean = queue.light_clean if how == "light" else queue.deep_clean
    return len(list(clean(dry_run=dry_run)))


def add_others(foreign: Foreign, count: int) -> None:
    """Healthy items in both lists."""
    with foreign.raw.pipeline(transaction=False) as writes:
        others = Foreign(writes)
        others.leased(*(b"leased-%d" % number for number in range(count)))
        others.waiting(*(b"waiting-%d" % number for number in range(count)))
        writes.execute()


def left_alone(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    how: str,
    meanwhile: Callable[[], object],
    *,
    dry_run: bool,
) -> bool:
    """Whether nothing was done after what happened between the looks, and all by the next run."""
    after = []

    def sleep() -> None:
        meanwhile()
        after.append(digest(raw))

    clock.during_sleep = sleep
    done = repair(queue, how, dry_run=dry_run)
    unchanged = done == 0 and digest(raw) == after[-1]
    clock.during_sleep = None
    return unchanged and repair(queue, how, dry_run=False) > 0


others_and_dry_run = pytest.mark.parametrize(
    ("others", "dry_run"), [(0, False), (0, True), (700, False)]
)
few_and_many = pytest.mark.parametrize("others", [0, 700])
all_cleaners = pytest.mark.parametrize("how", ["light", "deep", "doctor"])


@all_cleaners
@others_and_dry_run
@pytest.mark.parametrize("broken", [1, 100])
def test_an_abandoned_id_with_other_data_stays(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    how: str,
    others: int,
    dry_run: bool,
    broken: int,
) -> None:
    ids = [b"%d" % number for number in range(broken)]
    foreign.abandoned(*ids)
    add_others(foreign, others)

    def replace() -> None:
        # The entries stay where they are, as if they were alone in the list.
        raw.mset({b"jobs:item:" + item_id: b"new data" for item_id in ids})

    assert left_alone(queue, clock, raw, how, replace, dry_run=dry_run)


@all_cleaners
@others_and_dry_run
@pytest.mark.parametrize("broken", [1, 100])
def test_an_abandoned_id_that_was_popped_again_with_the_same_data_stays(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    how: str,
    others: int,
    dry_run: bool,
    broken: int,
) -> None:
    ids = [b"%d" % number for number in range(broken)]
    foreign.abandoned(*ids)
    # As many at least, so that each entry has more to its right than before.
    add_others(foreign, max(others, broken))

    def pop_again() -> None:
        raw.delete(*(b"jobs:item:" + item_id for item_id in ids))
        with raw.pipeline(transaction=False) as removals:
            for item_id in ids:
                removals.lrem("jobs:processing", 0, item_id)
            removals.execute()
        foreign.abandoned(*ids)

    assert left_alone(queue, clock, raw, how, pop_again, dry_run=dry_run)


@pytest.mark.parametrize("how", ["deep", "doctor"])
@others_and_dry_run
@pytest.mark.parametrize("broken", [1, 100])
@pytest.mark.parametrize("entries", [0, 2])
def test_an_orphaned_or_duplicated_id_with_other_data_stays(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    how: str,
    others: int,
    dry_run: bool,
    broken: int,
    entries: int,
) -> None:
    ids = [b"%d" % number for number in range(broken)]
    foreign.data(*ids)
    for _ in range(entries):
        raw.lpush("jobs:queue", *ids)
    add_others(foreign, others)

    def replace() -> None:
        raw.mset({b"jobs:item:" + item_id: b"new data" for item_id in ids})

    assert left_alone(queue, clock, raw, how, replace, dry_run=dry_run)


@all_cleaners
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"x"),
        (b"x", b""),
        (b"x" * 256, b"x" * 257),
        (b"x" * 255 + b"y", b"x" * 256),
        (bytes(5000), bytes(5001)),
        (bytes(5000), bytes(4999) + b"x"),
        (bytes(5000), b"x" + bytes(4999)),
    ],
)
def test_data_differ_by_their_length_or_at_an_end(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    how: str,
    before: bytes,
    after: bytes,
) -> None:
    foreign.abandoned(b"1")
    raw.set("jobs:item:1", before)
    assert left_alone(queue, clock, raw, how, lambda: raw.set("jobs:item:1", after), dry_run=False)


@all_cleaners
@few_and_many
@pytest.mark.parametrize("data", [b"", b"x", b"x" * 256, LARGE % 1])
def test_an_item_that_is_still_the_same_is_repaired(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    how: str,
    others: int,
    data: bytes,
) -> None:
    foreign.leased(b"completed")
    foreign.abandoned(b"1", b"2")
    raw.set("jobs:item:1", data)
    add_others(foreign, others)

    def work() -> None:
        # An entry to its right leaves, and others come at the left end.
        raw.lrem("jobs:processing", 0, b"completed")
        raw.delete("jobs:item:completed", "jobs:lease:completed")
        foreign.leased(b"later")

    clock.during_sleep = work
    assert repair(queue, how, dry_run=False) == 2
    assert queue.state(b"1") == "waiting"
    assert raw.get("jobs:item:1") == data


@all_cleaners
def test_the_older_of_two_entries_in_processing_counts(
    queue: WorkQueue, raw: Redis, foreign: Foreign, how: str
) -> None:
    foreign.abandoned(b"1", b"2", b"1")
    assert repair(queue, how, dry_run=False) == 2
    assert raw.lrange("jobs:processing", 0, -1) == []
    assert sorted(raw.lrange("jobs:queue", 0, -1)) == [b"1", b"2"]


def test_a_rotated_list_is_cleaned_by_the_next_run(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
) -> None:
    foreign.abandoned(b"1")
    foreign.leased(*(b"leased-%d" % number for number in range(100)))
    assert left_alone(
        *(queue, clock, raw, "light"),
        lambda: raw.lmove("jobs:processing", "jobs:processing", "RIGHT", "LEFT"),
        dry_run=False,
    )


@pytest.mark.parametrize("how", ["light", "deep"])
def test_promoting_items_in_processing_hides_no_abandoned_one(
    queue: WorkQueue, raw: Redis, foreign: Foreign, how: str
) -> None:
    """Promotion rotates processing until it has found the due items in it."""
    due = [b"due-%d" % number for number in range(40)]
    for item_id in due:
        foreign.delayed(item_id, 1)
    foreign.abandoned(*(b"dead-%d" % number for number in range(40)))
    foreign.abandoned(*due)
    with raw.pipeline(transaction=False) as writes:
        Foreign(writes).leased(*(b"leased-%d" % number for number in range(3000)))
        writes.execute()

    assert repair(queue, how, dry_run=True) == 80
    assert repair(queue, how, dry_run=False) == 80
    assert raw.llen("jobs:queue") == 80
