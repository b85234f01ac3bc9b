"""Waiting: what counts as empty, when it gives up, and how rarely it asks."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.waiting import WaitCondition, WaitResult, wait_for_all
from rwq_cli.core.model import Counts
from tests.conftest import FakeClock, Foreign

FUTURE_MS = 9_999_999_999_999


def after(clock: FakeClock, seconds: float, act: Callable[[], object]) -> None:
    """Let others act once so much time has passed."""
    done: list[object] = []

    def look() -> None:
        if clock.now_s >= seconds and not done:
            done.append(act())

    clock.during_sleep = look


class TestEmpty:
    def test_an_empty_queue_is_reported_after_a_second_look(
        self, queue: WorkQueue, clock: FakeClock
    ) -> None:
        counts = Counts(b"jobs", 0, 0, 0, 0)
        assert queue.wait(timeout_s=0) == WaitResult(True, counts, None, pytest.approx(0.05), True)
        # A second look, in case an item was between two lists.
        assert clock.slept_s == [0.05]

    def test_buried_and_orphaned_items_do_not_count(
        self, queue: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.buried(b"buried")
        foreign.data(b"orphan")
        assert queue.wait(timeout_s=0).reached is True

    @pytest.mark.parametrize("place", ["waiting", "leased", "abandoned", "delayed"])
    def test_items_in_these_states_keep_a_queue_from_being_empty(
        self, queue: WorkQueue, foreign: Foreign, place: str
    ) -> None:
        more = (FUTURE_MS,) if place == "delayed" else ()
        getattr(foreign, place)(b"a", *more)
        waited = queue.wait(timeout_s=0)
        counts = waited.counts
        assert waited.reached is False
        assert (counts.waiting, counts.processing, counts.delayed) == (
            int(place == "waiting"),
            int(place in ("leased", "abandoned")),
            int(place == "delayed"),
        )

    def test_waiting_ends_when_the_queue_is_empty(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")
        after(clock, 3.0, lambda: queue.complete_many([b"a"]).__next__())
        waited = queue.wait(timeout_s=10)
        assert (waited.reached, waited.counts.waiting) == (True, 0)
        assert 3.0 <= waited.waited_s <= 4.1

    def test_waiting_for_empty_ends_at_the_timeout(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b")
        waited = queue.wait(timeout_s=2.5)
        assert waited == WaitResult(
            False, Counts(b"jobs", 2, 0, 0, 0), None, pytest.approx(2.5), False
        )
        assert sum(clock.slept_s) == pytest.approx(2.5)

    def test_an_item_between_two_lists(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        """A cleaner of another language takes it off the one and then pushes it onto the other."""
        foreign.data(b"a")
        clock.during_sleep = lambda: raw.llen(b"jobs:queue") or raw.lpush(b"jobs:queue", b"a")
        assert queue.wait(timeout_s=0.01).reached is False


class TestBelow:
    @pytest.mark.parametrize(("below", "reached"), [(1, False), (3, False), (4, True), (9, True)])
    def test_only_waiting_items_are_compared_with_the_number(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign, below: int, reached: bool
    ) -> None:
        foreign.waiting(b"a", b"b", b"c")
        foreign.leased(b"d")
        assert queue.wait(WaitCondition(below=below), timeout_s=0).reached is reached
        assert clock.slept_s == []


class TestIds:
    @pytest.mark.parametrize("place", ["waiting", "leased", "data", "buried"])
    def test_an_item_in_any_place_is_not_gone(
        self, queue: WorkQueue, foreign: Foreign, place: str
    ) -> None:
        getattr(foreign, place)(b"\xff")
        waited = queue.wait(WaitCondition(ids=(b"a", b"\xff", b"b")), timeout_s=0)
        assert (waited.reached, waited.remaining) == (False, 1)

    def test_waiting_ends_when_all_items_are_gone(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b")
        after(clock, 5.0, lambda: list(queue.complete_many([b"a", b"b"])))
        waited = queue.wait(WaitCondition(ids=(b"a", b"b")), timeout_s=60)
        assert (waited.reached, waited.remaining) == (True, 0)
        assert 5.0 <= waited.waited_s <= 6.1


class TestSeveral:
    def test_all_meet_the_condition_at_the_same_time(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        """While the second queue is waited for, the first is filled again."""
        second = WorkQueue(queue.connection, b"second", clock=clock)
        others = Foreign(raw, b"second")
        others.waiting(b"x")
        steps = {
            2.0: lambda: (foreign.waiting(b"again"), raw.delete("second:queue")),
            6.0: lambda: raw.delete("jobs:queue"),
        }

        def look() -> None:
            for at in [at for at in steps if clock.now_s >= at]:
                steps.pop(at)()

        clock.during_sleep = look
        below = WaitCondition(below=1)
        results = list(wait_for_all([queue, second], below, timeout_s=60))
        assert [result.reached for result in results] == [True, True]
        assert [result.counts.waiting for result in results] == [0, 0]
        assert all(6 <= result.waited_s < 8 for result in results)

    def test_it_gives_up_on_all_together(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        second = WorkQueue(queue.connection, b"second", clock=clock)
        foreign.waiting(b"a")
        Foreign(raw, b"second").waiting(b"b")
        results = list(wait_for_all([queue, second], timeout_s=10))
        assert [result.reached for result in results] == [False, False]
        assert all(10 <= result.waited_s < 12 for result in results)
