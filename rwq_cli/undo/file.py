"""Undo files: what `rm`, `mv` and `purge` took away, written down before they took it.

They lie under the user's state directory and have the form of an export: items, then the results
that were kept of others, with marks among the items:

- `"kept": true` takes the lines of that item above it back: it was not taken away after all.
- `"taken": n` says that the n items above it that were not kept are known to be taken away. What
  stands behind the last of them is in doubt: whoever wrote it may have died before it took it away.
- `"restored": true` says that this item, or this result, was put back, or was there.
- `"tried": true` says that all was tried, and that something is left that could not be put back.

Whoever writes a file or puts it back holds a lock on it, which ends with that process. What was
put back wholly is renamed.
"""

import fcntl
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshot import End, ItemSnapshot
from rwq_cli.output.export_file import (
    TRIED_LINE,
    Header,
    MarkWord,
    header_line,
    kept_line,
    picture_line,
    restored_line,
    result_line,
    result_restored_line,
    taken_line,
)

SUFFIX = ".jsonl"
UNDONE = ".undone"

_NAME_MAX = 60


class UndoFileError(RwqError):
    """The undo file could not be written, so nothing more was taken away."""

    code = "undo-file"


class NothingToUndo(RwqError):
    """There is no undo file that was not put back."""

    code = "nothing-to-undo"


class UndoFileBusy(RwqError):
    """Another rwq is writing the undo file, or putting it back."""

    code = "undo-file-busy"


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
        self.path: Path | None = None
        self.items = 0
        self.results = 0

    def write(self, snapshots: Sequence[ItemSnapshot]) -> None:
        """Write items down, and see them on the disk.

        Raises:
            UndoFileError: That failed. What was written before is still good.
        """
        self._write(b"".join(map(picture_line, snapshots)))
        self.items += len(snapshots)

    def write_results(self, results: Sequence[Result]) -> None:
        """Write results down, and see them on the disk.

        Raises:
            UndoFileError: That failed. What was written before is still good.
        """
        self._write(b"".join(map(result_line, results)))
        self.results += len(results)

    def _write(self, lines: bytes) -> None:
        header = self._header() if self._file is None else None
        try:
            if header is not None:
                lines = header_line(header) + lines
                self._create(header)
            else:
                # Nobody comes here before it is known what became of those before.
                lines = taken_line(self.items) + lines
            self._append(lines)
        except OSError as error:
            self._undo_append()
            self.confirm()
            reason = (error.strerror or str(error)).lower()
            raise UndoFileError(
                f"cannot write the undo file {self.path or self._directory}: {reason}",
                "what is not written down is not taken away: make room there, or set "
                "XDG_STATE_HOME",
            ) from error

    def take_back(self, ids: Sequence[bytes]) -> None:
        """Those items were not taken away after all."""
        self.items -= len(ids)
        # Worth telling, but no reason to stop: at worst an undo finds it changed or there already.
        try:
            self._append(b"".join(map(kept_line, ids)))
        except OSError:
            self._undo_append()

    def confirm(self) -> None:
        """It is known of all items that they were taken away."""
        if self._file is not None and self.items:
            try:
                self._append(taken_line(self.items))
            except OSError:
                self._undo_append()

    def close(self) -> None:
        """Nothing more comes; a file that holds nothing is removed."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if not self.items and not self.results and self.path is not None:
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
        # Some file systems have no locks; and who looks in here now lets go, as it is empty.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
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
    """Reads an undo file, forwards and backwards, without holding its items, under its lock.

    Args:
        path: The file.

    Attributes:
        header: The first line.
        taken: What it says of how the items were taken away.
        rejected: Lines that could not be used, with their numbers and why.
        restored_before: How many items were put back already.
        in_doubt: Items of which it is not known whether they were taken away.
        unrecorded: Why it could not be written down what was put back; None where it was.

    Raises:
        InvalidArgument: It cannot be read, or is no undo file.
        UndoFileBusy: Somebody has its lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rejected: list[tuple[int, str]] = []
        self.unrecorded: str | None = None
        try:
            self._file = self._open()
        except OSError as error:
            raise _unreadable(path, error)
        try:
            self._read()
        except OSError as error:
            self.close()
            raise _unreadable(path, error)
        except RwqError:
            self.close()
            raise

    def _open(self) -> BinaryIO:
        try:
            file: BinaryIO = self.path.open("r+b")
        except OSError as error:
            file = self.path.open("rb")
            self.unrecorded = (error.strerror or str(error)).lower()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UndoFileBusy(
                f"another rwq is writing {self.path} or putting it back", "wait until it has ended"
            )
        except OSError:
            # A file system without locks.
            pass
        return file

    def _read(self) -> None:
        from rwq_cli.input.export_file import parse_header, parse_line
        from rwq_cli.input.files import BadRecord

        self._parse = parse_line
        front, back, results = array("Q"), array("Q"), array("Q")
        # Where it is said last that an item is not to be put back, and which were put back.
        settled_at: dict[bytes, int] = {}
        restored: set[bytes] = set()
        results_restored: set[bytes] = set()
        in_doubt: set[bytes] = set()
        line = self._file.readline()
        self.header = parse_header(line.rstrip(b"\n"), str(self.path))
        # All that a purge took was there before whatever came after it.
        taken = self.header.taken
        ends = (End.NEXT, End.LAST) if taken and taken.verb == "purge" else (End.NEXT,)
        number, start = 1, len(line)
        for line in self._file:
            if not line.endswith(b"\n"):
                # It was killed while it wrote this, and so before it took it away.
                break
            number += 1
            at, start = start, start + len(line)
            try:
                read = parse_line(line)
            except BadRecord as error:
                self.rejected.append((number, str(error)))
                continue
            if isinstance(read, ItemSnapshot):
                (front if read.nearer in ends else back).append(at)
                in_doubt.add(read.item_id)
            elif isinstance(read, Result):
                results.append(at)
            elif read.word is MarkWord.TAKEN:
                in_doubt.clear()
            elif read.word is MarkWord.RESULT_RESTORED and read.item_id is not None:
                results_restored.add(read.item_id)
            elif read.item_id is not None:
                settled_at[read.item_id] = at
                in_doubt.discard(read.item_id)
                if read.word is MarkWord.RESTORED:
                    restored.add(read.item_id)
        if taken is None:
            raise InvalidArgument(
                f"{self.path} is an export and no undo file",
                f"rwq import reads it: rwq import {self.path}",
            )
        self.taken = taken
        # What is moved back is taken from where it was moved to, and so comes but once.
        self.in_doubt = frozenset(in_doubt) if taken.to is None else frozenset()
        self.restored_before = len(restored)
        self._front, self._back, self._settled_at = front, back, settled_at
        self._results, self._results_restored = results, results_restored
        self._end = start

    def is_empty(self) -> bool:
        """Whether nothing was taken away."""
        if self.rejected or self.restored_before or self._results_restored:
            return False
        if next(self.results(), None) is not None:
            return False
        return next(self.last_first(), None) is None and next(self.others(), None) is None

    def last_first(self) -> Iterator[ItemSnapshot]:
        """The items that were nearer to the next end, the last one first."""
        return self._items(reversed(self._front))

    def others(self) -> Iterator[ItemSnapshot]:
        """All other items, in the order in which they were taken away."""
        return self._items(self._back)

    def all(self) -> Iterator[ItemSnapshot]:
        """All items, in the order in which they were taken away."""
        return self._items(sorted((*self._front, *self._back)))

    def results(self) -> Iterator[Result]:
        """The results that were not put back yet, in the order in which they were taken away."""
        for at in self._results:
            self._file.seek(at)
            read = self._parse(self._file.readline())
            if isinstance(read, Result) and read.item_id not in self._results_restored:
                yield read

    def mark_restored(self, ids: Sequence[bytes]) -> None:
        """Write down that these were put back, so that they never are a second time."""
        if ids:
            self._append(b"".join(map(restored_line, ids)))

    def mark_results_restored(self, ids: Sequence[bytes]) -> None:
        """The same, of results."""
        if ids:
            self._append(b"".join(map(result_restored_line, ids)))

    def finish(self, *, complete: bool) -> None:
        """All was tried; it is not the latest any more.

        Args:
            complete: Whether all was put back.
        """
        if complete and self.path.name.endswith(UNDONE):
            return
        if complete:
            try:
                self.path.rename(f"{self.path}{UNDONE}")
            except OSError:
                complete = False
        if not complete:
            self._append(TRIED_LINE)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _append(self, lines: bytes) -> None:
        if self.unrecorded is not None:
            return
        try:
            # What was written in part by whoever was killed must not begin our line.
            os.ftruncate(self._file.fileno(), self._end)
            rest, at = memoryview(lines), self._end
            while rest:
                written = os.pwrite(self._file.fileno(), rest, at)
                rest, at = rest[written:], at + written
            os.fsync(self._file.fileno())
            self._end = at
        except OSError as error:
            # Putting back goes on: it matters more.
            self.unrecorded = (error.strerror or str(error)).lower()
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._end)

    def _items(self, starts: "Iterator[int] | Sequence[int]") -> Iterator[ItemSnapshot]:
        for at in starts:
            self._file.seek(at)
            read = self._parse(self._file.readline())
            if isinstance(read, ItemSnapshot) and self._settled_at.get(read.item_id, -1) < at:
                yield read


def _unreadable(path: Path, error: OSError) -> InvalidArgument:
    reason = (error.strerror or str(error)).lower()
    return InvalidArgument(f"cannot read {path}: {reason}", "check the file's name")


def open_latest(
    directory: Path, queue: bytes | None, skipped: Callable[[Path], object]
) -> UndoReader:
    """The latest undo file that was not put back, nor tried to its end.

    Args:
        directory: Where they lie.
        queue: Only of this queue; None for any.
        skipped: Told of files that are passed over because another rwq is at work on them.

    Raises:
        InvalidArgument: The latest cannot be read.
        NothingToUndo: There is none.
    """
    from rwq_cli.input.export_file import parse_header

    tried = None
    for path in sorted(directory.glob(f"*{SUFFIX}"), reverse=True):
        try:
            line, end = _two_ends(path)
        except OSError as error:
            raise _unreadable(path, error)
        if not line.endswith(b"\n"):
            # Its writer was killed before it took anything away, or has only begun.
            continue
        if queue is not None:
            try:
                if parse_header(line.rstrip(b"\n"), str(path)).queue != queue:
                    continue
            except InvalidArgument:
                continue
        if end.endswith(TRIED_LINE):
            tried = tried or path
            continue
        try:
            reader = UndoReader(path)
        except UndoFileBusy:
            skipped(path)
            continue
        if not reader.is_empty():
            return reader
        reader.close()
    hint = f"undo files lie in {directory}"
    if tried is not None:
        hint = f"what could not be put back is in {tried}; name it to try again"
    raise NothingToUndo("there is nothing to undo", hint)


def _two_ends(path: Path) -> tuple[bytes, bytes]:
    """The first line, and the last bytes."""
    with path.open("rb") as file:
        line = file.readline()
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(TRIED_LINE)))
        return line, file.read()
