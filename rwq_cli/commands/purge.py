"""`rwq purge`: remove a whole queue."""

from functools import cache

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.options import DryRunOption, NullIdsOption, YesOption
from rwq_cli.commands.taking import batch_of_taken, open_undo_file
from rwq_cli.confirm import confirm
from rwq_cli.connecting import open_queue
from rwq_cli.core.model import Status
from rwq_cli.exits import ExitStatus
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Report
from rwq_cli.settings import Settings

app = new_app()

MANUALS = {
    "purge": Manual(
        examples=(
            "rwq purge -q jobs --dry-run",
            "rwq purge -q jobs --yes",
        ),
        exits={
            ExitStatus.OK: "done; an empty queue is done",
            ExitStatus.NO: "nothing was removed: declined",
            ExitStatus.PARTIAL: "some items were left: changed meanwhile, or of a wrong type",
        },
    )
}


@app.command(
    help="Remove a whole queue, every key of it. The items, and the results that are kept of "
    "completed ones, are written to an undo file first. What a producer adds meanwhile stays."
)
def purge(
    ctx: typer.Context,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    null: NullIdsOption = False,
) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    if not dry_run and not yes:
        items = queue.count_items()
        queue.connection.meter.hide()
        confirm("remove all", items, escaped(queue.name), yes=False)
    undo = open_undo_file(settings, queue, "purge")
    report = batch_of_taken(
        settings,
        queue,
        queue.purge(undo, dry_run=dry_run),
        undo,
        done=Status.REMOVED,
        failures=(),
        dry_run=dry_run,
        null_separated=null,
    )
    # Asked for several times; in a dry run each count is a walk over all keys.
    would = cache(queue.count_results)
    report.extra = lambda: {"results": would() if dry_run else undo.results}
    return report
