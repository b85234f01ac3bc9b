"""The undo files of a directory: listing them, choosing one to undo, deleting old ones."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.environment import os_reason
from rwq_cli.input.export_reader import ControlLine, parse_line
from rwq_cli.input.streams import BadRecord
from rwq_cli.output.export_lines import (
    BEGUN_LINE,
    ControlWord,
    ExportHeader,
    Trailer,
    UndoOrigin,
    UndoState,
)
from rwq_cli.undo.directory import UNDONE, list_numbered, lock, open_undo_file
from rwq_cli.undo.run import UndoReader, read_header

OTHERS = "rwq undo --list lists the undo files, and rwq undo N takes one of them"
IN_USE = "another rwq is writing or restoring it"
# The trailer, and an undo that has begun since, are in the last bytes.
_TAIL_BYTES = 4096


class NothingToUndo(RwqError, code="nothing-to-undo"): ...


class UndoEntry(NamedTuple):
    """An undo file. One that cannot be read has no header, and says why; one whose writer was
    killed does not say how much it has."""

    number: int
    path: Path
    time_ms: int
    file_bytes: int
    state: UndoState
    header: ExportHeader | None = None
    items: int | None = 0
    results: int | None = 0
    reason: str | None = None

    @property
    def origin(self) -> UndoOrigin | None:
        return self.header and self.header.origin


def undo_files(directory: Path) -> Iterator[UndoEntry]:
    """List undo files, latest first; the times are those of this machine's clock."""
    # No lock is taken: an undo that runs at the same time must not find its file locked.
    for number, path in list_numbered(directory).items():
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
            _, header = read_header(file, path)
            trailer, has_begun = _read_end(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        return entry._replace(reason=os_reason(error))
    except InvalidArgument as error:
        return entry._replace(reason=error.message.replace(str(path), "it"))
    state = UndoState.UNUSED if trailer is None else trailer.state
    if path.name.endswith(UNDONE):
        state = UndoState.RESTORED
    elif has_begun:
        state = UndoState.BEGUN
    return entry._replace(
        time_ms=(header.origin and header.origin.written_ms) or entry.time_ms,
        header=header,
        items=trailer and trailer.items,
        results=trailer and trailer.results,
        state=state,
    )


def _read_end(file: BinaryIO) -> tuple[Trailer | None, bool]:
    """Return the trailer, if the file ends with one, and whether an undo has begun since."""
    file.seek(max(file.tell(), file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    lines = [b"", b"", *file.read().splitlines(keepends=True)]
    has_begun = lines[-1] == BEGUN_LINE
    return _trailer_of(lines[-2 if has_begun else -1]), has_begun


def _trailer_of(line: bytes) -> Trailer | None:
    with suppress(BadRecord):
        if line.startswith(b'{"closed"') and line.endswith(b"\n"):
            _, entry = parse_line(line)
            if isinstance(entry, ControlLine) and entry.word is ControlWord.CLOSED:
                value = entry.value
                return Trailer(value.items, value.results, value.state)
    return None


def open_latest(
    entries: Iterable[UndoEntry], skipped: Callable[[UndoEntry, str], object]
) -> tuple[UndoEntry, UndoReader]:
    """Open the latest of these undo files that is not restored yet; raise if it is in use.

    Args:
        skipped: Gets the files that cannot be read, with the reasons.
    """
    for entry in entries:
        if entry.reason is not None:
            skipped(entry, entry.reason)
        elif entry.state in (UndoState.UNUSED, UndoState.BEGUN):
            # One in use is no reason to restore an older one: that would undo what nobody meant.
            try:
                reader = UndoReader(entry.path)
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
