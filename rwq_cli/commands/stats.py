"""`rwq stats` and `rwq queues`: counts of a queue, or of all of a server."""

import os
import time
from collections.abc import Iterator

from rwq_cli.cli import connect
from rwq_cli.cli.options import AllQueuesOption, WatchOption, offer_queues
from rwq_cli.cli.watching import watched
from rwq_cli.commands import InvalidArgument, Settings, argument, command, option
from rwq_cli.core.errors import WrongType
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.counts import COUNT_FIELDS, QUEUES, QUEUES_PLAIN, Tick, write_counts, write_stats


@command(record=COUNT_FIELDS, reads_only=True, always_table=True)
def stats(
    settings: Settings,
    fast: bool = option("--fast", "Read only lengths, in constant time."),
    deep: bool = option(
        "--deep", "Walk the whole queue: also orphaned, duplicated, ghosts, results."
    ),
    watch: WatchOption = None,
    all_queues: AllQueuesOption = False,
) -> None:
    """Count a queue's items by state, with ages, leases and sizes.

    rwq stats -q jobs
    rwq stats -q jobs --fast -o json
    rwq stats -q 'mail:*' --deep
    rwq stats -q jobs --watch 2s
    """
    if fast and deep:
        raise InvalidArgument.both("--fast", "--deep")
    opened = connect.OpenQueues(settings, all_queues=all_queues)

    def count(queue: WorkQueue) -> Iterator[Counts]:
        counts = queue.lengths() if fast else queue.counts(deep=deep)
        if deep and counts.results is None:
            settings.environment.note("rwq: this user may not read results; they are not counted")
        if counts.waiting and not (fast or settings.output is OutputFormat.IDS):
            connect.note_idle_reset(settings, queue, "payload sizes are not sampled")
        return connect.warn_if_missing(settings, queue, [counts], lambda counts: counts.is_empty)

    def show(tick: Tick | None) -> None:
        counted = opened.find().each(count)
        write_stats(settings.out, counted, tick, fast=fast, deep=deep, one=opened.is_one)

    watched(settings, watch, opened.connection, show, lambda: opened.find().queues)


@command(
    record=COUNT_FIELDS,
    reads_only=True,
    plain={"a queue": ", ".join(QUEUES_PLAIN)},
    null="End each name of -o ids with NUL, and do not escape it.",
)
def queues(
    settings: Settings,
    pattern: bytes | None = argument(
        "[PATTERN]", "Only matching names.", os.fsencode, offer=offer_queues
    ),
    watch: WatchOption = None,
) -> None:
    """List the queues of this server with their counts. All keys are scanned; a queue whose items
    are all orphaned is not found. Abandoned items are counted for a second at most: >41,000 says
    that there may be more.

    rwq queues
    rwq queues 'mail:*' -o json
    rwq queues --watch 5s
    """
    from rwq_cli.core.inspect.counting import COUNT_S, lengths_and_abandoned
    from rwq_cli.core.inspect.queues import queue_names
    from rwq_cli.core.keys import glob_pattern

    connection = connect.open_connection(settings)
    wanted = glob_pattern(b"*" if pattern is None else pattern)
    found = connect.remembered(
        lambda: [WorkQueue(connection, n) for n in queue_names(connection) if wanted.match(n)]
    )

    def counted() -> Iterator[Counts]:
        connection.set_no_touch()
        ends_s = time.monotonic() + COUNT_S
        for queue in found():
            try:
                yield lengths_and_abandoned(queue, within_s=ends_s - time.monotonic())
            except WrongType as error:
                settings.environment.error(f"skipped: {escaped_text(error.message)}", once=True)

    def show(tick: Tick | None) -> None:
        empty = "No queues on this server." if pattern is None else "No such queues."
        # It reads no other counts.
        write_counts(settings.out, counted(), QUEUES, QUEUES_PLAIN, tick, wide=QUEUES, empty=empty)

    watched(settings, watch, connection, show, found)
