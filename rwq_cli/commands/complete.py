"""`rwq complete`: finish items."""

import os
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
    "complete": Manual(
        examples=(
            "rwq complete -q jobs 4f2a9c",
            "rwq complete -q jobs --state leased --match '\"user\": *42' --dry-run",
            "rwq lease -q jobs -n 1000 -o ids | rwq complete -q jobs -",
        ),
        exits={
            ExitStatus.NO: "none was completed by this call: gone, or leased by another session",
            ExitStatus.PARTIAL: "some were not completed by this call",
        },
    )
}

_REACH = Reach(default=frozenset({State.WAITING}), everything=ITEMS, offered=ITEMS)


@app.command(help="Finish items: they are gone, whoever holds them, and one complete wins.")
@choosing(_REACH)
def complete(
    ctx: typer.Context,
    choice: Choice,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", metavar="SESSION", help="Only where this session still holds the lease."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before items that were not named are gone.")
    ] = False,
    dry_run: DryRunOption = False,
) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    chosen = choice.ids(queue, settings)
    if not choice.by_name and not dry_run:
        chosen = asked("complete, with their data gone,", chosen, queue, yes=yes)
    return batch_of_ids(
        queue.name,
        queue.complete(
            chosen, owner=None if owner is None else os.fsencode(owner), dry_run=dry_run
        ),
        done=Status.COMPLETED,
        failures=(Status.MISSING, Status.NOT_OWNER),
        dry_run=dry_run,
        null_separated=choice.null_separated,
    )
