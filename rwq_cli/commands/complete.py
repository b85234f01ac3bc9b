"""`rwq complete`: finish items."""

import os
from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.batch import batch_of_ids
from rwq_cli.commands.options import DryRunOption, IdsArgument, NullOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.model import Status
from rwq_cli.exits import ExitStatus
from rwq_cli.reading.ids import read_ids
from rwq_cli.render.report import Report
from rwq_cli.settings import Settings

app = new_app()

MANUALS = {
    "complete": Manual(
        examples=(
            "rwq complete -q jobs 4f2a9c",
            "rwq lease -q jobs -n 1000 -o ids | rwq complete -q jobs -",
        ),
        exits={
            ExitStatus.NO: "none was completed by this call: gone, or leased by another session",
            ExitStatus.PARTIAL: "some were not completed by this call",
        },
    )
}


@app.command(help="Finish items: they are gone, whoever holds them, and one complete wins.")
def complete(
    ctx: typer.Context,
    ids: IdsArgument = None,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", metavar="SESSION", help="Only where this session still holds the lease."
        ),
    ] = None,
    dry_run: DryRunOption = False,
    null: NullOption = False,
) -> Report:
    settings: Settings = ctx.obj
    chosen = read_ids(settings.environment, ids or [], null_separated=null)
    queue = open_queue(settings)
    return batch_of_ids(
        queue.name,
        queue.complete(
            chosen, owner=None if owner is None else os.fsencode(owner), dry_run=dry_run
        ),
        done=Status.COMPLETED,
        failures=(Status.MISSING, Status.NOT_OWNER),
        dry_run=dry_run,
        null_separated=null,
    )
