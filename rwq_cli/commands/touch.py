"""`rwq touch`: renew leases."""

from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.batch import batch_of_ids
from rwq_cli.commands.options import DryRunOption, IdsArgument, NullOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import Status
from rwq_cli.exits import ExitStatus
from rwq_cli.reading.durations import parse_duration
from rwq_cli.reading.ids import read_ids
from rwq_cli.render.report import Report
from rwq_cli.settings import Settings

app = new_app()

MANUALS = {
    "touch": Manual(
        examples=("rwq touch -q jobs 4f2a9c --for 10m",),
        exits={
            ExitStatus.NO: "none has a live lease",
            ExitStatus.PARTIAL: "some have no live lease",
        },
    )
}


@app.command(help="Give live leases a new expiry, counted from now.")
def touch(
    ctx: typer.Context,
    ids: IdsArgument = None,
    lease_for: Annotated[
        str, typer.Option("--for", metavar="DUR", help="How long the lease lasts from now.")
    ] = "5m",
    dry_run: DryRunOption = False,
    null: NullOption = False,
) -> Report:
    settings: Settings = ctx.obj
    lease_s = parse_duration(lease_for)
    if lease_s < 0.001:
        raise InvalidArgument("a lease must last at least 1ms", "release the item instead")
    chosen = read_ids(settings.environment, ids or [], null_separated=null)
    queue = open_queue(settings)
    return batch_of_ids(
        queue.name,
        queue.touch(chosen, lease_s=lease_s, dry_run=dry_run),
        done=Status.TOUCHED,
        failures=(Status.NOT_LEASED, Status.MISSING),
        dry_run=dry_run,
        null_separated=null,
    )
