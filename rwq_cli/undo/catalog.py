"""Listing undo files, and deleting old ones."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.environment import os_reason
from rwq_cli.input.export_file import parse_header, parse_line
from rwq_cli.input.files import BadRecord
from rwq_cli.output.export_file import ControlWord
from rwq_cli.undo.file import SUFFIX, UNDONE


class UndoState(StrEnum):
    """How far an undo file is restored."""

    UNUSED = "unused"
    # An undo has begun; it is running or was interrupted.
    BEGUN = "begun"
    # An undo has ended without restoring everything.
    INCOMPLETE = "incomplete"
    RESTORED = "restored"


_STATE_AFTER = {
    ControlWord.BEGUN: UndoState.BEGUN,
    ControlWord.RESTORED: UndoState.INCOMPLETE,
    ControlWord.TRIED: UndoState.INCOMPLETE,
}


class UndoEntry(NamedTuple):
    """An undo file.

    Attributes:
        path: The file.
        queue: The queue of its items.
        server: The server's URL, without user and password.
        verb: The command that wrote it.
        to: For `mv`, the queue that the items were moved to; else None.
        time_ms: When, by the server's clock, unix ms.
        items: How many items in it were removed or changed, or may have been.
        results: How many results are in it.
        state: How far it is restored.
        file_bytes: Its size.
    """

    path: Path
    queue: bytes
    server: str
    verb: str
    to: bytes | None
    time_ms: int
    items: int
    results: int
    state: UndoState
    file_bytes: int


def undo_files(
    directory: Path, queue: bytes | None, unreadable: Callable[[Path, str], object]
) -> Iterator[UndoEntry]:
    """The undo files, latest first; other files in the directory are ignored.

    No lock is taken: an undo that runs at the same time must not find its file locked.

    Args:
        directory: The directory of undo files.
        queue: The queue; None for all.
        unreadable: Called with a file that cannot be read, and the reason.
    """
    paths = (
        path for pattern in (SUFFIX, SUFFIX + UNDONE) for path in directory.glob(f"*{pattern}")
    )
    for path in sorted(paths, reverse=True):
        try:
            entry = _read(path)
        except FileNotFoundError:
            # It was renamed or deleted meanwhile.
            continue
        except OSError as error:
            unreadable(path, os_reason(error))
            continue
        if entry is not None and queue in (None, entry.queue):
            yield entry


def _read(path: Path) -> UndoEntry | None:
    state, items, results = UndoState.UNUSED, 0, 0
    with path.open("rb") as file:
        first = file.readline()
        try:
            header = parse_header(first.rstrip(b"\n"), str(path))
        except InvalidArgument:
            return None
        if header.origin is None:
            return None
        for line in file:
            # Most lines; parsing them would take many times as long.
            if line.startswith(b'{"id'):
                items += line.endswith(b"\n")
                continue
            try:
                entry = parse_line(line)
            except BadRecord:
                continue
            if isinstance(entry, ItemSnapshot):
                items += 1
            elif isinstance(entry, Result):
                results += 1
            elif entry.word is ControlWord.NOT_REMOVED:
                items -= 1
            else:
                state = _STATE_AFTER.get(entry.word, state)
        size = file.tell()
    if path.name.endswith(UNDONE):
        state = UndoState.RESTORED
    origin = header.origin
    return UndoEntry(
        path=path,
        queue=header.queue,
        server=origin.server,
        verb=origin.verb,
        to=origin.to,
        time_ms=header.exported_ms,
        items=items,
        results=results,
        state=state,
        file_bytes=size,
    )


def delete(path: Path, *, dry_run: bool) -> bool:
    """Delete an undo file.

    Args:
        path: The file.
        dry_run: Whether to leave it, and only say whether it could be deleted.

    Raises:
        OSError: It cannot be deleted.

    Returns:
        False if another rwq is writing or restoring it.
    """
    with path.open("rb") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if dry_run else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # The file system has no locks.
            pass
        if not dry_run:
            with suppress(FileNotFoundError):
                path.unlink()
        return True
