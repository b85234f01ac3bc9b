"""An ID that is completed, added anew and popped between the two looks names another item."""

from collections.abc import Callable
from itertools import product

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.keys import QueueKeys
from tests.broken_queues import pad
from tests.conftest import FakeClock, Foreign, Interleaved
from tests.digest import digest
from tests.support import numbered

all_cleaners = pytest.mark.parametrize("how", ["light", "deep", "doctor"])


def repair(queue: WorkQueue, how: str, *, dry_run: bool = False) -> int:
    """How many items a clean repairs, or the doctor fixes."""
    if how == "doctor":
        found = queue.diagnose(fix=True, dry_run=dry_run).findings
        return sum(finding.fixed for finding in found)
    clean = queue.light_clean if how == "light" else queue.deep_clean
    return len(list(clean(dry_run=dry_run)))


def assert_left_alone(
    queue: WorkQueue,
    clock: FakeClock,
    raw: Redis,
    how: str,
    meanwhile: Callable[[], object],
    *,
    dry_run: bool = False,
) -> None:
    """Nothing is done after what happened between the looks, and all by the next run."""
    after = []

    def sleep() -> None:
        meanwhile()
        after.append(digest(raw))

    clock.during_sleep = sleep
    assert repair(queue, how, dry_run=dry_run) == 0
    assert digest(raw) == after[-1]
    clock.during_sleep = None
    assert repair(queue, how) > 0


@all_cleaners
def test_an_abandoned_id_with_other_data_stays(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, keys: QueueKeys, how: str
) -> None:
    for (others, broken), dry_run in product(((0, 1), (0, 100), (1400, 100)), (False, True)):
        raw.flushall()
        ids = numbered(broken)
        foreign.abandoned(*ids)
        pad(raw, keys, others)
        # The entries stay where they are, as if they were alone in the list.
        new = {b"jobs:item:" + item_id: b"new data" for item_id in ids}
        replace = lambda new=new: raw.mset(new)  # noqa: E731
        assert_left_alone(queue, clock, raw, how, replace, dry_run=dry_run)


@all_cleaners
def test_an_item_that_is_still_the_same_is_repaired(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, keys: QueueKeys, how: str
) -> None:
    for data, others in ((b"", 0), (b"x" * 256, 1400), (b"head" + bytes(4000) + b"tail", 1400)):
        raw.flushall()
        foreign.leased(b"completed")
        foreign.abandoned(b"1", b"2")
        raw.set("jobs:item:1", data)
        pad(raw, keys, others)

        def work() -> None:
            # An entry to its right leaves, and others come at the left end.
            raw.lrem("jobs:processing", 0, b"completed")
            raw.delete("jobs:item:completed", "jobs:lease:completed")
            foreign.leased(b"later")

        clock.during_sleep = work
        assert repair(queue, how) == 2
        assert queue.state(b"1") == "waiting"
        assert raw.get("jobs:item:1") == data


def test_given_up_an_id_that_was_completed_and_added_with_the_same_data_is_returned(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
) -> None:
    """And popped, all in the grace period, as `docs/upstream.md` says: one complete wins."""
    foreign.abandoned(b"1")

    def come_again() -> None:
        queue.complete(b"1")
        foreign.waiting(b"1")
        raw.rpoplpush("jobs:queue", "jobs:processing")

    clock.during_sleep = come_again
    assert repair(queue, "light") == 1
    foreign.lease(b"1")
    assert (raw.lrange("jobs:queue", 0, -1), raw.lrange("jobs:processing", 0, -1)) == ([b"1"], [])
    assert [str(outcome.status) for outcome in queue.complete(b"1")] == ["completed"]


# The clean pushes up to 250 itself before it comes to that orphan.
@pytest.mark.parametrize(("others", "times"), [(200, 1), (600, 2)])
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
    foreign.data(*numbered(300))
    queue = WorkQueue(interleaved, b"jobs", clock=clock)

    def push(name: str) -> None:
        if name == "repair" and not raw.exists("jobs:queue"):
            raw.lpush("jobs:queue", b"0000")
            foreign.waiting(*numbered(others, b"other-%d"))

    interleaved.before = push
    queue.deep_clean()
    assert raw.lrange("jobs:queue", 0, -1).count(b"0000") == times
    assert [str(queue.complete(b"0000")[0].status) for _ in range(2)] == ["completed", "missing"]
    queue.deep_clean()
    assert raw.llen("jobs:queue") == others + 299
