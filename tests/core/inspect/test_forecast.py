"""When a waiting item's turn comes, by two looks at its place."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.report import Forecast, forecast as forecast_items, inspect_items
from tests.conftest import FakeClock, Foreign


@pytest.fixture
def ten_waiting(foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(10)))


def forecasts(queue: WorkQueue, *ids: bytes) -> list[Forecast | None]:
    return forecast_items(queue, inspect_items(queue, ids), sample_s=2.0)


@pytest.mark.usefixtures("ten_waiting")
class TestWaitingItems:
    def test_the_rate_is_how_many_items_left_meanwhile(
        self, queue: WorkQueue, raw: Redis, clock: FakeClock
    ) -> None:
        clock.during_sleep = lambda: raw.rpop("jobs:queue", 3)
        assert forecasts(queue, b"9", b"3") == [Forecast(1.5, 4.0), Forecast(1.5, 0.0)]
        assert clock.slept_s == [2.0]

    def test_an_item_leased_meanwhile_has_no_forecast(
        self, queue: WorkQueue, raw: Redis, clock: FakeClock
    ) -> None:
        clock.during_sleep = lambda: raw.rpop("jobs:queue", 3)
        assert forecasts(queue, b"2") == [None]

    def test_items_that_do_not_move_have_no_estimate(self, queue: WorkQueue) -> None:
        assert forecasts(queue, b"9") == [Forecast(0.0, None)]
