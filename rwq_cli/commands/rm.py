"""`rwq rm`: remove items."""

import typer

from rwq_cli.cli.app import new_app
from rwq_cli.cli.choosing import Choice, SelectionScope, choosing
from rwq_cli.cli.command_options import DryRunOption, YesOption
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.manual import Manual
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.removing import asked, batch_of_taken, open_undo_file
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.model import Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.report import Report

app = new_app()

MANUALS = {
    "rm": Manual(
        examples=(
            "rwq rm -q jobs --yes 4f2a9c",
            "rwq rm -q jobs --match '\"user\": *42' --dry-run -o ids",
            "rwq rm -q jobs --state abandoned --older-than 1h --yes",
        ),
        exits={
            ExitStatus.NO: "none was removed: gone, or declined",
            ExitStatus.PARTIAL: "some were not removed",
        },
    )
}

_SCOPE = SelectionScope(default=ITEMS, everything=ITEMS, offered=ITEMS)


@app.command(
    help="Remove items wherever they are, also those that a worker holds, without calling them "
    "completed. They are written to an undo file first."
)
@choosing(_SCOPE)
def rm(
    ctx: typer.Context,
    choice: Choice,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    chosen = choice.ids(queue, settings)
    if not dry_run:
        chosen = asked("remove", chosen, queue, yes=yes, ends_leases=True)
    undo = open_undo_file(settings, queue, "rm")
    return batch_of_taken(
        settings,
        queue,
        queue.take(chosen, undo, dry_run=dry_run),
        undo,
        done=Status.REMOVED,
        failures=(Status.MISSING,),
        dry_run=dry_run,
        null_separated=choice.null_separated,
    )
