"""`rwq leases`: who holds which item, and for how long."""

import glob
import os
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.completing import offer_holders
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
from rwq_cli.cli.unread_sizes import noting_unread_sizes
from rwq_cli.cli.watching import watched
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import merged_leases
from rwq_cli.core.inspect.selection import Source
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.report import Records, Report
from rwq_cli.views.items import LEASES_COLUMNS, QUEUE, plain_names
from rwq_cli.views.listing import listing_report

app = CommandModule()


@app.command(
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
) -> Report:
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
        return noting_absence(settings, queue, items)

    def report() -> Records[Item]:
        opened = finder.find()
        listed = islice(merged_leases(opened.readers(settings, read)), limit or None)
        return listing_report(
            opened.label,
            noting_unread_sizes(settings, opened.queues, listed, data=data or settings.needs_data),
            LEASES_COLUMNS,
            noun="leases",
            source=Source(processing=True),
            lengths=lambda: opened.each(settings, lambda queue: [queue.lengths()]),
            is_selected=holder is not None,
            filters=False,
            has_queue=not opened.is_one,
        )

    return watched(settings, watch, finder.connection, report)
