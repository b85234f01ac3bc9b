"""`rwq history`: what the cleaning process wrote down each minute."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from rwq_cli.cli.connect import OpenQueues
from rwq_cli.cli.options import AllQueuesOption, positive
from rwq_cli.commands import Duration, Settings, command, option
from rwq_cli.output.escape import escaped
from rwq_cli.views.history import (
    BESIDE_CELLS,
    HISTORY_FIELDS,
    PLAIN,
    QueueHistory,
    history_sections,
)

if TYPE_CHECKING:
    from rwq_cli.core.inspect.history import HistoryEntry
    from rwq_cli.core.queue import WorkQueue

_DAY = Duration(86_400)
_MINUTE_MS = 60_000
# The steps of blocks, in minutes: the shortest that fits the terminal is taken.
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1_440, 10_080)
_CELLS_MIN = 10


@command(
    record=HISTORY_FIELDS, reads_only=True, plain={"an entry, or a step of them": ", ".join(PLAIN)}
)
def history(
    settings: Settings,
    since_s: Annotated[
        Duration, option("--since DUR", "How far back.", positive("--since"))
    ] = _DAY,
    step_s: Annotated[
        Duration | None,
        option("--step DUR", "A block or record for this long.", positive("--step")),
    ] = None,
    all_queues: AllQueuesOption = False,
) -> None:
    """Show what the cleaning process of a queue has written down each minute of the last day, and
    each hour of the last hundred days: how many items were in each state, how many were done, and
    the next item. It is drawn as blocks on a terminal, and printed as records elsewhere.

    rwq history -q jobs
    rwq history -q jobs --since 2h --step 10m -o csv
    rwq history --all-queues --since 30d
    """
    from rwq_cli.core.inspect.history import in_steps, read_history

    opened = OpenQueues(settings, all_queues=all_queues).find()
    is_drawn, step_ms = settings.output.is_table, 0 if step_s is None else round(1000 * step_s)

    since_ms = round(1000 * since_s)

    def entries(queue: "WorkQueue") -> "Iterator[HistoryEntry]":
        has_entries = False
        for entry in read_history(queue, queue.now_ms() - since_ms):
            has_entries = True
            yield entry
        if not has_entries:
            settings.environment.note(
                f"rwq: {escaped(queue.name)}: no history; it is written by "
                "rwq clean light --every 30s, and by rwq work --clean 1m"
            )

    if not is_drawn or settings.fields is not None or settings.by is not None:
        columns = [name for name in PLAIN if name != "queue" or not opened.is_one]
        rows = opened.read(lambda queue: in_steps(entries(queue), step_ms))
        settings.out.table(rows, HISTORY_FIELDS, columns, plain_columns=PLAIN)
        return
    cells = max(_CELLS_MIN, settings.environment.width - BESIDE_CELLS)

    def drawn(queue: "WorkQueue") -> Iterator[QueueHistory]:
        if minutes := list(entries(queue)):
            now_ms = queue.now_ms()
            block_ms = step_ms or _fitting_step_ms(now_ms - minutes[0].at_ms, cells)
            blocks = {entry.at_ms: entry for entry in in_steps(minutes, block_ms)}
            # The first is whole; nothing may be written yet of the one that goes on.
            last_ms = now_ms // block_ms * block_ms
            last_ms -= 0 if last_ms in blocks else block_ms
            first_ms = max(min(blocks), last_ms - (since_ms - 1) // block_ms * block_ms)
            times = range(first_ms, last_ms + 1, block_ms)
            yield QueueHistory(queue.name, block_ms, [blocks.get(at_ms) for at_ms in times])

    settings.out.describe(opened.read(drawn), HISTORY_FIELDS, history_sections)


def _fitting_step_ms(span_ms: int, cells: int) -> int:
    minutes = span_ms / _MINUTE_MS
    return _MINUTE_MS * next((step for step in _STEPS if minutes / step <= cells), _STEPS[-1])
