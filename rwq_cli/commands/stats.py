"""`rwq stats`: the counts of a queue."""

from collections.abc import Iterator
from typing import Annotated

from rwq_cli.cli.connect import OpenQueues, note_idle_reset, warn_if_missing
from rwq_cli.cli.options import AllQueuesOption, WatchOption
from rwq_cli.cli.watching import show_repeatedly
from rwq_cli.commands import Settings, command, option
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.counts import COUNT_FIELDS, Tick, write_stats


@command(record=COUNT_FIELDS, reads_only=True, always_table=True, excludes=["--fast --deep"])
def stats(
    settings: Settings,
    fast: Annotated[bool, option("--fast", "Read only lengths, in constant time.")] = False,
    deep: Annotated[
        bool, option("--deep", "Walk the whole queue: also orphaned, duplicated, ghosts, results.")
    ] = False,
    watch: WatchOption = None,
    all_queues: AllQueuesOption = False,
) -> None:
    """Count a queue's items by state, with ages, leases and sizes.

    rwq stats -q jobs
    rwq stats -q jobs --fast -o json
    rwq stats -q 'mail:*' --deep
    rwq stats -q jobs --watch 2s
    """
    opened = OpenQueues(settings, all_queues=all_queues)

    def count(queue: WorkQueue) -> Iterator[Counts]:
        counts = queue.lengths() if fast else queue.counts(deep=deep)
        if deep and counts.results is None:
            settings.environment.note("rwq: this user may not read results; they are not counted")
        if counts.waiting and not (fast or settings.output is OutputFormat.IDS):
            note_idle_reset(settings, queue, "payload sizes are not sampled")
        return warn_if_missing(settings, queue, [counts], lambda counts: counts.is_empty)

    def show(tick: Tick | None) -> None:
        counted = opened.find().read(count)
        write_stats(settings.out, counted, tick, fast=fast, deep=deep, one=opened.is_one)

    show_repeatedly(settings, watch, opened.connection, show, lambda: opened.find().queues)
