"""Waiting: what counts as empty, when it gives up, and for several queues at once."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.results import WaitResult, wait_for_all
from rwq_cli.core.model import Counts
from tests.conftest import FakeClock, Foreign

FUTURE_MS = 9_999_999_999_999


def after(clock: FakeClock, steps: dict[float, Callable[[], object]]) -> None:
    """Let others act once so much time has passed."""

    def look() -> None:
        for at in [at for at in steps if clock.now_s >= at]:
            steps.pop(at)()

    clock.during_sleep = look


class TestEmpty:
    def test_an_empty_queue_needs_a_second_look(
        self, queue: WorkQueue, raw: Redis, clock: FakeClock, foreign: Foreign
    ) -> None:
        """A cleaner of another language takes an item off one list, then pushes it onto another."""
        foreign.buried(b"buried")
        foreign.data(b"orphan")
        counts = Counts(b"jobs", 0, 0, 0, 1)
        assert next(wait_for_all([queue], timeout_s=0)) == WaitResult(
            True, counts, None, pytest.approx(0.05), True
        )
        assert clock.slept_s == [0.05]
        clock.during_sleep = lambda: raw.lpush(b"jobs:queue", b"orphan")
        assert next(wait_for_all([queue], timeout_s=0.01)).reached is False

    @pytest.mark.parametrize("place", ["waiting", "leased", "abandoned", "delayed"])
    def test_items_in_these_states_keep_a_queue_filled(
        self, queue: WorkQueue, foreign: Foreign, place: str
    ) -> None:
        getattr(foreign, place)(b"a", *((FUTURE_MS,) if place == "delayed" else ()))
        waited = next(wait_for_all([queue], timeout_s=0))
        assert waited.reached is False
        assert (waited.counts.waiting, waited.counts.processing, waited.counts.delayed) == (
            int(place == "waiting"),
            int(place in ("leased", "abandoned")),
            int(place == "delayed"),
        )

    def test_waiting_ends_when_empty_or_at_the_timeout(
        self, queue: WorkQueue, clock: FakeClock, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")
        waited = next(wait_for_all([queue], timeout_s=2.5))
        counts = Counts(b"jobs", 1, 0, 0, 0)
        assert waited == WaitResult(False, counts, None, pytest.approx(2.5), False)
        assert sum(clock.slept_s) == pytest.approx(2.5)
        after(clock, {5.5: lambda: queue.complete(b"a")})
        waited = next(wait_for_all([queue], timeout_s=10))
        assert (waited.reached, waited.counts.waiting) == (True, 0)
        assert 3.0 <= waited.waited_s <= 4.1


def test_only_waiting_items_are_compared_with_a_number(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.leased(b"d")
    waits = [next(wait_for_all([queue], below=below, timeout_s=0)) for below in (1, 3, 4, 9)]
    assert [wait.reached for wait in waits] == [False, False, True, True]
    assert clock.slept_s == []


def test_items_anywhere_are_waited_for_until_gone(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign
) -> None:
    ids = (b"waiting", b"leased", b"data", b"\xff")
    for item_id in ids[:3]:
        getattr(foreign, item_id.decode())(item_id)
    foreign.buried(b"\xff")
    waited = next(wait_for_all([queue], ids=(*ids, b"gone"), timeout_s=0))
    assert (waited.reached, waited.remaining) == (False, 4)
    after(clock, {5.0: lambda: queue.complete(*ids)})
    waited = next(wait_for_all([queue], ids=ids, timeout_s=60))
    assert (waited.reached, waited.remaining) == (True, 0)
    assert 5.0 <= waited.waited_s <= 6.1


def test_several_queues_meet_it_together_or_give_up(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
) -> None:
    """While the second queue is waited for, the first is filled again."""
    second = WorkQueue(queue.connection, b"second", clock=clock)
    Foreign(raw, b"second").waiting(b"x")
    after(
        clock,
        {
            2.0: lambda: (foreign.waiting(b"again"), raw.delete("second:queue")),
            6.0: lambda: raw.delete("jobs:queue"),
        },
    )
    results = list(wait_for_all([queue, second], below=1, timeout_s=60))
    assert [(result.reached, result.counts.waiting) for result in results] == [(True, 0)] * 2
    assert all(6 <= result.waited_s < 8 for result in results)
    foreign.waiting(b"a")
    Foreign(raw, b"second").waiting(b"b")
    results = list(wait_for_all([queue, second], timeout_s=10))
    assert [result.reached for result in results] == [False, False]
    assert all(10 <= result.waited_s < 12 for result in results)
