"""`rwq undo`: put back what rm, mv or purge took away."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.options import DryRunOption, NullIdsOption
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.putting import put_report, report_bad_line, result_counts
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.all_results import ResultTally
from rwq_cli.core.items.importing import OnConflict
from rwq_cli.core.items.results import Result
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Report
from rwq_cli.undo.file import UndoReader, open_latest, undo_directory

app = CommandModule()

_DONE = (Status.IMPORTED, Status.MOVED)


@app.command(
    help="Put back what rm, mv or purge took away: the latest that was not tried yet, or was "
    "interrupted, or what FILE holds. Items come back as they were, and never twice; waiting ones "
    "at the end of the queue that they were nearer to; what was moved comes back to the end, if "
    "nobody has touched it.",
    examples=("rwq undo --dry-run", "rwq undo", "rwq undo -q jobs -o json"),
    exits={
        ExitStatus.NO: "nothing was put back: there is no undo file, or every item is in conflict",
        ExitStatus.PARTIAL: "some items were not put back; the file is kept, and taken again "
        "by its name",
    },
)
def undo(
    settings: Settings,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The undo file. Else the latest, with -q of that queue."
        ),
    ] = None,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Also on another server than they were taken from.")
    ] = False,
    dry_run: DryRunOption = False,
    null: NullIdsOption = False,
) -> Report:
    wanted = settings.queue if settings.given.get("queue") else None
    reader = _open(settings, file, wanted)
    try:
        queue = _queue_of(settings, reader, wanted, anywhere=anywhere)
    except Exception:
        reader.close()
        raise
    bad_line = report_bad_line(settings, str(reader.path))
    for number, why in reader.rejected:
        bad_line(number, why)
    run = _Run(reader, dry_run=dry_run)
    verb = reader.taken.verb
    return put_report(
        queue.name,
        run.marking(_put_back(reader, queue, run.results, dry_run=dry_run)),
        words=dict.fromkeys(_DONE, "restored"),
        counted=("restored", "already-there", "conflicts", "rejected"),
        rejected=lambda: len(reader.rejected),
        dry_run=dry_run,
        null_separated=null,
        fields={"verb": verb, "undo_file": str(reader.path)},
        extra=run.counts,
        suffix=lambda: f"; {verb} of {escaped(queue.name)}, from {_shown(reader.path)}{run.rest()}",
    )


def _open(settings: Settings, file: Path | None, wanted: bytes | None) -> UndoReader:
    if file is not None:
        return UndoReader(file)

    def skipped(path: Path) -> None:
        settings.environment.note(
            f"rwq: another rwq is writing {_shown(path)} or putting it back; passed over"
        )

    return open_latest(undo_directory(settings.environment.variables), wanted, skipped)


def _queue_of(
    settings: Settings, reader: UndoReader, wanted: bytes | None, *, anywhere: bool
) -> WorkQueue:
    """The queue that the items were taken from, if it is the one that is meant."""
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
    return WorkQueue(connection, header.queue, holder=settings.holder)


def _shown(path: Path) -> str:
    return escaped(str(path).encode("utf-8", "surrogateescape"))


def _put_back(
    reader: UndoReader, queue: WorkQueue, results: ResultTally, *, dry_run: bool
) -> Iterator[OutcomeBatch]:
    to = reader.taken.to
    if to is not None:
        return queue.take_back(reader.all, to, dry_run=dry_run).batches
    pushes: tuple[tuple[Iterator[ItemSnapshot | Result], bool], ...] = (
        (reader.last_first(), True),
        (reader.others(), False),
        (reader.results(), False),
    )
    return chain.from_iterable(
        queue.put(
            entries,
            on_conflict=OnConflict.FAIL,
            at_front=at_front,
            results=results,
            dry_run=dry_run,
        ).batches
        for entries, at_front in pushes
    )


# Imported, already there, moved.
_PUT_BACK = frozenset("ihv")


class _Results(ResultTally):
    """Counts results that are put back, and writes down which.

    Args:
        reader: The undo file.
        dry_run: Whether nothing is changed.
    """

    def __init__(self, reader: UndoReader, *, dry_run: bool) -> None:
        super().__init__()
        self._reader = reader
        self._dry_run = dry_run

    def add(self, batch: OutcomeBatch) -> None:
        super().add(batch)
        if not self._dry_run:
            letters = zip(batch.ids, batch.letters, strict=True)
            done = [item_id for item_id, letter in letters if letter in _PUT_BACK]
            self._reader.mark_results_restored(done)


class _Run:
    """One run of putting back, which writes down how far it came.

    Args:
        reader: The undo file.
        dry_run: Whether nothing is changed.
    """

    def __init__(self, reader: UndoReader, *, dry_run: bool) -> None:
        self._reader = reader
        self._dry_run = dry_run
        self._complete = not reader.rejected
        self._in_doubt = 0
        self.results = _Results(reader, dry_run=dry_run)

    def marking(self, batches: Iterator[OutcomeBatch]) -> Iterator[OutcomeBatch]:
        """The batches; each is written down when it is put back, and so is the end."""
        reader = self._reader
        try:
            for batch in batches:
                letters = dict(zip(batch.ids, batch.letters, strict=True))
                done = [item_id for item_id, letter in letters.items() if letter in _PUT_BACK]
                self._complete = self._complete and len(done) == len(letters)
                self._in_doubt += sum(letters[i] == "i" for i in reader.in_doubt & letters.keys())
                if not self._dry_run:
                    reader.mark_restored(done)
                yield batch
            self._complete = self._complete and not self.results.refused
            if not self._dry_run:
                reader.finish(complete=self._complete)
        finally:
            reader.close()

    def counts(self) -> dict[str, int]:
        """What is counted besides the outcomes."""
        return {
            "restored-before": self._reader.restored_before,
            "in-doubt": self._in_doubt,
            **result_counts(self.results),
        }

    def rest(self) -> str:
        """What else is to be said at the end."""
        said = ""
        if self._in_doubt:
            verb = self._reader.taken.verb
            said += (
                f"; in doubt: {verb} ended before it knew whether it had taken them, so a worker "
                "may have completed them"
            )
        if not self._dry_run and not self._complete:
            said += "; what was not put back is taken again only by that name"
        if not self._dry_run and self._reader.unrecorded is not None:
            said += f"; what was put back could not be written there: {self._reader.unrecorded}"
        return said
