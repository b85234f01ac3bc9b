"""`rwq import`: restore an export."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.confirm import confirm, is_confirmed
from rwq_cli.cli.connect import naming, open_connection, queue_handles
from rwq_cli.cli.options import YES_FOR, DryRunOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.removing import open_undo_file, with_undo_file
from rwq_cli.commands.restoring import bad_line, bad_line_reporter, restore_report
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.counting import count_leased
from rwq_cli.core.inspect.report import effective_leases
from rwq_cli.core.items.restore import Line, OnConflict, forget_marks, restore
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.export_file import ExportReader, ExportSource
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import NAMED_FAILURES, Batch, Report, ReportsByQueue

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

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
        ExitStatus.NO: "nothing was imported: every line was rejected or conflicted, or declined",
        ExitStatus.PARTIAL: "some lines were rejected or conflicted, the others were imported",
    },
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
    yes: Annotated[
        bool, option("--yes", f"Do not ask before --on-conflict replace. {YES_FOR}")
    ] = False,
    dry_run: DryRunOption = False,
) -> Report:
    # Before stdin is read.
    settings.check_read_only()
    source = ExportSource(settings.environment, file)
    connection = open_connection(settings)
    if on_conflict is OnConflict.REPLACE and not dry_run and not is_confirmed(settings, yes=yes):
        source = source.repeatable()
        _confirm(settings, connection, source)
    report_line = bad_line_reporter(settings, file)
    rejected: list[str] = []

    def reject(number: int, reason: str) -> None:
        report_line(number, reason)
        if len(rejected) < NAMED_FAILURES:
            rejected.append(bad_line(number, reason))

    reader = ExportReader(source, strict=strict, report=reject)
    return _Import(settings, connection, reader, rejected, on_conflict, dry_run=dry_run).report()


class _Import:
    """An import into one queue, or into each queue of an export of several.

    Args:
        settings: The settings.
        connection: The connection.
        reader: Reads the export.
        rejected: Where the first bad lines are while it is read.
        on_conflict: What is done about other data.
        dry_run: Whether it is a dry run.
    """

    def __init__(
        self,
        settings: Settings,
        connection: "Connection",
        reader: ExportReader,
        rejected: list[str],
        on_conflict: OnConflict,
        *,
        dry_run: bool,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._rejected = rejected
        self._parts = _parts(settings, connection, reader)
        self._on_conflict = on_conflict
        self._dry_run = dry_run

    def report(self) -> Report:
        if not self._reader.header.queue:
            return ReportsByQueue(self._into_several())
        ((queue, lines),) = self._parts
        one = self._into(queue, lines)
        return replace(one, batches=_then(one.batches, lambda: self._forget_marks([queue])))

    def _into_several(self) -> Iterator[tuple[str, Batch[Outcome]]]:
        queues: dict[bytes, WorkQueue] = {}
        rejected = 0
        for queue, lines in self._parts:
            queues.setdefault(queue.name, queue)
            yield escaped(queue.name), self._into(queue, lines, rejected)
            rejected = self._reader.rejected
            self._rejected.clear()
        self._forget_marks(queues.values())
        if rejected < self._reader.rejected:
            raise InvalidArgument("no line of this export can be used", "see the errors above")

    def _into(
        self, queue: WorkQueue, lines: Iterable[Line | Flush], rejected_before: int = 0
    ) -> Batch[Outcome]:
        settings, reader = self._settings, self._reader
        results = ResultTally()
        undo = open_undo_file(settings, queue, "import")
        restored = restore(
            queue,
            lines,
            on_conflict=self._on_conflict,
            file_id=reader.file_id,
            results=results,
            journal=undo if self._on_conflict is OnConflict.REPLACE else None,
            dry_run=self._dry_run,
        )
        batch = restore_report(
            queue.name,
            restored.batches,
            results,
            counted=_COUNTED,
            leases=partial(effective_leases, queue),
            naming=naming(settings, queue, is_prefixed=not reader.header.queue),
            reasons={
                Status.CONFLICT: "it exists with other data; --on-conflict skip leaves it, replace "
                "overwrites it"
            },
            extra=lambda: {"rejected": reader.rejected - rejected_before, "imported-before": 0},
            rejected=self._rejected,
            dry_run=self._dry_run,
        )
        stopped, restored_by_undo = "stopped after replacing some items", "what was replaced"
        return with_undo_file(
            settings, queue, batch, undo, stopped=stopped, restored=restored_by_undo
        )

    def _forget_marks(self, queues: Iterable[WorkQueue]) -> None:
        """Delete the marks by which an interrupted import would resume."""
        if self._reader.file_id is not None and not (self._dry_run or self._reader.is_stopped):
            for queue in queues:
                forget_marks(queue, self._reader.file_id)


def _parts(
    settings: Settings, connection: "Connection", reader: ExportReader
) -> Iterator[tuple[WorkQueue, Iterable[Line | Flush]]]:
    """Each queue to import into, with its lines, which must be read before the next.

    Raises:
        InvalidArgument: No queue is named for an export of one, or one is named for an export of
            several.
    """
    if reader.header.queue:
        handles = queue_handles(settings, connection, [settings.queue], settings.queue_origin)
        yield handles[0], reader.lines()
        return
    if settings.given.get("queue"):
        raise InvalidArgument(
            f"{reader.name} is an export of several queues, each restored under its own name",
            "leave out -q",
        )
    for name, lines in reader.queues():
        yield WorkQueue(connection, name, holder=settings.holder), lines


def _confirm(settings: Settings, connection: "Connection", source: ExportSource) -> None:
    """Ask before items are replaced; see `confirm`. A dry run finds out which they are."""
    reader = ExportReader(source, strict=False, report=lambda _number, _reason: None)
    for queue, lines in _parts(settings, connection, reader):
        outcomes = restore(
            queue, lines, on_conflict=OnConflict.REPLACE, file_id=reader.file_id, dry_run=True
        )
        ids = [each.item_id for each in outcomes if each.status is Status.REPLACED]
        leased = count_leased(queue, ids)
        queue.progress.hide()
        what = f"replace {{}} with what {reader.name} has"
        confirm(settings, what, len(ids), escaped(queue.name), leased=leased)


def _then(batches: Iterable[OutcomeBatch], act: Callable[[], object]) -> Iterator[OutcomeBatch]:
    """The batches; after the last one, `act` is called."""
    yield from batches
    act()
