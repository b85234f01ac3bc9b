"""`rwq leases`: who holds what for how long."""

import os
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DataOption, LimitOption, NullRecordsOption
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Listing, Report
from rwq_cli.views.records import DATA, HOLDER, ID, SIZE, STATE, TIME_LEFT, item_view

app = CommandModule()


@app.command(
    help="Show who holds what for how long: abandoned items first, then the soonest to end.",
    examples=(
        "rwq leases -q jobs",
        "rwq leases -q jobs --holder 'rwq:deploy@*' -o json",
    ),
    reads_only=True,
)
def leases(
    settings: Settings,
    holder: Annotated[
        str | None,
        typer.Option("--holder", metavar="GLOB", help="Only leases of holders that match."),
    ] = None,
    limit: LimitOption = 50,
    data: DataOption = False,
    null: NullRecordsOption = False,
) -> Report:
    queue = open_queue(settings)
    glob = None if holder is None else os.fsencode(holder)
    name = escaped(queue.name)
    return Listing(
        view=item_view(ID, STATE, HOLDER, TIME_LEFT, SIZE, DATA),
        records=queue.leases(
            limit=limit or None,
            holder_glob=glob,
            data=data or settings.output is OutputFormat.DATA,
            bare=settings.output is OutputFormat.IDS,
        ),
        empty=f"No leases in {name}." if glob is None else f"No such leases in {name}.",
        footer=lambda shown: _footer(queue, shown),
        null_separated=null,
    )


def _footer(queue: WorkQueue, shown: int) -> str:
    total = queue.lengths().processing
    return f"{human.count(shown)} shown of {human.count(total)} processing in {escaped(queue.name)}"
