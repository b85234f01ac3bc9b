"""`rwq queues`: list the queues of a server."""

import os
import time
from collections.abc import Iterator
from typing import Annotated

from rwq_cli.cli.connect import cache_find, open_connection
from rwq_cli.cli.options import WatchOption, offer_queues
from rwq_cli.cli.watching import show_repeatedly
from rwq_cli.commands import Settings, argument, command
from rwq_cli.core.errors import WrongType
from rwq_cli.core.inspect.counting import COUNT_S, lengths_and_abandoned
from rwq_cli.core.inspect.queues import queue_names
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped_text
from rwq_cli.views.counts import COUNT_FIELDS, QUEUES, QUEUES_PLAIN, Tick, write_counts


@command(
    record=COUNT_FIELDS,
    reads_only=True,
    plain={"a queue": ", ".join(QUEUES_PLAIN)},
    null="End each name of -o ids with NUL, and do not escape it.",
)
def queues(
    settings: Settings,
    pattern: Annotated[
        bytes | None,
        argument("[PATTERN]", "Only matching names, as with -q.", os.fsencode, offer=offer_queues),
    ] = None,
    watch: WatchOption = None,
) -> None:
    """List the queues of this server with their counts. All keys are scanned; a queue whose items
    are all orphaned is not found. Abandoned items are counted for a second at most: >41,000 means
    that there may be more.

    rwq queues
    rwq queues 'mail:*' -o json
    rwq queues --watch 5s
    """
    connection = open_connection(settings)
    words = [os.fsencode(name) for name in settings.common_options.get("queue", ())]
    patterns = [*map(glob_pattern, [*words, *([] if pattern is None else [pattern])])]
    find_queues = cache_find(
        lambda: [
            WorkQueue(connection, name)
            for name in queue_names(connection)
            if not patterns or any(glob.match(name) for glob in patterns)
        ]
    )

    def counted() -> Iterator[Counts]:
        connection.set_no_touch()
        ends_s = time.monotonic() + COUNT_S
        for queue in find_queues():
            try:
                yield lengths_and_abandoned(queue, within_s=ends_s - time.monotonic())
            except WrongType as error:
                settings.environment.error(f"skipped: {escaped_text(error.message)}", once=True)

    def show(tick: Tick | None) -> None:
        empty = "No such queues." if patterns else "No queues on this server."
        # No other counts are read.
        write_counts(settings.out, counted(), QUEUES, QUEUES_PLAIN, tick, wide=QUEUES, empty=empty)

    show_repeatedly(settings, watch, connection, show, find_queues)
