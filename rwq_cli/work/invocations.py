"""What to run for an item: the command with its arguments, its environment and its input."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock

from rwq_cli.core.work.job import Job
from rwq_cli.environment import os_reason
from rwq_cli.output.field import bytes_fields, to_json
from rwq_cli.work.programs import CannotRun, Invocation
from rwq_cli.work.template import CommandTemplate, Input
from rwq_cli.work.variables import Variables


class DataFiles:
    """The temporary files of `--input file`, in a directory that goes with the worker.

    Args:
        parent: The directory in which that directory is made.
    """

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self._directory: bytes | None = None
        self._count = 0
        self._lock = Lock()

    def next_path(self) -> bytes:
        """The path of the next file."""
        directory = self._directory or os.fsencode(os.path.join(self._parent, "rwq-work"))
        return os.path.join(directory, b"%d" % (self._count + 1))

    def write(self, data: bytes) -> bytes:
        """Write a file; returns its path.

        Raises:
            CannotRun: It cannot be written.
        """
        path = b""
        try:
            with self._lock:
                if self._directory is None:
                    made = tempfile.mkdtemp(prefix="rwq-work-", dir=self._parent)
                    self._directory = os.fsencode(made)
            with self._lock:
                path = self.next_path()
                self._count += 1
            with open(path, "wb") as file:
                file.write(data)
        except OSError as error:
            self.remove(path)
            reason = os_reason(error)
            raise CannotRun(
                f"cannot write the data of an item into {self._parent}: {reason}",
                "TMPDIR names the directory of temporary files",
            )
        return path

    def remove(self, path: bytes) -> None:
        """Remove a file; its command may have done so."""
        with suppress(OSError):
            os.unlink(path)

    def close(self) -> None:
        """Remove the directory."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


class Invocations:
    """Makes the invocation for an item, or for a batch of them.

    Args:
        template: The command; without words, the data names a task.
        program: The path of the command's program.
        task_dir: The directory of the tasks; None for a command.
        variables: The environment.
        files: The files of `--input file`.
        is_batch: Whether a command gets several items, as JSON lines.

    Attributes:
        mark: An entry in the environment of every command; see `Variables`.
    """

    def __init__(
        self,
        template: CommandTemplate,
        *,
        program: bytes | None,
        task_dir: bytes | None,
        variables: Variables,
        files: DataFiles,
        is_batch: bool,
    ) -> None:
        self._template = template
        self._program = program
        self._task_dir = task_dir
        self._variables = variables
        self._is_batch = is_batch
        self.files = files
        self.mark = variables.mark

    def file_for(self, items: Sequence[Job]) -> bytes | None:
        """Write the data to a file if the command reads one; returns its path.

        Raises:
            CannotRun: It cannot be written.
        """
        if self._template.input is not Input.FILE:
            return None
        return self.files.write(items[0].data)

    def of(self, items: Sequence[Job], file: bytes | None) -> Invocation:
        """The invocation for these items of one queue; one item, unless it is a batch.

        Args:
            items: The items.
            file: What `file_for` returned.

        Raises:
            BadArguments: The data names no task.
        """
        first = items[0]
        variables = self._variables.of(items, is_batch=self._is_batch)
        stdin = first.data if self._template.input is Input.STDIN else None
        if self._task_dir is not None:
            # Imports msgspec, which other work does not need.
            from rwq_cli.work.tasks import read_task

            task = read_task(self._task_dir, first.data)
            words = [task.program, *task.arguments]
            return Invocation(task.program, words, variables, stdin)
        assert self._program is not None
        if self._is_batch:
            lines = b"".join(map(_line, items))
            return Invocation(self._program, list(self._template.words), variables, lines)
        words = self._template.arguments(first.item_id, first.data, file or b"")
        return Invocation(self._program, words, variables, stdin)


def _line(item: Job) -> bytes:
    """An item of a batch: a JSON object on a line."""
    record = {
        **bytes_fields("queue", item.queue),
        **bytes_fields("id", item.item_id),
        "attempt": item.attempt,
        "returns": item.returns,
        "last": item.is_last,
        **bytes_fields("data", item.data),
    }
    return to_json(record) + b"\n"
