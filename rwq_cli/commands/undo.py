"""`rwq undo`: put back what rm, mv or purge took away."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.options import DryRunOption, NullIdsOption
from rwq_cli.commands.putting import put_report, report_bad_line
from rwq_cli.connecting import open_connection
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.importing import OnConflict
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exits import ExitStatus
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Report
from rwq_cli.settings import Settings
from rwq_cli.undofile import UndoReader, latest_undo_file, undo_directory

app = new_app()

MANUALS = {
    "undo": Manual(
        examples=(
            "rwq undo --dry-run",
            "rwq undo",
            "rwq undo -q jobs -o json",
        ),
        exits={
            ExitStatus.NO: "nothing was put back: there is no undo file, or every item is in "
            "conflict",
            ExitStatus.PARTIAL: "some items were not put back; the file is kept",
        },
    )
}

_DONE = (Status.IMPORTED, Status.MOVED)


@app.command(
    help="Put back what rm, mv or purge took away: the latest that was not put back yet, or what "
    "FILE holds. Items come back as they were, waiting ones at the end of the queue that they were "
    "nearer to; what was moved comes back to the end, if nobody has touched it."
)
def undo(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The undo file. Else the latest, with -q of that queue."
        ),
    ] = None,
    anywhere: Annotated[
        bool,
        typer.Option("--anywhere", help="Also on another server than they were taken from."),
    ] = False,
    dry_run: DryRunOption = False,
    null: NullIdsOption = False,
) -> Report:
    settings: Settings = ctx.obj
    wanted = settings.queue if settings.given.get("queue") else None
    directory = undo_directory(settings.environment.variables)
    reader = UndoReader(file or latest_undo_file(directory, wanted))
    header, taken = reader.header, reader.taken
    if wanted is not None and wanted != header.queue:
        raise InvalidArgument(
            f"these items were taken from the queue {escaped(header.queue)}", "leave out -q"
        )
    connection = open_connection(settings)
    if taken.server != connection.name and not anywhere:
        raise InvalidArgument(
            f"these items were taken from {taken.server}, and this is {connection.name}",
            "name that server with -u, or say --anywhere",
        )
    queue = WorkQueue(connection, header.queue, holder=settings.holder)
    bad_line = report_bad_line(settings, str(reader.path))
    for number, why in reader.rejected:
        bad_line(number, why)
    shown = escaped(str(reader.path).encode("utf-8", "surrogateescape"))
    return put_report(
        queue.name,
        _marking(reader, _put_back(reader, queue, dry_run=dry_run), dry_run=dry_run),
        words=dict.fromkeys(_DONE, "restored"),
        counted=("restored", "already-there", "conflicts", "rejected"),
        rejected=lambda: len(reader.rejected),
        dry_run=dry_run,
        null_separated=null,
        fields={"verb": taken.verb, "undo_file": str(reader.path)},
        suffix=f"; {taken.verb} of {escaped(header.queue)}, from {shown}",
    )


def _put_back(reader: UndoReader, queue: WorkQueue, *, dry_run: bool) -> Iterator[OutcomeBatch]:
    to = reader.taken.to
    if to is not None:
        return queue.take_back(reader.all, to, dry_run=dry_run).batches
    pushes = ((reader.last_first(), True), (reader.others(), False))
    return chain.from_iterable(
        queue.put(items, on_conflict=OnConflict.FAIL, at_front=at_front, dry_run=dry_run).batches
        for items, at_front in pushes
    )


def _marking(
    reader: UndoReader, batches: Iterator[OutcomeBatch], *, dry_run: bool
) -> Iterator[OutcomeBatch]:
    """The batches; when all is put back, the file is marked as undone."""
    complete = not reader.rejected and not dry_run
    for batch in batches:
        complete = complete and not set(batch.letters) - _PUT_BACK
        yield batch
    if complete:
        reader.mark_undone()


# Imported, already there, moved.
_PUT_BACK = frozenset("ihv")
