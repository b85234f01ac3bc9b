"""`rwq result`: show the result of a completed item."""

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.completing import offer_ids
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import Duration, option, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.results import result as read_result
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.report import Report
from rwq_cli.views.results import result_report

if TYPE_CHECKING:
    from rwq_cli.core.items.results import ResultLookup

app = CommandModule()


@app.command(
    help="Show the result that complete stored for an item. --wait waits until the item is gone, "
    "even if it leaves no result.",
    examples=(
        "rwq result -q jobs 4f2a9c",
        "rwq result -q jobs 4f2a9c --timeout 10m -o data > answer.json",
        "rwq result -q jobs 4f2a9c -o json",
    ),
    exits={
        ExitStatus.OK: "there is a result, completed or rejected",
        ExitStatus.NO: "there is none: the item exists, or is gone without one",
    },
    works_read_only=True,
    describes=True,
)
def result(
    settings: Settings,
    item_id: Annotated[
        bytes,
        typer.Argument(
            metavar="ID", parser=parse_id, help="The item's ID.", autocompletion=offer_ids()
        ),
    ],
    wait: Annotated[
        bool,
        option(
            "--wait", "Wait while the item exists, in any state. Due items are promoted meanwhile."
        ),
    ] = False,
    timeout_s: Annotated[
        Duration | None, option("--timeout DUR", "Wait, but at most this long.", Duration)
    ] = None,
) -> Report:
    if item_id == b"-":
        raise InvalidArgument(
            "one ID is needed, and - means IDs on stdin", "rwq show - shows the results of many"
        )
    queue = open_queue(settings)
    waits = wait or timeout_s is not None
    limit_s = inf if timeout_s is None else timeout_s

    def lookups() -> "Iterator[ResultLookup]":
        promotes = not settings.is_read_only
        yield read_result(queue, item_id, wait=waits, timeout_s=limit_s, promotes=promotes)

    found = noting_absence(settings, queue, lookups(), lambda lookup: lookup.result is None)
    return result_report(found, queue.now_ms)
