"""`rwq leases`: who holds what for how long."""

import os
from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.options import DataOption, LimitOption, NullRecordsOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.queue import WorkQueue
from rwq_cli.render import human
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Listing, Report
from rwq_cli.render.views import DATA, HOLDER, ID, SIZE, STATE, TIME_LEFT, item_view
from rwq_cli.settings import OutputFormat, Settings

app = new_app()

MANUALS = {
    "leases": Manual(
        examples=(
            "rwq leases -q jobs",
            "rwq leases -q jobs --holder 'rwq:deploy@*' -o json",
        ),
        reads_only=True,
    )
}


@app.command(
    help="Show who holds what for how long: abandoned items first, then the soonest to end."
)
def leases(
    ctx: typer.Context,
    holder: Annotated[
        str | None,
        typer.Option("--holder", metavar="GLOB", help="Only leases of holders that match."),
    ] = None,
    limit: LimitOption = 50,
    data: DataOption = False,
    null: NullRecordsOption = False,
) -> Report:
    settings: Settings = ctx.obj
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
