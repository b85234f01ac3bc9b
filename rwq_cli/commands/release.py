"""`rwq release`: put items back."""

from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.batch import batch_of_ids
from rwq_cli.commands.options import DryRunOption, IdsArgument, NullOption
from rwq_cli.confirm import confirm
from rwq_cli.connecting import open_queue
from rwq_cli.core.batches import Pause
from rwq_cli.core.model import Status
from rwq_cli.exits import ExitStatus
from rwq_cli.reading.ids import read_ids
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Report
from rwq_cli.settings import Settings

app = new_app()

MANUALS = {
    "release": Manual(
        examples=(
            "rwq release -q jobs 4f2a9c",
            "rwq leases -q jobs --holder 'rwq:*' -n 0 -o ids | rwq release -q jobs --force --yes -",
        ),
        exits={
            ExitStatus.NO: "none was put back: gone, or leased by another session",
            ExitStatus.PARTIAL: "some were not put back",
        },
    )
}


@app.command(help="Put items back into the queue now, and end their leases.")
def release(
    ctx: typer.Context,
    ids: IdsArgument = None,
    front: Annotated[
        bool, typer.Option("--front", help="Make them the next to be leased, in this order.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where another session still holds the lease.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before --force ends leases.")
    ] = False,
    dry_run: DryRunOption = False,
    null: NullOption = False,
) -> Report:
    settings: Settings = ctx.obj
    chosen = read_ids(settings.environment, ids or [], null_separated=null)
    queue = open_queue(settings)
    if force and not dry_run:
        known = list(dict.fromkeys(i for i in chosen if not isinstance(i, Pause)))
        what = "put back, ending the leases of others,"
        confirm(what, len(known), escaped(queue.name), yes=yes)
        chosen = iter(known)
    return batch_of_ids(
        queue.name,
        queue.release(chosen, force=force, front=front, dry_run=dry_run),
        done=Status.RELEASED,
        failures=(Status.NOT_OWNER, Status.MISSING),
        dry_run=dry_run,
        also=(Status.ALREADY_WAITING,),
        null_separated=null,
    )
