"""The undo files of a directory: listing them, choosing one to undo, deleting old ones."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.environment import os_reason
from rwq_cli.input.export_reader import parse_header, parse_line
from rwq_cli.input.streams import BadRecord
from rwq_cli.output.export_lines import (
    BEGUN_LINE,
    ControlWord,
    ExportHeader,
    Trailer,
    UndoOrigin,
    UndoState,
)
from rwq_cli.undo.directory import UNDONE, lock, numbered, open_undo_file
from rwq_cli.undo.run import UndoFileBusy, UndoReader

OTHERS = "rwq undo --list lists the undo files, and rwq undo N takes one of them"
IN_USE = "another rwq is writing or restoring it"
# The trailer, and an undo that has begun since, are in the last bytes; and how long a header is.
_TAIL_BYTES, _HEADER_BYTES = 4096, 65536


class NothingToUndo(RwqError, code="nothing-to-undo"): ...


class UndoEntry(NamedTuple):
    """An undo file. One that cannot be read has no header, and says why."""

    number: int
    path: Path
    time_ms: int
    file_bytes: int
    state: UndoState
    header: ExportHeader | None = None
    items: int = 0
    results: int = 0
    reason: str | None = None

    @property
    def origin(self) -> UndoOrigin | None:
        return self.header and self.header.origin


def undo_files(directory: Path) -> Iterator[UndoEntry]:
    """List undo files, latest first; the times are those of this machine's clock."""
    # No lock is taken: an undo that runs at the same time must not find its file locked.
    for number, path in numbered(directory).items():
        # It may be renamed or deleted meanwhile.
        with suppress(FileNotFoundError):
            yield _read(number, path)


def _read(number: int, path: Path) -> UndoEntry:
    status = path.stat()
    entry = UndoEntry(
        number, path, status.st_mtime_ns // 10**6, status.st_size, UndoState.UNREADABLE
    )
    try:
        with open_undo_file(path) as file:
            header = _read_header(file, path)
            trailer = _read_trailer(file) or _count(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        return entry._replace(reason=os_reason(error))
    except InvalidArgument as error:
        return entry._replace(reason=error.message.replace(str(path), "it"))
    state = UndoState.RESTORED if path.name.endswith(UNDONE) else trailer.state
    time_ms = (header.origin and header.origin.written_ms) or entry.time_ms
    return entry._replace(
        time_ms=time_ms, header=header, items=trailer.items, results=trailer.results, state=state
    )


def _read_header(file: BinaryIO, path: Path) -> ExportHeader:
    line = file.readline(_HEADER_BYTES)
    if not line:
        raise InvalidArgument("it is empty")
    if not line.endswith(b"\n"):
        raise InvalidArgument("its header is cut off")
    header = parse_header(line.rstrip(b"\n"), str(path))
    if header.origin is None:
        raise InvalidArgument("it is an export, not an undo file")
    return header


def _read_trailer(file: BinaryIO) -> Trailer | None:
    """Return the trailer, if the file ends with one; an undo may have begun since."""
    start, end = file.tell(), file.seek(0, os.SEEK_END)
    file.seek(max(start, end - _TAIL_BYTES))
    lines = [b"", b"", *file.read().splitlines(keepends=True)]
    has_begun = lines[-1] == BEGUN_LINE
    trailer = _trailer_of(lines[-2 if has_begun else -1])
    file.seek(start)
    return trailer and trailer._replace(state=UndoState.BEGUN if has_begun else trailer.state)


def _trailer_of(line: bytes) -> Trailer | None:
    with suppress(BadRecord):
        if line.startswith(b'{"closed"') and line.endswith(b"\n"):
            _, entry = parse_line(line)
            if not isinstance(entry, ItemSnapshot | Result) and entry.word is ControlWord.CLOSED:
                value = entry.value
                return Trailer(value.items, value.results, value.state)
    return None


def _count(file: BinaryIO) -> Trailer:
    """Count what the rest of a file has, whose writer was killed."""
    counts = Trailer(0, 0, UndoState.UNUSED)
    for line in file:
        # Most lines; parsing them would take many times as long.
        if line.startswith(b'{"id'):
            counts = counts._replace(items=counts.items + line.endswith(b"\n"))
            continue
        try:
            _, entry = parse_line(line)
        except BadRecord:
            continue
        if isinstance(entry, ItemSnapshot):
            counts = counts._replace(items=counts.items + 1)
        elif isinstance(entry, Result):
            counts = counts._replace(results=counts.results + 1)
        elif entry.word is ControlWord.NOT_REMOVED:
            counts = counts._replace(items=counts.items - 1)
        elif entry.word is ControlWord.BEGUN:
            counts = counts._replace(state=UndoState.BEGUN)
        elif entry.word is ControlWord.CLOSED:
            counts = counts._replace(state=entry.value.state)
    return counts


def open_latest(
    entries: Iterable[UndoEntry], skipped: Callable[[UndoEntry, str], object]
) -> tuple[UndoEntry, UndoReader]:
    """Open the latest of these undo files that is not restored yet, and not in use.

    Args:
        skipped: Gets the files that cannot be read or are in use, with the reasons.
    """
    for entry in entries:
        if entry.reason is not None:
            skipped(entry, entry.reason)
        elif entry.state in (UndoState.UNUSED, UndoState.BEGUN):
            try:
                reader = UndoReader(entry.path)
            except UndoFileBusy:
                skipped(entry, IN_USE)
                continue
            except InvalidArgument:
                # Another rwq has restored it meanwhile, and renamed it.
                if entry.path.exists():
                    raise
                continue
            if not reader.is_done():
                return entry, reader
            reader.close()
    raise NothingToUndo("there is nothing to undo here", OTHERS)


def delete(path: Path, *, dry_run: bool) -> bool:
    """Delete a file; return False if another rwq uses it."""
    # Another process may have deleted it.
    with suppress(FileNotFoundError), open_undo_file(path) as file:
        if not lock(file):
            return False
        if not dry_run:
            path.unlink()
    return True
