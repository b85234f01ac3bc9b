"""`rwq release`: put items back."""

from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.batch import batch_of_ids
from rwq_cli.commands.options import DryRunOption
from rwq_cli.commands.selecting import Choice, Reach, asked, choosing
from rwq_cli.connecting import open_queue
from rwq_cli.core.model import State, Status
from rwq_cli.core.selecting import ITEMS
from rwq_cli.exits import ExitStatus
from rwq_cli.render.report import Report
from rwq_cli.settings import Settings

app = new_app()

MANUALS = {
    "release": Manual(
        examples=(
            "rwq release -q jobs 4f2a9c",
            "rwq release -q jobs --state abandoned --older-than 1h --dry-run",
            "rwq leases -q jobs --holder 'rwq:*' -n 0 -o ids | rwq release -q jobs --force --yes -",
        ),
        exits={
            ExitStatus.NO: "none was put back: gone, or leased by another session",
            ExitStatus.PARTIAL: "some were not put back",
        },
    )
}

_IN_PROCESSING = frozenset({State.LEASED, State.HELD, State.ABANDONED})
_REACH = Reach(default=_IN_PROCESSING, everything=_IN_PROCESSING, offered=ITEMS)


@app.command(help="Put items back into the queue now, and end their leases.")
@choosing(_REACH)
def release(
    ctx: typer.Context,
    choice: Choice,
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
) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    chosen = choice.ids(queue, settings)
    if force and not dry_run:
        chosen = asked("put back, ending the leases of others,", chosen, queue, yes=yes)
    return batch_of_ids(
        queue.name,
        queue.release(chosen, force=force, front=front, dry_run=dry_run),
        done=Status.RELEASED,
        failures=(Status.NOT_OWNER, Status.MISSING),
        dry_run=dry_run,
        also=(Status.ALREADY_WAITING,),
        null_separated=choice.null_separated,
    )
