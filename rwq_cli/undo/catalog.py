"""The undo files of a directory: listing them, opening the latest, deleting old ones."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.environment import os_reason
from rwq_cli.input.export_file import parse_header, parse_line
from rwq_cli.input.files import BadRecord
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import TRIED_LINE, ControlWord
from rwq_cli.undo.file import SUFFIX, UNDONE
from rwq_cli.undo.reader import UndoFileBusy, UndoReader, reading


class NothingToUndo(RwqError):
    """Every undo file was restored, or there is none."""

    code = "nothing-to-undo"


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
        server: The server's URL, without user and password.
        verb: The command that wrote it.
        to: For `mv`, the queue that the items were moved to; else None.
        time_ms: When, by the server's clock, unix ms.
        items: How many items in it were removed or changed, or may have been.
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
    """List the undo files, latest first; other files in the directory are ignored.

    No lock is taken: an undo that runs at the same time must not find its file locked. A file that
    cannot be read is passed to `unreadable`, with the reason.
    """
    for path in _latest_first(directory, SUFFIX, SUFFIX + UNDONE):
        try:
            entry = _read(path, is_counted=True)
            if entry is not None and queue in (None, entry.queue):
                yield entry
        except FileNotFoundError:
            # It was renamed or deleted meanwhile.
            continue
        except OSError as error:
            unreadable(path, os_reason(error))


def _latest_first(directory: Path, *suffixes: str) -> list[Path]:
    return sorted((path for each in suffixes for path in directory.glob(f"*{each}")), reverse=True)


def _read(path: Path, *, is_counted: bool) -> UndoEntry | None:
    """Read an undo file; None if it is none, or its writer has not yet removed anything.

    Unless it is counted, only its two ends are read: then it has no items, and is incomplete or
    unused.
    """
    state, items, results = UndoState.UNUSED, 0, 0
    with path.open("rb") as file:
        first = file.readline()
        try:
            header = parse_header(first.rstrip(b"\n"), str(path))
        except InvalidArgument:
            return None
        if (origin := header.origin) is None or not first.endswith(b"\n"):
            return None
        if not is_counted:
            file.seek(max(len(first), os.fstat(file.fileno()).st_size - len(TRIED_LINE)))
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


def open_latest(
    directory: Path,
    queue: bytes | None,
    is_here: Callable[[str], bool],
    skipped: Callable[[Path], object],
) -> UndoReader:
    """Open the latest undo file of a queue, or of any, that is not restored yet.

    Those of servers that are not here are passed over, and so are those in use, which are passed to
    `skipped`.

    Raises:
        InvalidArgument: The latest cannot be read.
        NothingToUndo: There is none; the hint names another one, if there is.
    """
    # The latest of each kind that is passed over.
    tried: Path | None = None
    elsewhere: UndoEntry | None = None
    other_queue: bytes | None = None
    for path in _latest_first(directory, SUFFIX):
        with reading(path):
            entry = _read(path, is_counted=False)
        if entry is None:
            continue
        is_wanted, is_local = queue in (None, entry.queue), is_here(entry.server)
        if entry.state is UndoState.INCOMPLETE:
            tried = tried or (path if is_wanted and is_local else None)
        elif not is_wanted:
            other_queue = other_queue or (entry.queue if is_local else None)
        elif not is_local:
            elsewhere = elsewhere or entry
        else:
            try:
                reader = UndoReader(path)
            except UndoFileBusy:
                skipped(path)
                continue
            if not reader.is_done():
                return reader
            reader.close()
    message = "there is nothing to undo" + ("" if queue is None else f" in {escaped(queue)}")
    hint = f"undo files are in {directory}"
    if other_queue is not None:
        hint = f"-q {escaped(other_queue)} restores the latest of this server"
    if elsewhere is not None:
        message = (
            f"there is nothing to undo on this server; {elsewhere.path} was written for "
            f"{elsewhere.server}"
        )
        hint = "name that server with -u, or use --anywhere"
    if tried is not None:
        hint = f"{tried} has items that could not be restored; name it to try again"
    raise NothingToUndo(message, hint)


def delete(path: Path, *, dry_run: bool) -> bool:
    """Delete an undo file; False if another rwq is writing or restoring it.

    Raises:
        OSError: It cannot be deleted.
    """
    # Another process may have deleted it.
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if dry_run else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # The file system has no locks.
            pass
        if not dry_run:
            path.unlink()
    return True
