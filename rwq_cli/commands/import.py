"""`rwq import`: restore an export."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rwq_cli.cli.confirm import confirm, is_confirmed
from rwq_cli.cli.connect import make_queues, open_connection
from rwq_cli.cli.options import YES_FOR, DryRunOption
from rwq_cli.cli.reports import CHANGED_MEANWHILE, OUTCOME_FIELDS
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, argument, command, option
from rwq_cli.commands.undoing import (
    Undo,
    count_restored_results,
    make_line_reporter,
    make_restoring_kind,
    note_incompleteness,
)
from rwq_cli.core.batches import Flush
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.restore import OnConflict, forget_marks, restore
from rwq_cli.core.keys import is_text
from rwq_cli.core.model import Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.reads import read_facts
from rwq_cli.input.export_reader import ExportReader
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.tally import NAMED_FAILURES

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

_KIND = make_restoring_kind(
    "imported", "already-there", "skipped", "replaced", "conflicts", "rejected"
)
_REASONS: dict[Status, str] = {
    Status.CHANGED: CHANGED_MEANWHILE,
    Status.CONFLICT: "it exists with other data; --on-conflict skip leaves it, replace "
    "overwrites it",
}


class ImportOptions(NamedTuple):
    """The options of the command."""

    settings: Settings
    file: Annotated[str, argument("FILE", "The export; - is stdin.")]
    on_conflict: Annotated[
        OnConflict,
        option(
            "--on-conflict",
            "If an ID exists with other data: fail counts it as a failure, skip leaves it, "
            "replace overwrites it. An existing result stays, except with replace.",
        ),
    ] = OnConflict.FAIL
    strict: Annotated[bool, option("--strict", "Stop at the first bad line.")] = False
    yes: Annotated[bool, option("--yes", f"Do not ask before replacing. {YES_FOR}")] = False
    dry_run: DryRunOption = False

    def asks(self) -> bool:
        """Return whether the user has to agree to what is replaced; raise for a pipe."""
        replaces = self.on_conflict is OnConflict.REPLACE and not self.dry_run
        asks = replaces and not is_confirmed(self.settings, yes=self.yes)
        if asks and not os.path.isfile(self.file):
            raise InvalidArgument(
                "--on-conflict replace asks first, and reads the export beforehand to do so",
                "name a file, or use --yes",
            )
        return asks


@command(
    record=OUTCOME_FIELDS,
    ok="done; items that already exist with the same data are counted",
    no="nothing was imported: declined, or every line was rejected or conflicted",
)
def import_(settings: Settings, importing: ImportOptions) -> ExitStatus:
    """Restore what rwq export wrote: items in their order and states, leases and results with the
    time left. If it is interrupted, running the same import again within a day resumes where it
    stopped. Input from a pipe cannot be resumed: every missing item is imported again, even if it
    was completed in the meantime. An export of several queues is imported without -q.

    rwq import -q jobs jobs.jsonl
    rwq import -q jobs --on-conflict skip jobs.jsonl
    rwq export -q jobs | rwq import -q jobs-copy -
    rwq export --all-queues | rwq import --on-conflict skip -
    """
    # Checked before stdin is read.
    settings.check_read_only()
    connection = open_connection(settings)
    if importing.asks():
        _confirm(settings, connection, importing.file)
    return _Run(importing, connection).restore()


class _Run:
    """One import of an export of one or several queues."""

    def __init__(self, options: ImportOptions, connection: "Connection") -> None:
        self._options, self._connection = options, connection
        settings, file, _, strict, *_ = options
        self._settings = settings
        self._report_line = make_line_reporter(settings, file)
        # The reasons of the first lines of a queue that were rejected.
        self._rejected: list[str] = []
        self._reader = ExportReader(settings.environment, file, strict=strict, report=self._reject)
        # How many lines earlier queues have rejected.
        self._reported = 0
        self._is_one = bool(self._reader.header.queue)
        if not self._is_one:
            settings.out.continue_until_end()
        self._binary_ids = 0

    def _reject(self, number: int, reason: str) -> None:
        self._report_line(number, reason)
        if len(self._rejected) < NAMED_FAILURES:
            self._rejected.append(f"line {number}: {reason}")

    def restore(self) -> ExitStatus:
        settings, reader = self._settings, self._reader
        queues: dict[bytes, WorkQueue] = {}
        for queue, lines in _parts(settings, self._connection, reader):
            queues.setdefault(queue.name, queue)
            self._restore_queue(queue, lines)
        if self._binary_ids:
            settings.environment.note(
                f"note: {human.count(self._binary_ids)} of the IDs are not UTF-8: workers and "
                "cleaners of other languages fail on them; rwq doctor names them"
            )
        if not self._is_one:
            self._forget(queues.values())
        if self._reported < reader.rejected:
            raise InvalidArgument("no line of this export can be used", "see the errors above")
        status = settings.out.end()
        incomplete = note_incompleteness(settings, reader)
        return status or incomplete

    def _restore_queue(self, queue: WorkQueue, lines: Iterable[Line | Flush]) -> None:
        reader, options = self._reader, self._options
        undo = Undo(self._settings, queue, "import", restores="what was replaced")
        results: Counter[Status] = Counter()
        with undo.report(
            _KIND,
            dry_run=options.dry_run,
            reasons=_REASONS,
            name="" if self._is_one else escaped(queue.name),
            rejected=self._rejected,
            extra=lambda: {
                "rejected": reader.rejected - self._reported,
                "imported-before": 0,
                **count_restored_results(results),
            },
        ) as out:
            restored = restore(
                queue,
                lines,
                on_conflict=options.on_conflict,
                file_id=reader.file_id,
                results=results,
                journal=undo if options.on_conflict is OnConflict.REPLACE else None,
                dry_run=options.dry_run,
            )
            for batch in restored.batches:
                out.report_batch(batch)
                imported = batch.ids_with(Status.IMPORTED)
                self._binary_ids += sum(not is_text(item_id) for item_id in imported)
            if self._is_one:
                # If this fails, the error is reported with what was done.
                self._forget([queue])
        out.finish(undo_file=undo.name)
        self._reported = reader.rejected
        self._rejected.clear()

    def _forget(self, queues: Iterable[WorkQueue]) -> None:
        reader = self._reader
        if reader.file_id is not None and not (reader.is_stopped or self._options.dry_run):
            for queue in queues:
                forget_marks(queue, reader.file_id)


def _parts(
    settings: Settings, connection: "Connection", reader: ExportReader
) -> Iterator[tuple[WorkQueue, Iterable[Line | Flush]]]:
    """Yield each queue to import into, with its lines, which must be read before the next."""
    is_one = bool(reader.header.queue)
    if not is_one and settings.common_options.get("queue"):
        raise InvalidArgument(
            f"{reader.name} is an export of several queues, each restored under its own name",
            "leave out -q",
        )
    for queue_name, lines in reader.queues():
        name, origin = (settings.queue if is_one else queue_name), settings.queue_origin
        yield make_queues(settings, connection, [name], origin if is_one else "file")[0], lines


def _confirm(settings: Settings, connection: "Connection", file: str) -> None:
    """Ask before items are replaced; see `confirm`. A dry run finds out which they are."""
    reader = ExportReader(settings.environment, file, strict=False, report=lambda *_: None)
    for queue, lines in _parts(settings, connection, reader):
        outcomes = restore(
            queue, lines, on_conflict=OnConflict.REPLACE, file_id=reader.file_id, dry_run=True
        )
        ids = [outcome.item_id for outcome in outcomes if outcome.status is Status.REPLACED]
        leased = sum(f.has_data and f.session is not None for f in read_facts(queue, ids))
        queue.progress.hide()
        what = f"replace {{}} with what {reader.name} has"
        confirm(settings, what, len(ids), escaped(queue.name), leased=leased)
