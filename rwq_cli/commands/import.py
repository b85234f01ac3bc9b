"""`rwq import`: restore an export."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming, open_connection, open_queue
from rwq_cli.cli.options import NULL_IDS, DryRunOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.restoring import report_bad_line, restore_report
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.importing import Line, OnConflict, forget_marks
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.export_file import ExportReader
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, Report, Several

app = CommandModule()

_COUNTED = ("imported", "already-there", "skipped", "replaced", "conflicts", "rejected")


@app.command(
    "import",
    help="Restore what rwq export wrote: items in their order and states, leases and results with "
    "the time left. If it is interrupted, running the same import again within a day resumes where "
    "it stopped. Input from a pipe cannot be resumed: every missing item is imported again, even "
    "if it was completed in the meantime. An export of several queues is imported without -q.",
    examples=(
        "rwq import -q jobs jobs.jsonl",
        "rwq import -q jobs --on-conflict skip jobs.jsonl",
        "rwq export -q jobs | rwq import -q jobs-copy -",
        "rwq export --all-queues | rwq import --on-conflict skip -",
    ),
    exits={
        ExitStatus.OK: "done; items that already exist with the same data are counted",
        ExitStatus.NO: "nothing was imported: every line was rejected or conflicted",
        ExitStatus.PARTIAL: "some lines were rejected or conflicted, the others were imported",
    },
    null=NULL_IDS,
)
def import_(
    settings: Settings,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The export; - is stdin.")],
    on_conflict: Annotated[
        OnConflict,
        option(
            "--on-conflict",
            "If an ID exists with other data: fail counts it as a failure, skip leaves it, "
            "replace overwrites it. An existing result stays, except with replace.",
        ),
    ] = OnConflict.FAIL,
    strict: Annotated[bool, option("--strict", "Stop at the first bad line.")] = False,
    dry_run: DryRunOption = False,
) -> Report:
    # Before stdin is read.
    settings.check_read_only()
    reader = ExportReader(
        settings.environment, file, strict=strict, report=report_bad_line(settings, file)
    )

    def report(
        queue: WorkQueue, lines: Iterable[Line | Flush], rejected_before: int = 0
    ) -> Batch[Outcome]:
        results = ResultTally()
        restored = queue.restore(
            lines,
            on_conflict=on_conflict,
            file_id=reader.file_id,
            results=results,
            dry_run=dry_run,
        )
        return restore_report(
            queue.name,
            restored.batches,
            results,
            counted=_COUNTED,
            leases=queue.effective_leases,
            naming=naming(settings, queue),
            reasons={
                Status.CONFLICT: "it exists with other data; --on-conflict skip leaves it, replace "
                "overwrites it"
            },
            extra=lambda: {"rejected": reader.rejected - rejected_before, "imported-before": 0},
            dry_run=dry_run,
        )

    def forget(queues: Iterable[WorkQueue]) -> None:
        if reader.file_id is not None and not (dry_run or reader.is_stopped):
            for queue in queues:
                forget_marks(queue, reader.file_id)

    if reader.header.queue:
        queue = open_queue(settings)
        one = report(queue, reader.lines())
        one.batches = _then(one.batches, lambda: forget([queue]))
        return one
    if settings.given.get("queue"):
        name = "stdin" if file == "-" else escaped(os.fsencode(file))
        raise InvalidArgument(
            f"{name} is an export of several queues, each restored under its own name",
            "leave out -q",
        )
    connection = open_connection(settings)

    def reports() -> Iterator[tuple[str, Batch[Outcome]]]:
        queues: dict[bytes, WorkQueue] = {}
        rejected = 0
        for name, lines in reader.queues():
            queue = WorkQueue(connection, name, holder=settings.holder)
            yield escaped(name), report(queues.setdefault(name, queue), lines, rejected)
            rejected = reader.rejected
        forget(queues.values())
        if rejected < reader.rejected:
            raise InvalidArgument("no line of this export can be used", "see the errors above")

    return Several(reports())


def _then(batches: Iterable[OutcomeBatch], act: Callable[[], object]) -> Iterator[OutcomeBatch]:
    """The batches; after the last, something is done."""
    yield from batches
    act()
