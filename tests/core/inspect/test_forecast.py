"""When a waiting item's turn comes, by two looks at its place."""

from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.lookup import Forecast, forecast, inspect_items
from tests.conftest import FakeClock, Foreign


def test_the_rate_is_how_many_items_left_meanwhile(
    queue: WorkQueue, raw: Redis, clock: FakeClock, foreign: Foreign
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(10)))
    reports = inspect_items(queue, [b"9", b"3", b"2"])
    assert forecast(queue, reports, sample_s=2.0) == [Forecast(0.0, None)] * 3
    clock.during_sleep = lambda: raw.rpop("jobs:queue", 3)
    found = forecast(queue, reports, sample_s=2.0)
    # One was leased meanwhile.
    assert found == [Forecast(1.5, 4.0), Forecast(1.5, 0.0), None]
    assert clock.slept_s == [2.0, 2.0]
