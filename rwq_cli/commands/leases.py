"""`rwq leases`: who holds which item, and for how long."""

import glob
import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.completing import offer_holders
from rwq_cli.cli.notes import warn_if_missing, warn_sizes_skipped
from rwq_cli.cli.open_queues import QueueFinder
from rwq_cli.cli.options import (
    NULL_RECORDS,
    AllQueuesOption,
    DataOption,
    LimitOption,
    WatchOption,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.watching import watched
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import merged_leases
from rwq_cli.core.inspect.selection import Source
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.items import ITEM_FIELDS, LEASES_COLUMNS, QUEUE, plain_names, with_data
from rwq_cli.views.listing import footer, write_items

if TYPE_CHECKING:
    from rwq_cli.views.watching import Tick

app = CommandModule()


@app.command(
    record=ITEM_FIELDS,
    help="List the items in processing, who holds them and for how long: abandoned items "
    "first, then by the time left.",
    examples=(
        "rwq leases -q jobs",
        "rwq leases -q jobs --holder 'rwq:deploy@*' -o json",
        "rwq leases -q jobs --watch 2s",
    ),
    reads_only=True,
    null=NULL_RECORDS,
    plain={
        "a lease": plain_names(LEASES_COLUMNS),
        "of several queues": plain_names((*LEASES_COLUMNS, QUEUE)),
    },
)
def leases(
    settings: Settings,
    holder: Annotated[
        bytes | None,
        option(
            "--holder GLOB", "Only leases of holders that match.", os.fsencode, offer=offer_holders
        ),
    ] = None,
    mine: Annotated[bool, option("--mine", "Only the leases of this session.")] = False,
    limit: LimitOption = 50,
    data: DataOption = False,
    watch: WatchOption = None,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    if mine and holder is not None:
        raise InvalidArgument.both("--mine", "--holder")
    if mine:
        holder = glob.escape(settings.holder)
    finder = QueueFinder(settings, all_queues=all_queues)

    def read(queue: WorkQueue) -> Iterator[Item]:
        items = queue.leases(
            limit=limit or None,
            holder_glob=holder,
            data=data or settings.needs_data,
            bare=settings.needs_ids_only,
        )
        return warn_if_missing(settings, queue, items)

    def show(tick: "Tick | None") -> None:
        opened, out = finder.find(), settings.out
        listed = islice(merged_leases(opened.readers(settings, read)), limit or None)
        shown = write_items(
            out,
            warn_sizes_skipped(settings, opened.queues, listed, data=data or settings.needs_data),
            with_data(LEASES_COLUMNS) if data else LEASES_COLUMNS,
            empty=f"No {'' if holder is None else 'such '}leases in {opened.label}.",
            has_queue=not opened.is_one,
            tick=tick,
        )
        if shown:
            out.footer(
                lambda: footer(
                    shown,
                    opened.label,
                    Source(processing=True),
                    opened.each(settings, lambda queue: [queue.lengths()]),
                    is_filtered=False,
                )
            )

    return watched(settings, watch, finder.connection, show)
