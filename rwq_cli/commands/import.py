"""`rwq import`: restore an export."""

from collections.abc import Iterator
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import NULL_IDS, DryRunOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.restoring import report_bad_line, restore_report
from rwq_cli.core.items.importing import OnConflict, forget_marks
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.export_file import ExportReader
from rwq_cli.output.report import Report

app = CommandModule()

_COUNTED = ("imported", "already-there", "skipped", "replaced", "conflicts", "rejected")


@app.command(
    "import",
    help="Restore what rwq export wrote: items in their order and states, leases and results with "
    "the time left. If it is interrupted, running the same import again within a day resumes where "
    "it stopped. Input from a pipe cannot be resumed: every missing item is imported again, even "
    "if it was completed in the meantime.",
    examples=(
        "rwq import -q jobs jobs.jsonl",
        "rwq import -q jobs --on-conflict skip jobs.jsonl",
        "rwq export -q jobs | rwq import -q jobs-copy -",
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
    queue = open_queue(settings)
    reader = ExportReader(
        settings.environment, file, strict=strict, report=report_bad_line(settings, file)
    )
    results = ResultTally()

    def batches() -> Iterator[OutcomeBatch]:
        yield from queue.restore(
            reader.lines(),
            on_conflict=on_conflict,
            file_id=reader.file_id,
            results=results,
            dry_run=dry_run,
        ).batches
        if reader.file_id is not None and not (dry_run or reader.is_stopped):
            forget_marks(queue, reader.file_id)

    return restore_report(
        queue.name,
        batches(),
        results,
        counted=_COUNTED,
        leases=queue.effective_leases,
        reasons={
            Status.CONFLICT: "it exists with other data; --on-conflict skip leaves it, replace "
            "overwrites it"
        },
        extra=lambda: {"rejected": reader.rejected, "imported-before": 0},
        dry_run=dry_run,
    )
