"""Undo files of commands that remove or change items, and what import and undo share."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any

from rwq_cli.cli.connect import make_command_lines
from rwq_cli.cli.reports import begin_report, make_outcome_kind, make_record_reporter
from rwq_cli.commands import ExitStatus, Settings, escaped
from rwq_cli.core.errors import ServerError
from rwq_cli.core.model import Outcome, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.input.export_reader import ExportReader
from rwq_cli.output.export_lines import ExportHeader, UndoOrigin
from rwq_cli.output.records import Output
from rwq_cli.output.tally import OutcomeKind
from rwq_cli.undo.directory import default_directory
from rwq_cli.undo.idle import record_idle
from rwq_cli.undo.journal import UndoJournal
from rwq_cli.undo.servers import mark_server


class Undo(UndoJournal):
    """The undo file of one run of a command on a queue, and the outcomes of that run."""

    def __init__(
        self,
        settings: Settings,
        queue: WorkQueue,
        verb: str,
        *,
        restores: str = "",
        to: bytes | None = None,
        to_server: str | None = None,
        to_context: str | None = None,
    ) -> None:
        """Prepare the file of a verb; it is created with the first item.

        Args:
            restores: What an undo puts back, if not all that the summary counts.
            to: The queue that items are moved to, with its server and context if that is another.
        """

        def header() -> ExportHeader:
            context, (mark, now_ms) = settings.server.context, mark_server(queue)
            origin = UndoOrigin(
                verb,
                self._address,
                None if context is None else context.name,
                settings.user_at_host,
                to,
                to_server,
                to_context,
                round(1000 * time()),
                *mark,
            )
            return ExportHeader(queue.name, now_ms, origin)

        super().__init__(find_undo_directory(settings), header)
        self._settings, self._queue, self._restores = settings, queue, restores
        self._verb, self._address, self._is_dry_run = verb, queue.connection.address, False

    @contextmanager
    def report(
        self,
        kind: OutcomeKind[Outcome],
        *,
        dry_run: bool,
        suffix: Callable[[], str] = str,
        **options: Any,
    ) -> Iterator[Output]:
        """Yield the report (see `begin_report`), and close the file at its end."""
        self._is_dry_run = dry_run
        both = lambda: suffix() + self.summary_end()  # noqa: E731
        settings, queue = self._settings, self._queue
        with (
            begin_report(settings, queue, kind, dry_run=dry_run, suffix=both, **options) as out,
            self,
        ):
            yield out

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if self.path is None and not self._is_dry_run:
            place = self.directory, self._address, self._settings.user_at_host
            record_idle(*place, self._verb, escaped(self._queue.name))
        # There is no summary; after other errors, the outcomes say what was done.
        if isinstance(error, ServerError) and self.path is not None:
            line = f"stopped; some of it may be done{self.summary_end()}"
            self._settings.environment.error(line)

    @property
    def name(self) -> str | None:
        return None if self.path is None else str(self.path)

    def summary_end(self) -> str:
        """Return the end of the summary: the file, and the command that puts back what is in it."""
        if self.path is None:
            return ""
        what = "puts it back" if self.items == 1 and not self.results else "puts them back"
        if self._restores:
            what = f"puts back {self._restores}"
        command = "rwq undo"
        if not self._settings.target_from_env:
            lines = make_command_lines(self._settings, self._queue.connection)
            command = lines.of_queue("undo", self._queue.name)
        return f"; undo file {shorten_path(self._settings, self.path)}; {command} {what}"


def find_undo_directory(settings: Settings) -> Path:
    """Return where undo files are: RWQ_UNDO_DIR, else the context's, else the user's directory."""
    if directory := settings.environment.variables.get("RWQ_UNDO_DIR"):
        return Path(directory).expanduser().absolute()
    context = settings.protecting_context
    if context is not None and context.undo_dir is not None:
        return settings.contexts_path.parent / Path(context.undo_dir).expanduser()
    return default_directory(settings.environment.variables)


def shorten_path(settings: Settings, path: Path) -> str:
    name, home = os.fsencode(path), os.fsencode(settings.environment.variables.get("HOME") or "/")
    if home != b"/" and name.startswith(home + b"/"):
        name = b"~" + name.removeprefix(home)
    return escaped(name)


def make_restoring_kind(*counted: str, **names: str) -> OutcomeKind[Outcome]:
    """Return how outcomes of restoring are counted; the first word is what the command does."""
    # `names` maps the name of a status to the word that it is counted as.
    words = {"CONFLICT": "conflicts", "WRONG_TYPE": "rejected", **names}
    return make_outcome_kind(Status.IMPORTED, ())._replace(
        counted=counted,
        names={str(Status[status]): name for status, name in words.items()},
        failed=frozenset(
            ["conflicts", "rejected", "missing", "changed", "not-owner", "results-rejected"]
        ),
        printed=frozenset(["imported", "replaced", "moved", "set", "removed"]),
        successes=frozenset({"results", "results-already-there"}),
    )


def count_restored_results(results: Counter[Status]) -> dict[str, int]:
    return {
        "results": results[Status.IMPORTED] + results[Status.REPLACED],
        "results-already-there": results[Status.ALREADY_THERE],
        "results-rejected": results[Status.WRONG_TYPE],
    }


def note_incompleteness(settings: Settings, reader: ExportReader) -> ExitStatus:
    """Say if an export that was read to its end may not be whole; return the exit code for that."""
    reason = reader.incompleteness()
    if reason is None:
        return ExitStatus.OK
    text, is_sure = reason
    if is_sure:
        settings.environment.error(f"rwq: error: {text}")
        return ExitStatus.PARTIAL
    settings.environment.note(f"rwq: note: {text}")
    return ExitStatus.OK


def make_line_reporter(
    settings: Settings, name: str, consequence: str = "not imported"
) -> Callable[[int, str], None]:
    place = "line" if name == "-" else f"{name}, line"
    report = make_record_reporter(settings, consequence)
    return lambda number, reason: report(place, number, reason)
