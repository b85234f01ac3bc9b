"""Reading an undo file in the order in which its items have to be restored."""

import fcntl
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.restore import Line
from rwq_cli.core.state.snapshot import End, ItemSnapshot
from rwq_cli.environment import os_reason
from rwq_cli.input.export_file import parse_header, parse_line
from rwq_cli.input.files import BadRecord
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import (
    BEGUN_LINE,
    TRIED_LINE,
    ControlLine,
    ControlWord,
    Header,
    control_line,
)
from rwq_cli.undo.file import SUFFIX, UNDONE


class NothingToUndo(RwqError):
    """Every undo file was restored, or there is none."""

    code = "nothing-to-undo"


class UndoFileBusy(RwqError):
    """Another rwq is writing or restoring the undo file."""

    code = "undo-file-busy"


class UndoReader:
    """Reads an undo file, forwards and backwards, without holding its items, under its lock.

    Args:
        path: The file.

    Attributes:
        header: The first line.
        origin: What removed the items, from the header.
        file_id: The SHA-256 of its complete lines except `BEGUN_LINE`, in hexadecimal.
        was_begun: Whether an undo has begun that did not end.
        rejected: Bad lines, each with its number and the reason.
        in_doubt: Items that may not have been removed.
        unrecorded: Why the file cannot be changed; None if it can.

    Raises:
        InvalidArgument: It cannot be read, or is not an undo file.
        UndoFileBusy: Another process holds its lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rejected: list[tuple[int, str]] = []
        self.in_doubt: frozenset[bytes] = frozenset()
        self.unrecorded: str | None = None
        self.was_begun = False
        self._begun_at: int | None = None
        # The offset of each line, by line number.
        self._starts = array("Q", (0,))
        # The numbers of the lines of items that go to the front of main, of the others, of results.
        self._front, self._back, self._results = array("Q"), array("Q"), array("Q")
        # For each cancelled item, the number of the line that cancels those above it.
        self._kept: dict[bytes, int] = {}
        # By the number of a line, what replaced it.
        self._written: dict[int, str] = {}
        self._restored = b""
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
            self.unrecorded = os_reason(error)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UndoFileBusy(
                f"another rwq is writing or restoring {self.path}", "wait until it ends"
            )
        except OSError:
            # A file system without locks.
            pass
        return file

    def _read(self) -> None:
        digest = sha256()
        in_doubt: set[bytes] = set()
        start = 0
        for number, line in enumerate(self._file, 1):
            self._starts.append(start)
            if number == 1:
                self.header = parse_header(line.rstrip(b"\n"), str(self.path))
            elif not line.endswith(b"\n"):
                # The writer was killed during this write, so before it removed the item.
                break
            else:
                self._read_line(number, line, in_doubt)
            if line != BEGUN_LINE:
                digest.update(line)
            start += len(line)
        else:
            if not start:
                self.header = parse_header(b"", str(self.path))
        if self.header.origin is None:
            raise InvalidArgument(
                f"{self.path} is an export, not an undo file",
                f"rwq import reads it: rwq import {self.path}",
            )
        self.origin = self.header.origin
        self.file_id = digest.hexdigest().encode()
        # A moved item is in one of the two queues, so it cannot be restored twice.
        self.in_doubt = frozenset(in_doubt) if self.origin.to is None else frozenset()
        self._end = start

    def _read_line(self, number: int, line: bytes, in_doubt: set[bytes]) -> None:
        try:
            entry = parse_line(line)
        except BadRecord as error:
            self.rejected.append((number, str(error)))
            return
        if isinstance(entry, ItemSnapshot):
            # What a purge removed is older than anything added since.
            is_purge = self.header.origin is not None and self.header.origin.verb == "purge"
            ends = (End.NEXT, End.LAST) if is_purge else (End.NEXT,)
            (self._front if entry.nearer in ends else self._back).append(number)
            in_doubt.add(entry.item_id)
        elif isinstance(entry, Result):
            self._results.append(number)
        elif entry.word is ControlWord.REMOVED:
            in_doubt.clear()
        elif entry.word is ControlWord.REPLACED_BY:
            self._written[number - 1] = entry.written
        elif entry.word is ControlWord.BEGUN:
            self.was_begun = True
        elif entry.word is ControlWord.RESTORED:
            self.was_begun = False
            self._restored = _either(self._restored, entry.lines)
        elif entry.item_id is not None:
            self._kept[entry.item_id] = number
            in_doubt.discard(entry.item_id)

    @property
    def is_of_import(self) -> bool:
        """Whether the items were replaced by an import, and not removed."""
        return self.origin.verb == "import"

    def front(self) -> Iterator[Line]:
        """The items to put at the front of main, the last one first."""
        return self._lines(reversed(self._front))

    def others(self) -> Iterator[Line]:
        """All other items, in the order in which they were removed, then the results."""
        yield from self._lines(self._back)
        yield from self._lines(self._results)

    def items(self) -> Iterator[Line]:
        """All items, in the order in which they were removed."""
        return self._lines(sorted((*self._front, *self._back)))

    def _lines(self, numbers: Iterable[int], *, restored: bool = False) -> Iterator[Line]:
        """The lines with these numbers that were not restored; with `restored`, those that were."""
        for number in numbers:
            if self._is_restored(number) is restored:
                self._file.seek(self._starts[number])
                entry = parse_line(self._file.readline())
                assert not isinstance(entry, ControlLine)
                is_item = isinstance(entry, ItemSnapshot)
                if not is_item or self._kept.get(entry.item_id, 0) < number:
                    # Without that line, nothing has replaced it.
                    written = self._written.get(number, "") if self.is_of_import else None
                    yield Line(number, entry, written)

    def _is_restored(self, number: int) -> bool:
        if self.path.name.endswith(UNDONE):
            return True
        at, bit = divmod(number, 8)
        return at < len(self._restored) and bool(self._restored[at] & 0x80 >> bit)

    def restored_before(self) -> int:
        """How many items are restored according to the file."""
        return sum(1 for _ in self._lines((*self._front, *self._back), restored=True))

    def is_done(self) -> bool:
        """Whether no line is left to restore, and every line could be read."""
        left = next(self.items(), None) or next(self.others(), None)
        return not self.rejected and left is None

    def begin(self) -> None:
        """Record that an undo begins, which only the marks on the server can continue."""
        if not self.was_begun and not self.path.name.endswith(UNDONE):
            self._begun_at = self._end
            self._append(BEGUN_LINE)

    def withdraw(self) -> None:
        """Cancel `begin`, because nothing was restored."""
        if self._begun_at is not None:
            self._cut(self._begun_at)

    def finish(self, restored: bytes, *, complete: bool) -> None:
        """Record the end of an undo: `rwq undo` without a name skips this file from now on.

        Args:
            restored: A bitmap of the lines that are restored.
            complete: Whether all are.
        """
        if complete:
            if self.path.name.endswith(UNDONE):
                return
            with suppress(OSError):
                self.path.rename(f"{self.path}{UNDONE}")
                return
        lines = control_line(
            ControlLine(ControlWord.RESTORED, lines=_either(self._restored, restored))
        )
        self._append(lines + TRIED_LINE)

    def _append(self, lines: bytes) -> None:
        if self.unrecorded is not None:
            return
        try:
            # Remove a partial line.
            os.ftruncate(self._file.fileno(), self._end)
            self._file.seek(self._end)
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._end += len(lines)
        except OSError as error:
            self.unrecorded = os_reason(error)
            self._cut(self._end)

    def _cut(self, end: int) -> None:
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), end)
            self._end = end

    def close(self) -> None:
        """Close the file and release its lock."""
        with suppress(OSError):
            self._file.close()


def _either(one: bytes, other: bytes) -> bytes:
    """The bits that are set in one of two bitmaps, or in both."""
    length = max(len(one), len(other))
    padded = (int.from_bytes(bits.ljust(length, b"\0")) for bits in (one, other))
    return (next(padded) | next(padded)).to_bytes(length)


def _unreadable(path: Path, error: OSError) -> InvalidArgument:
    reason = os_reason(error)
    return InvalidArgument(f"cannot read {path}: {reason}", "check the file's name")


@dataclass(slots=True)
class _Others:
    """The latest undo files that `open_latest` passes over.

    Attributes:
        queue: The queue of the latest one of another queue on this server.
        elsewhere: The latest one of another server, and that server.
        tried: The latest one that could not be restored completely.
    """

    queue: bytes | None = None
    elsewhere: tuple[Path, str | None] | None = None
    tried: Path | None = None

    def nothing_to_undo(self, directory: Path, queue: bytes | None) -> NothingToUndo:
        """The error for a directory without a file to restore, with a hint at one of these."""
        where = "" if queue is None else f" in {escaped(queue)}"
        message, hint = f"there is nothing to undo{where}", f"undo files are in {directory}"
        if self.queue is not None:
            hint = f"-q {escaped(self.queue)} restores the latest of this server"
        if self.elsewhere is not None:
            path, server = self.elsewhere
            message = f"there is nothing to undo on this server; {path} was written for {server}"
            hint = "name that server with -u, or use --anywhere"
        if self.tried is not None:
            hint = f"{self.tried} has items that could not be restored; name it to try again"
        return NothingToUndo(message, hint)


def open_latest(
    directory: Path,
    queue: bytes | None,
    is_here: Callable[[str], bool] | None,
    skipped: Callable[[Path], object],
) -> UndoReader:
    """Open the latest undo file that is not restored yet.

    Args:
        directory: The directory of undo files.
        queue: The queue; None for any.
        is_here: Returns whether a server is the current one; None for any server.
        skipped: Called for files that are skipped because another rwq uses them.

    Raises:
        InvalidArgument: The latest cannot be read.
        NothingToUndo: There is none.
    """
    others = _Others()
    for path in sorted(directory.glob(f"*{SUFFIX}"), reverse=True):
        try:
            line, end = _two_ends(path)
        except OSError as error:
            raise _unreadable(path, error)
        if not line.endswith(b"\n"):
            # Its writer was killed before it removed anything, or has just started.
            continue
        header = _header(line, path)
        was_tried = end.endswith(TRIED_LINE)
        server = header.origin.server if header is not None and header.origin is not None else None
        is_far = is_here is not None and server is not None and not is_here(server)
        if queue is not None and (header is None or header.queue != queue):
            if header is not None and not (others.queue or is_far or was_tried):
                others.queue = header.queue
            continue
        if is_far:
            if others.elsewhere is None and not was_tried:
                others.elsewhere = path, server
            continue
        if was_tried:
            others.tried = others.tried or path
            continue
        try:
            reader = UndoReader(path)
        except UndoFileBusy:
            skipped(path)
            continue
        if not reader.is_done():
            return reader
        reader.close()
    raise others.nothing_to_undo(directory, queue)


def _header(line: bytes, path: Path) -> Header | None:
    """The header in this line, or None."""
    try:
        return parse_header(line.rstrip(b"\n"), str(path))
    except InvalidArgument:
        return None


def _two_ends(path: Path) -> tuple[bytes, bytes]:
    """The first line, and the last bytes."""
    with path.open("rb") as file:
        line = file.readline()
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(TRIED_LINE)))
        return line, file.read()
