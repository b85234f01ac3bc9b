"""Undo files of commands that remove or change items, and what import and undo share."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rwq_cli.cli.connect import command_lines
from rwq_cli.cli.outcomes import bad_record_reporter, kind_of, outcomes_of
from rwq_cli.commands import Settings, escaped
from rwq_cli.core.errors import ServerError
from rwq_cli.core.model import Outcome, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.export_file import Header, UndoOrigin
from rwq_cli.output.outcomes import Kind, Outcomes
from rwq_cli.undo.file import UndoFile, undo_directory


class Undo(UndoFile):
    """The undo file of one run of a command on a queue, and the outcomes of that run."""

    # `restores` is what an undo puts back, if not all that the summary counts, and `origin` what
    # else the header says.
    def __init__(
        self,
        settings: Settings,
        queue: WorkQueue,
        verb: str,
        *,
        restores: str = "",
        path: Path | None = None,
        **origin: Any,
    ) -> None:
        context = settings.server.context
        server = (queue.connection.address, None if context is None else context.name)
        written = UndoOrigin(verb, *server, settings.user_at_host, **origin)
        directory = undo_directory(settings.environment.variables)
        super().__init__(directory, lambda: Header(queue.name, queue.now_ms(), written), path)
        self._settings, self._queue, self._restores = settings, queue, restores

    @contextmanager
    def outcomes(
        self, kind: Kind[Outcome], *, suffix: Callable[[], str] = str, **options: Any
    ) -> Iterator[Outcomes[Outcome]]:
        """Yield what shows the outcomes (see `outcomes_of`), and close the file at the end."""

        def end() -> str:
            return suffix() + self.summary_end()

        with outcomes_of(self._settings, self._queue, kind, suffix=end, **options) as out, self:
            yield out

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        # There is no summary; after other errors, the outcomes say what was done.
        if isinstance(error, ServerError) and self.path is not None:
            line = f"stopped; some of it may be done{self.summary_end()}"
            self._settings.environment.error(line)

    @property
    def name(self) -> str | None:
        return None if self.path is None else str(self.path)

    def summary_end(self) -> str:
        """Return the end of the summary: the file, and the command that puts back what is in it."""
        if self.path is None or self.path == self._chosen:
            return ""
        what = "puts it back" if self.items == 1 and not self.results else "puts them back"
        if self._restores:
            what = f"puts back {self._restores}"
        command = "rwq undo"
        if not self._settings.target_from_env:
            lines = command_lines(self._settings, self._queue.connection)
            command = lines.of_queue("undo", self._queue.name)
        return f"; undo file {short_path(self._settings, self.path)}; {command} {what}"


def short_path(settings: Settings, path: Path) -> str:
    shown, home = os.fsencode(path), os.fsencode(settings.environment.variables.get("HOME") or "/")
    if home != b"/" and shown.startswith(home + b"/"):
        shown = b"~" + shown.removeprefix(home)
    return escaped(shown)


def restoring_kind(*counted: str, **names: str) -> Kind[Outcome]:
    """Return how outcomes of restoring are counted; the first word is what the command does."""
    # `names` maps the name of a status to the word that it is counted as.
    known = {"CONFLICT": "conflicts", "WRONG_TYPE": "rejected", **names}
    return kind_of(Status.IMPORTED, ())._replace(
        counted=counted,
        names={str(Status[status]): name for status, name in known.items()},
        failed=frozenset(
            ["conflicts", "rejected", "missing", "changed", "not-owner", "results-rejected"]
        ),
        shown=frozenset(["imported", "replaced", "moved", "set", "removed"]),
        successes=frozenset({"results", "results-already-there"}),
    )


def results_restored(results: Counter[Status]) -> dict[str, int]:
    return {
        "results": results[Status.IMPORTED] + results[Status.REPLACED],
        "results-already-there": results[Status.ALREADY_THERE],
        "results-rejected": results[Status.WRONG_TYPE],
    }


def bad_line_reporter(settings: Settings, name: str) -> Callable[[int, str], None]:
    place = "line" if name == "-" else f"{name}, line"
    report = bad_record_reporter(settings, "not imported")
    return lambda number, reason: report(place, number, reason)
