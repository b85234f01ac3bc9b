"""`rwq result`: show the result of a completed item."""

from math import inf
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.open_queues import warn_missing
from rwq_cli.cli.options import Duration, offer_ids, option, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.results import result as read_result
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.results import RESULT_FIELDS, missing_result, result_note, result_sections

app = CommandModule()


@app.command(
    record=RESULT_FIELDS,
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
    always_table=True,
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
) -> ExitStatus:
    if item_id == b"-":
        raise InvalidArgument(
            "one ID is needed, and - means IDs on stdin", "rwq show - shows the results of many"
        )
    queue = open_queue(settings)
    waits = wait or timeout_s is not None
    limit_s = inf if timeout_s is None else timeout_s

    lookup = read_result(
        queue, item_id, wait=waits, timeout_s=limit_s, promotes=not settings.is_read_only
    )
    is_missing = lookup.result is None
    environment, output = settings.environment, settings.output
    if is_missing and output.is_raw:
        # The reason for no output is an error, which --quiet does not hide.
        environment.error(missing_result(lookup))
    elif not is_missing and (note := result_note(lookup, output)):
        environment.note(note)
    settings.out.describe(
        # Without a result, `-o ids` prints nothing.
        [] if is_missing and output is OutputFormat.IDS else [lookup],
        RESULT_FIELDS,
        lambda shown: result_sections(shown, queue.now_ms),
    )
    if is_missing:
        warn_missing(settings, queue)
    return ExitStatus.NO if is_missing else ExitStatus.OK
