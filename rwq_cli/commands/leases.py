"""`rwq leases`: who holds which item, and for how long."""

import glob
import os
from typing import Annotated

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import NULL_RECORDS, DataOption, LimitOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import Source
from rwq_cli.output.report import Report
from rwq_cli.views.items import LEASES_COLUMNS, plain_names
from rwq_cli.views.listing import listing_report

app = CommandModule()


@app.command(
    help="List the items in processing, who holds them and for how long: abandoned items "
    "first, then by the time left.",
    examples=("rwq leases -q jobs", "rwq leases -q jobs --holder 'rwq:deploy@*' -o json"),
    reads_only=True,
    null=NULL_RECORDS,
    plain={"a lease": plain_names(LEASES_COLUMNS)},
)
def leases(
    settings: Settings,
    holder: Annotated[
        bytes | None, option("--holder GLOB", "Only leases of holders that match.", os.fsencode)
    ] = None,
    mine: Annotated[bool, option("--mine", "Only the leases of this session.")] = False,
    limit: LimitOption = 50,
    data: DataOption = False,
) -> Report:
    if mine and holder is not None:
        raise InvalidArgument("--mine and --holder cannot be used together", "use one of them")
    queue = open_queue(settings)
    if mine:
        holder = glob.escape(queue.holder)
    items = queue.leases(
        limit=limit or None,
        holder_glob=holder,
        data=data or settings.needs_data,
        bare=settings.needs_ids_only,
    )
    return listing_report(
        queue.name,
        noting_absence(settings, queue, items),
        LEASES_COLUMNS,
        noun="leases",
        source=Source(processing=True),
        lengths=queue.lengths,
        is_selected=holder is not None,
        filters=False,
    )
