"""Rates from samples: what came and went, and what cannot be known."""

import pytest
import redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.activity import (
    RateMeter,
    Rates,
)
from rwq_cli.core.items.schedule import promote as promote_items
from tests.conftest import FakeClock, Foreign
from tests.support import numbered


class Sampled:
    """Samples the queue of the tests, two seconds apart."""

    def __init__(self, queue: WorkQueue, clock: FakeClock) -> None:
        self.queue, self.clock, self.meter = queue, clock, RateMeter()

    def look(self) -> Rates:
        """Sample the queue, and say what is known of its rates."""
        rates = self.meter.read([self.queue])[self.queue.name]
        self.clock.now_s += 2
        return rates


@pytest.fixture
def sampled(queue: WorkQueue, clock: FakeClock) -> Sampled:
    return Sampled(queue, clock)


def test_pushes_are_counted_though_as_many_leave(
    sampled: Sampled, foreign: Foreign, raw: redis.Redis
) -> None:
    """Lengths alone would show a queue that stands still."""
    foreign.waiting(*numbered(10))
    assert sampled.look() == Rates()
    foreign.waiting(b"x", b"y", b"z", b"w")
    raw.rpop("jobs:queue", 4)
    assert sampled.look() == Rates(2.0, 2.0, False, None)
    raw.rpop("jobs:queue", 4)
    assert sampled.look()[:2] == (1.0, 2.0)


def test_what_passed_between_two_samples_leaves_a_lower_bound(
    sampled: Sampled, foreign: Foreign, raw: redis.Redis
) -> None:
    """Between two looks at an empty queue, any number may have passed through it."""
    sampled.look()
    assert sampled.look() == Rates(None, None, True, None)
    foreign.waiting(b"a")
    sampled.meter = RateMeter()
    sampled.look()
    raw.delete("jobs:queue")
    foreign.waiting(b"b", b"c")
    foreign.leased(b"d", b"e", b"f")
    assert sampled.look() == Rates(2.0, 0.0, True, None)


def test_a_promotion_or_a_kick_is_nothing_new(
    sampled: Sampled, queue: WorkQueue, foreign: Foreign
) -> None:
    foreign.waiting(b"a")
    foreign.delayed(b"b", 1)
    foreign.buried(b"c")
    sampled.look()
    list(promote_items(queue))
    list(queue.kick_many([b"c"]))
    assert sampled.look() == Rates(0.0, 0.0, False, None)


def test_a_removal_of_the_newest_item_is_no_push(
    sampled: Sampled, queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(*numbered(10, b"%d"))
    sampled.look()
    raw.lrem("jobs:queue", 1, "9")
    assert sampled.look() == Rates(0.0, 0.5, False, 18.0)
    list(queue.bury_many([b"8"], reason=b"x"))
    foreign.waiting(b"x", b"y")
    assert sampled.look()[:3] == (0.5, 0.25, False)
