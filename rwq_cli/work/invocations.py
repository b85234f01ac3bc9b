"""What to run for an item: the command with its arguments, its environment and its input."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rwq_cli.core.work.job import Job
from rwq_cli.environment import os_reason
from rwq_cli.output.field import bytes_fields, to_json
from rwq_cli.work.programs import CannotRun, Invocation
from rwq_cli.work.template import CommandTemplate, Input
from rwq_cli.work.variables import Variables


class Invocations:
    """Makes the invocation for an item, or for a batch of them.

    Args:
        template: The command; without words, the data names a task.
        program: The path of the command's program.
        task_dir: The directory of the tasks; None for a command.
        variables: The environment.
        file_directory: The directory of the files of `--input file`.
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
        file_directory: str,
        is_batch: bool,
    ) -> None:
        self._template = template
        self._program = program
        self._task_dir = task_dir
        self._variables = variables
        self._is_batch = is_batch
        self._file_directory = file_directory
        self.mark = variables.mark

    @contextmanager
    def file_for(self, items: Sequence[Job]) -> Iterator[bytes | None]:
        """In the block, a file that holds the data; None if the command reads none.

        Raises:
            CannotRun: It cannot be written.
        """
        if self._template.input is not Input.FILE:
            yield None
            return
        path = None
        try:
            try:
                fd, path = tempfile.mkstemp(prefix="rwq-work-", dir=self._file_directory)
                with open(fd, "wb") as file:
                    file.write(items[0].data)
            except OSError as error:
                raise CannotRun(
                    f"cannot write the data of an item into {self._file_directory}: "
                    f"{os_reason(error)}",
                    "TMPDIR names the directory of temporary files",
                )
            yield os.fsencode(path)
        finally:
            # The command may have removed it.
            with suppress(OSError, TypeError):
                os.unlink(path)  # type: ignore[arg-type]

    @property
    def planned_file(self) -> bytes:
        """What is shown as the path of the file in a dry run."""
        return os.fsencode(os.path.join(self._file_directory, "rwq-work"))

    def of(self, items: Sequence[Job], file: bytes | None) -> Invocation:
        """The invocation for these items of one queue; one item, unless it is a batch.

        Args:
            items: The items.
            file: What `file_for` gives.

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
