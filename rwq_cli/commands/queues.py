"""`rwq queues`: list the queues of a server."""

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.completing import offer_queues
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.open_queues import remembered
from rwq_cli.cli.options import WatchOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.watching import watched
from rwq_cli.core.errors import InvalidArgument, WrongType
from rwq_cli.core.inspect.counting import lengths_and_abandoned
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.core.inspect.queues import queue_names
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.report import Records, Report
from rwq_cli.views.counts import queues_view

app = CommandModule()


@app.command(
    help="List the queues of this server with their counts. All keys are scanned; a queue "
    "whose items are all orphaned is not found. Abandoned items are counted only in queues with at "
    f"most {PAGE_SIZE:,} items in processing; rwq stats always counts them. With --suggest, print "
    "names for new queues that are spread evenly over the nodes of a cluster.",
    examples=(
        "rwq queues",
        "rwq queues 'mail:*' -o json",
        "rwq queues --watch 5s",
        "rwq queues --suggest 12 jobs -o ids",
    ),
    reads_only=True,
    plain={
        "a queue": ", ".join(column.name for column in queues_view().plain_columns),
        "a name (--suggest)": "queue, slot, node",
    },
    null="End each name of -o ids with NUL, and do not escape it.",
)
def queues(
    settings: Settings,
    pattern: Annotated[
        bytes | None,
        typer.Argument(
            metavar="[PATTERN]",
            parser=os.fsencode,
            help="Only names that match this glob.",
            autocompletion=offer_queues,
        ),
    ] = None,
    suggest: Annotated[
        int | None,
        option(
            "--suggest N",
            "Print N queue names such as {PATTERN:1}, each in another slot of a cluster.",
            min=1,
        ),
    ] = None,
    watch: WatchOption = None,
) -> Report:
    if suggest is not None:
        if pattern is None or watch is not None:
            what = "needs a name" if pattern is None else "cannot be used with --watch"
            raise InvalidArgument(f"--suggest {what}", "for example: rwq queues --suggest 12 jobs")
        from rwq_cli.core.server.suggest import suggested_names
        from rwq_cli.views.suggestions import suggestions_report

        return suggestions_report(suggested_names(open_connection(settings), pattern, suggest))
    connection = open_connection(settings)
    wanted = glob_pattern(b"*" if pattern is None else pattern)

    def find() -> list[WorkQueue]:
        names = filter(wanted.match, queue_names(connection))
        return [WorkQueue(connection, name) for name in names]

    found = remembered(find)

    def counted() -> Iterator[Counts]:
        connection.set_no_touch()
        for queue in found():
            try:
                yield lengths_and_abandoned(queue)
            except WrongType as error:
                settings.environment.error(f"skipped: {escaped_text(error.message)}", once=True)

    def report() -> Records[Counts]:
        return Records(
            view=queues_view(),
            records=counted(),
            empty=lambda: "No queues on this server." if pattern is None else "No such queues.",
        )

    return watched(settings, watch, connection, report, found)
