"""The rates of queues that are read again and again."""

import redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.rates import RateMeter
from tests.conftest import FakeClock, Foreign


def test_the_rates_of_each_queue_are_measured(
    queue: WorkQueue, foreign: Foreign, clock: FakeClock
) -> None:
    other = WorkQueue(queue.connection, "other", clock=clock)
    foreign.waiting(b"1", b"2", b"3")
    Foreign(foreign.raw, b"other").waiting(b"1")
    meter = RateMeter()
    first = meter.read([queue, other])
    assert {name: rates.in_per_s for name, rates in first.items()} == {
        b"jobs": None,
        b"other": None,
    }
    foreign.waiting(b"4", b"5", b"6", b"7")
    foreign.raw.rpop("jobs:queue")
    clock.now_s += 2
    second = meter.read([queue, other])
    assert (second[b"jobs"].in_per_s, second[b"jobs"].left_per_s) == (2.0, 0.5)
    assert (second[b"other"].in_per_s, second[b"other"].left_per_s) == (0.0, 0.0)


def test_a_queue_with_a_key_of_the_wrong_type_has_none(queue: WorkQueue, raw: redis.Redis) -> None:
    raw.set("jobs:queue", "x")
    assert RateMeter().read([queue]) == {}
