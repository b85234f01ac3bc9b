"""Undo files: what `rm`, `mv` and `purge` took away, written down before they took it.

They lie under the user's state directory and have the form of an export. A line `"kept": true`
takes the lines of that item above it back: it was not taken away after all. What was put back is
renamed.
"""

import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.pictures import End, Picture
from rwq_cli.exportfile import Header, header_line, kept_line, picture_line

SUFFIX = ".jsonl"
UNDONE = ".undone"

_NAME_MAX = 60


class UndoFileError(RwqError):
    """The undo file could not be written, so nothing more was taken away."""

    code = "undo-file"


class NothingToUndo(RwqError):
    """There is no undo file that was not put back."""

    code = "nothing-to-undo"


def undo_directory(variables: Mapping[str, str]) -> Path:
    """Where undo files lie: `$XDG_STATE_HOME/rwq/undo`, or `~/.local/state/rwq/undo`."""
    from rwq_cli.local.directory import default_directory

    return default_directory(variables).parent / "undo"


class UndoFile:
    """Writes an undo file; it is made when there is something to write.

    Args:
        directory: Where.
        header: What to write into its first line; asked for then.
    """

    def __init__(self, directory: Path, header: Callable[[], Header]) -> None:
        self._directory = directory
        self._header = header
        self._file: BinaryIO | None = None
        self._end = 0
        self._kept = 0
        self.path: Path | None = None
        self.items = 0

    def write(self, pictures: Sequence[Picture]) -> None:
        """Write items down, and see them on the disk.

        Raises:
            UndoFileError: That failed. What was written before is still good.
        """
        lines = b"".join(map(picture_line, pictures))
        header = self._header() if self._file is None else None
        try:
            if header is not None:
                lines = header_line(header) + lines
                self._create(header)
            self._append(lines)
        except OSError as error:
            self._undo_append()
            reason = (error.strerror or str(error)).lower()
            raise UndoFileError(
                f"cannot write the undo file {self.path or self._directory}: {reason}",
                "what is not written down is not taken away: make room there, or set "
                "XDG_STATE_HOME",
            ) from error
        self.items += len(pictures)

    def take_back(self, ids: Sequence[bytes]) -> None:
        """Those items were not taken away after all."""
        self.items -= len(ids)
        # Worth telling, but no reason to stop: at worst an undo finds it changed or there already.
        with suppress(OSError):
            self._append(b"".join(map(kept_line, ids)))

    def close(self) -> None:
        """Nothing more comes; a file that holds nothing is removed."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if not self.items and self.path is not None:
                with suppress(OSError):
                    self.path.unlink()
                self.path = None

    def _create(self, header: Header) -> None:
        assert header.taken is not None
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        queue = re.sub(r"[^A-Za-z0-9._{}-]", "_", header.queue.decode("utf-8", "replace"))
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        name = f"{now}-{header.taken.verb}-{queue[:_NAME_MAX]}-{os.getpid()}{SUFFIX}"
        path = self._directory / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file, self.path = os.fdopen(descriptor, "wb", buffering=0), path
        # The name, too, has to outlast a crash.
        folder = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _append(self, lines: bytes) -> None:
        assert self._file is not None
        rest = memoryview(lines)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())
        self._end += len(lines)

    def _undo_append(self) -> None:
        """Cut off what was written in part."""
        if self._file is not None:
            with suppress(OSError):
                self._file.truncate(self._end)
                self._file.seek(self._end)
            if not self._end:
                self.close()


class UndoReader:
    """Reads an undo file, forwards and backwards, without holding its items.

    Args:
        path: The file.

    Attributes:
        header: The first line.
        taken: What it says of how the items were taken away.
        rejected: Lines that could not be used, with their numbers and why.

    Raises:
        InvalidArgument: It cannot be read, or is no undo file.
    """

    def __init__(self, path: Path) -> None:
        from rwq_cli.reading.exports import parse_header, parse_line
        from rwq_cli.reading.records import BadRecord

        self.path = path
        self.rejected: list[tuple[int, str]] = []
        self._parse = parse_line
        front, back = array("Q"), array("Q")
        kept_at: dict[bytes, int] = {}
        try:
            self._file = path.open("rb")
            line = self._file.readline()
            self.header = parse_header(line.rstrip(b"\n"), str(path))
            # All that a purge took was there before whatever came after it.
            taken = self.header.taken
            ends = (End.NEXT, End.LAST) if taken and taken.verb == "purge" else (End.NEXT,)
            number, start = 1, len(line)
            for line in self._file:
                number += 1
                at, start = start, start + len(line)
                if not line.endswith(b"\n"):
                    # It was killed while it wrote this, and so before it took it away.
                    break
                try:
                    read = parse_line(line)
                except BadRecord as error:
                    self.rejected.append((number, str(error)))
                    continue
                if isinstance(read, Picture):
                    (front if read.nearer in ends else back).append(at)
                else:
                    kept_at[read] = at
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidArgument(f"cannot read {path}: {reason}", "check the file's name")
        if self.header.taken is None:
            raise InvalidArgument(
                f"{path} is an export and no undo file", f"rwq import reads it: rwq import {path}"
            )
        self.taken = self.header.taken
        self._front, self._back, self._kept_at = front, back, kept_at

    def last_first(self) -> Iterator[Picture]:
        """The items that were nearer to the next end, the last one first."""
        return self._items(reversed(self._front))

    def others(self) -> Iterator[Picture]:
        """All other items, in the order in which they were taken away."""
        return self._items(self._back)

    def all(self) -> Iterator[Picture]:
        """All items, in the order in which they were taken away."""
        return self._items(sorted((*self._front, *self._back)))

    def mark_undone(self) -> None:
        """Rename the file, so that it is not put back a second time."""
        with suppress(OSError):
            self.path.rename(f"{self.path}{UNDONE}")

    def _items(self, starts: "Iterator[int] | Sequence[int]") -> Iterator[Picture]:
        for at in starts:
            self._file.seek(at)
            read = self._parse(self._file.readline())
            if isinstance(read, Picture) and self._kept_at.get(read.item_id, -1) < at:
                yield read


def latest_undo_file(directory: Path, queue: bytes | None) -> Path:
    """The latest undo file that was not put back.

    Args:
        directory: Where they lie.
        queue: Only of this queue; None for any.

    Raises:
        NothingToUndo: There is none.
    """
    from rwq_cli.reading.exports import parse_header

    for path in sorted(directory.glob(f"*{SUFFIX}"), reverse=True):
        if queue is None:
            return path
        with suppress(InvalidArgument, OSError), path.open("rb") as file:
            if parse_header(file.readline().rstrip(b"\n"), str(path)).queue == queue:
                return path
    raise NothingToUndo(
        "there is nothing to undo", f"undo files lie in {directory}; name one to put it back again"
    )
