"""Forecasting when a waiting item will be leased, from how fast it moves up."""

from collections.abc import Sequence
from typing import NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.report import ItemReport, inspect_items


class Forecast(NamedTuple):
    """How many places an item moves up per second, and in how many seconds its turn comes at that
    rate; None if it did not move up.
    """

    rate_per_s: float
    turn_in_s: float | None


def forecast(
    queue: Queue, reports: Sequence[ItemReport], *, sample_s: float
) -> list[Forecast | None]:
    """Compare the places of items with those after a while; None if one is not waiting both times.

    The server does not store how fast a queue is processed, so a forecast holds only for the
    moment. The rate counts the entries that leave the list ahead of an item, by a lease or
    otherwise, minus those that are pushed in front of it.
    """
    clock = queue.clock
    began_s = clock.monotonic()
    waiting = {report.facts.item_id for report in reports if report.position is not None}
    if not waiting:
        return [None] * len(reports)
    clock.sleep(sample_s)
    again = {report.facts.item_id: report.position for report in inspect_items(queue, waiting)}
    # Reading the places takes time, too.
    passed_s = max(clock.monotonic() - began_s, 1e-3)

    def of(report: ItemReport) -> Forecast | None:
        first, second = report.position, again.get(report.facts.item_id)
        if first is None or second is None:
            return None
        rate_per_s = max(0.0, (first - second) / passed_s)
        return Forecast(rate_per_s, second / rate_per_s if rate_per_s else None)

    return [of(report) for report in reports]
