"""An ID that is completed, added anew and popped between the two looks names another item."""

import time
from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from tests.conftest import FakeClock, Foreign, Interleaved
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
@pytest.mark.parametrize("pushed", ["released", "kicked"])
def test_an_abandoned_id_that_rwq_has_pushed_since_stays(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, how: str, pushed: str
) -> None:
    """A worker has popped it, and is about to set its lease."""
    foreign.abandoned(b"1")

    def push_and_pop() -> None:
        time.sleep(0.002)
        if pushed == "kicked":
            queue.bury(b"1", force=True)
            queue.kick(b"1")
        else:
            queue.release(b"1", force=True)
        raw.rpoplpush("jobs:queue", "jobs:processing")

    assert left_alone(queue, clock, raw, how, push_and_pop, dry_run=False)


@all_cleaners
def test_given_up_an_id_that_was_completed_and_added_with_the_same_data_is_returned(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, how: str
) -> None:
    """And popped, all in the grace period, as `docs/upstream.md` says: one complete wins."""
    foreign.abandoned(b"1")

    def come_again() -> None:
        queue.complete(b"1")
        foreign.waiting(b"1")
        raw.rpoplpush("jobs:queue", "jobs:processing")

    clock.during_sleep = come_again
    assert repair(queue, how, dry_run=False) == 1
    foreign.lease(b"1")
    assert (raw.lrange("jobs:queue", 0, -1), raw.lrange("jobs:processing", 0, -1)) == ([b"1"], [])
    assert [str(outcome.status) for outcome in queue.complete(b"1")] == ["completed"]


@pytest.mark.parametrize(("others", "times"), [(400, 1), (600, 2)])
def test_given_up_an_orphan_that_another_deep_clean_has_pushed_waits_twice(
    interleaved: Interleaved,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    others: int,
    times: int,
) -> None:
    """If more than 500 pushes hide that, and so many are sought that the lists were read; one
    complete wins, as `docs/upstream.md` says."""
    ids = [b"%d" % number for number in range(300)]
    foreign.data(*ids)
    queue = WorkQueue(interleaved, b"jobs", clock=clock)

    def push(name: str) -> None:
        if name == "repair" and not raw.exists("jobs:queue"):
            raw.lpush("jobs:queue", b"0")
            foreign.waiting(*(b"other-%d" % number for number in range(others)))

    interleaved.before = push
    queue.deep_clean()
    assert raw.lrange("jobs:queue", 0, -1).count(b"0") == times
    assert [str(queue.complete(b"0")[0].status) for _ in range(2)] == ["completed", "missing"]
    queue.deep_clean()
    assert raw.llen("jobs:queue") == others + 299


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
