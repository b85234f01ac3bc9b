"""Reading everything that is shown about items, for `show` and `top`."""

from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.cli.connect import command_lines
from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import BLOCK_IDS, Flush, in_batches
from rwq_cli.core.inspect.report import (
    Forecast,
    describe,
    forecast as forecast_items,
    inspect_items,
)
from rwq_cli.core.inspect.results import ResultKey
from rwq_cli.core.queue import WorkQueue
from rwq_cli.views.item_report import Shown

_PAGE_IDS = BLOCK_IDS // 2


def read_shown(
    settings: Settings,
    queue: WorkQueue,
    ids: Iterable[bytes | Flush],
    *,
    data: bool = False,
    sizes: bool = False,
    eta_s: float | None = None,
) -> Iterator[Shown]:
    """Read everything that is shown of each ID, a page at a time.

    `data` reads whole payloads, and `sizes` sizes and previews even if that resets idle times;
    `eta_s` is how long to watch the queue for a forecast.
    """
    lines = command_lines(settings, queue.connection)
    # Each page of many IDs walks over the lists. Whole payloads are kept for a page.
    for page in in_batches(ids, later_max=0 if data else _PAGE_IDS):
        reports = inspect_items(queue, page)
        items, found = describe(queue, reports, data=data, sizes=sizes)
        results: Sequence[ResultKey | None] = found or [None] * len(page)
        if found is None:
            note = "rwq: this user may not read results; none are shown"
            settings.environment.note(note, once=True)
        forecasts: Sequence[Forecast | None] = [None] * len(page)
        if eta_s is not None:
            forecasts = forecast_items(queue, reports, sample_s=eta_s)
        for item, report, key, forecast in zip(items, reports, results, forecasts, strict=True):
            yield Shown(item, report, lines, key, forecast)
