"""`rwq kick`: bring buried items back."""

import typer

from rwq_cli.cli.app import new_app
from rwq_cli.cli.choosing import Choice, SelectionScope, choosing
from rwq_cli.cli.command_options import DryRunOption
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.manual import Manual
from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import State, Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.report import Report
from rwq_cli.views.outcomes import batch_of_ids

app = new_app()

MANUALS = {
    "kick": Manual(
        examples=(
            "rwq kick -q jobs 4f2a9c",
            "rwq kick -q jobs -n 10",
            "rwq kick -q jobs --match '\"user\": *42' --dry-run",
        ),
        exits={
            ExitStatus.NO: "none was brought back: not buried, or gone",
            ExitStatus.PARTIAL: "some were not brought back",
        },
    )
}

_BURIED = frozenset({State.BURIED})
_SCOPE = SelectionScope(default=_BURIED, everything=_BURIED, offered=_BURIED)


@app.command(
    help="Bring buried items back to the end of the queue, the longest buried first. What was "
    "counted of their returns is forgotten, so they get all their chances again."
)
@choosing(_SCOPE)
def kick(ctx: typer.Context, choice: Choice, dry_run: DryRunOption = False) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    return batch_of_ids(
        queue.name,
        queue.kick(choice.ids(queue, settings), dry_run=dry_run),
        done=Status.KICKED,
        failures=(Status.NOT_BURIED, Status.NOT_OWNER, Status.MISSING),
        dry_run=dry_run,
        null_separated=choice.null_separated,
    )
