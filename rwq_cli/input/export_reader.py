"""Reading a whole export, from a file or stdin."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from hashlib import sha256
from itertools import groupby
from typing import BinaryIO, NamedTuple, cast

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.restore import Line
from rwq_cli.environment import Environment, os_errors_as
from rwq_cli.input.export_file import parse_header, parse_line, parse_line_of_queue
from rwq_cli.input.streams import BadRecord, chunks, open_input, split
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.export_file import ControlLine

_CHUNK_BYTES = 1 << 20


def file_id_of(file: BinaryIO) -> bytes | None:
    """The SHA-256 of the rest of a file, in hexadecimal; None if it is not a file."""
    descriptor = file.fileno()
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    digest, at = sha256(), os.lseek(descriptor, 0, os.SEEK_CUR)
    while chunk := os.pread(descriptor, _CHUNK_BYTES, at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest().encode()


class ExportSource(NamedTuple):
    """The file of an export, `-` for stdin; or a copy of what was read from it."""

    environment: Environment
    file: str
    copy: BinaryIO | None = None

    @property
    def name(self) -> str:
        return "stdin" if self.file == "-" else escaped_text(self.file)

    def open(self) -> AbstractContextManager[BinaryIO]:
        if self.copy is not None:
            self.copy.seek(0)
            return nullcontext(self.copy)
        return open_input(self.environment, self.file)

    def repeatable(self) -> "ExportSource":
        """The same, for reading it twice: a copy on the disk unless it is a file with a name."""
        if self.file != "-" and os.path.isfile(self.file):
            return self
        from tempfile import TemporaryFile

        with (
            self.open() as stream,
            os_errors_as(
                InvalidArgument,
                f"cannot copy {self.name} to a temporary file",
                "import a file with a name, or set TMPDIR",
            ),
        ):
            copy = cast(BinaryIO, TemporaryFile())  # noqa: SIM115
            for chunk in chunks(self.environment, stream):
                if not isinstance(chunk, Flush):
                    copy.write(chunk)
            copy.flush()
        return self._replace(copy=copy)


class ExportReader:
    """Reads an export, and counts its bad lines; with `strict`, it stops at the first."""

    # `report` takes each: its number, from 1 for the header, and the reason.
    def __init__(
        self, source: ExportSource, *, strict: bool, report: Callable[[int, str], None]
    ) -> None:
        self.name = source.name
        self._strict = strict
        self._report = report
        self.rejected = 0
        self.is_stopped = False
        self._open = ExitStack()
        stream = self._open.enter_context(source.open())
        try:
            self.file_id = file_id_of(stream)
        except (OSError, AttributeError):
            # Not a file, or reading it will fail again, with a better error.
            self.file_id = None
        self._lines = _numbered(split(source.environment, stream, b"\n", is_json=True))
        first = next((entry for entry in self._lines if not isinstance(entry, Flush)), (1, b""))
        self.header = parse_header(first[1], self.name)

    def lines(self) -> Iterator[Line | Flush]:
        """The items and results of the one queue, in order; see `_entries`."""
        return (each if isinstance(each, Flush) else each[1] for each in self._entries())

    def queues(self) -> Iterator[tuple[bytes, Iterator[Line | Flush]]]:
        """Each queue whose lines follow, with these lines, which must be read before the next."""
        queue = b""

        def queue_of(each: tuple[bytes, Line] | Flush) -> bytes:
            nonlocal queue
            if not isinstance(each, Flush):
                queue = each[0]
            return queue

        for name, entries in groupby(self._entries(), queue_of):
            if name:
                yield name, (each if isinstance(each, Flush) else each[1] for each in entries)

    def _entries(self) -> Iterator[tuple[bytes, Line] | Flush]:
        """The items and results with their queues; a `FLUSH` if there is nothing more for now."""
        # A result that has no expiry gets the usual one.
        queue = self.header.queue
        with self._open:
            for line in self._lines:
                if isinstance(line, Flush):
                    yield line
                    continue
                number, text = line
                try:
                    if self.header.queue:
                        entry = parse_line(text)
                    else:
                        queue, entry = parse_line_of_queue(text)
                except BadRecord as error:
                    self.rejected += 1
                    self._report(number, str(error))
                    if self._strict:
                        self.is_stopped = True
                        return
                    continue
                if isinstance(entry, ControlLine):
                    continue
                if isinstance(entry, Result) and entry.ttl_ms is None:
                    # Something else removed its expiry; rwq stores no result without one.
                    entry = entry._replace(ttl_ms=round(1000 * RESULT_TTL_S))
                yield queue, Line(number, entry)


def _numbered(groups: Iterable[list[bytes] | Flush]) -> Iterator[tuple[int, bytes] | Flush]:
    """Lines with their numbers from 1, without empty ones."""
    number = 0
    for group in groups:
        if isinstance(group, Flush):
            yield group
            continue
        for line in group:
            number += 1
            if line:
                yield number, line
