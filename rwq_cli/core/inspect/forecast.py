"""When a waiting item's turn comes, foretold from how fast it moves up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.report import ItemReport, facts_of


@dataclass(frozen=True, slots=True)
class Forecast:
    """What two looks at an item's place say.

    Attributes:
        rate_per_s: How many places it moved up a second.
        turn_in_s: Seconds until its turn at that rate; None if it did not move up.
    """

    rate_per_s: float
    turn_in_s: float | None


def forecast(
    queue: Queue,
    item_reports: Sequence[ItemReport],
    *,
    sample_s: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> list[Forecast | None]:
    """Look at the places of items once more, after a while.

    Nothing on the server says how fast a queue is worked through, so this is of the moment alone.
    The places count what leaves the list ahead of an item, by a lease or otherwise; what is put
    in front of it counts against that.

    Args:
        queue: The queue.
        item_reports: What was seen of the items a moment ago.
        sample_s: How long to wait before the second look, seconds.
        monotonic: The time, seconds.
        sleep: Waits for so many seconds.

    Returns:
        A forecast for each, in order; None for what does not wait, or waits no more.
    """
    began_s = monotonic()
    waiting = [item_report for item_report in item_reports if item_report.position is not None]
    if not waiting:
        return [None] * len(item_reports)
    sleep(sample_s)
    again = {
        item_report.facts.item_id: item_report.position
        for item_report in facts_of(queue, [s.facts.item_id for s in waiting])
    }
    # The looks themselves take time, too.
    passed_s = max(monotonic() - began_s, 1e-3)

    def of(item_report: ItemReport) -> Forecast | None:
        first, second = item_report.position, again.get(item_report.facts.item_id)
        if first is None or second is None:
            return None
        rate_per_s = max(0.0, (first - second) / passed_s)
        return Forecast(rate_per_s, second / rate_per_s if rate_per_s else None)

    return [of(item_report) for item_report in item_reports]
