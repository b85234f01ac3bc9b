"""The undo file of a command that removes or changes items."""

import os

from rwq_cli.cli.connect import command_lines
from rwq_cli.cli.settings import Settings
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import Header, UndoOrigin
from rwq_cli.undo.file import UndoFile, undo_directory


class Undo(UndoFile):
    """The undo file of one run, which ends with its block: `with out, undo:`.

    Args:
        settings: The run's settings.
        queue: The queue that items are removed from or changed in.
        verb: The command.
        to: For `mv`, the queue that they are moved to; else None.
        written_sha256: See `UndoOrigin`.
        stopped: What is said of the file if an error ends the block, so that there is no summary.
        restores: What an undo puts back; empty for all that the summary counts.
    """

    def __init__(
        self,
        settings: Settings,
        queue: WorkQueue,
        verb: str,
        to: bytes | None = None,
        *,
        written_sha256: str | None = None,
        stopped: str = "stopped; items may have been removed",
        restores: str = "",
    ) -> None:
        context = settings.server.context
        name = None if context is None else context.name
        origin = UndoOrigin(verb, queue.connection.address, to, written_sha256, name)
        directory = undo_directory(settings.environment.variables)
        super().__init__(directory, lambda: Header(queue.name, queue.now_ms(), origin))
        self._settings, self._queue = settings, queue
        self._stopped, self._restores = stopped, restores

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        super().__exit__(kind, *rest)
        if kind is not None and issubclass(kind, Exception) and self.path is not None:
            self._settings.environment.error(f"{self._stopped}{self.summary_end()}")

    @property
    def name(self) -> str | None:
        """The file, for JSON; None if there is none."""
        return None if self.path is None else str(self.path)

    def summary_end(self) -> str:
        """The end of the summary: the file, and the command that puts back what is in it."""
        if self.path is None:
            return ""
        what = "puts it back" if self.items == 1 and not self.results else "puts them back"
        if self._restores:
            what = f"puts back {self._restores}"
        command = "rwq undo"
        if not self._settings.target_from_env:
            lines = command_lines(self._settings, self._queue.connection)
            command = lines.of_queue("undo", self._queue.name)
        return f"; undo file {escaped(os.fsencode(self.path))}; {command} {what}"
