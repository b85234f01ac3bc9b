"""`rwq lease`: take items."""

from collections.abc import Iterable
from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.batch import DRY_RUN
from rwq_cli.commands.options import DryRunOption, NullRecordsOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.batches import LONGEST_LIST
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.listing import Selection, Source
from rwq_cli.core.model import Item, State
from rwq_cli.core.queue import FOREVER
from rwq_cli.exits import ExitStatus
from rwq_cli.reading.durations import parse_duration
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Listing, Report
from rwq_cli.render.views import DATA, ID, SIZE, TIME_LEFT, item_view
from rwq_cli.settings import OutputFormat, Settings

app = new_app()

MANUALS = {
    "lease": Manual(
        examples=(
            "rwq lease -q jobs",
            "rwq lease -q jobs -n 10 --for 1h -o jsonl",
            "rwq lease -q jobs --wait -o data > job.json",
        ),
        exits={ExitStatus.NO: "there was nothing to lease, in time"},
    )
}


@app.command(help="Take the next items under a lease, and print them.")
def lease(
    ctx: typer.Context,
    number: Annotated[
        int, typer.Option("-n", "--number", metavar="N", min=1, help="How many items at most.")
    ] = 1,
    lease_for: Annotated[
        str, typer.Option("--for", metavar="DUR", help="How long the lease lasts.")
    ] = "5m",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until there is an item.")] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DUR", help="Wait for so long at most.")
    ] = None,
    dry_run: DryRunOption = False,
    null: NullRecordsOption = False,
) -> Report:
    settings: Settings = ctx.obj
    lease_s = parse_duration(lease_for)
    if lease_s < 0.001:
        raise InvalidArgument("a lease must last at least 1ms", "give --for a longer time")
    wait_s = FOREVER if wait else 0.0
    if timeout is not None:
        wait_s = parse_duration(timeout)
    queue = open_queue(settings)
    id_batches = None
    records: Iterable[Item]
    if dry_run:
        settings.environment.note(f"{DRY_RUN}these would be leased now")
        waiting = Selection(states=frozenset({State.WAITING}))
        limit = min(number, LONGEST_LIST)
        records = queue.items(Source(main=True), waiting, limit=limit, data=True)
    else:
        leased = queue.lease_many(
            min(number, LONGEST_LIST),
            lease_s=lease_s,
            wait_s=wait_s,
            data=settings.output is not OutputFormat.IDS,
        )
        records, id_batches = leased, (batch.ids for batch in leased.batches)
    return Listing(
        view=item_view(ID, TIME_LEFT, SIZE, DATA),
        records=records,
        empty=f"Nothing to lease in {escaped(queue.name)}.",
        none_is_no=True,
        one_only=number == 1,
        null_separated=null,
        id_batches=id_batches,
    )
