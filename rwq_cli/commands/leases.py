"""`rwq leases`: who holds which item, and for how long."""

import glob
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.listing import list_items
from rwq_cli.cli.options import (
    NULL_RECORDS,
    AllQueuesOption,
    DataOption,
    LimitOption,
    WatchOption,
    offer_holders,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import merged_leases
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.items import ITEM_FIELDS, plain_names

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
        "a lease": plain_names("leases"),
        "of several queues": plain_names("leases", has_queue=True),
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

    at_most = settings.read_limit(limit)

    def read(queue: WorkQueue) -> Iterator[Item]:
        return queue.leases(
            Selection(holder_glob=holder),
            limit=at_most,
            data=data or settings.needs_data,
            bare=settings.needs_ids_only,
        )

    def joined(listings: Iterable[Iterable[Item]]) -> Iterator[Item]:
        return islice(merged_leases(listings), at_most)

    return list_items(
        settings,
        read,
        listing="leases",
        noun="leases" if holder is None else "such leases",
        source=Source(processing=True),
        selection=Selection(),
        data=data,
        watch=watch,
        all_queues=all_queues,
        limit=limit,
        joined=joined,
    )
