"""The undo files of a directory: listing them, choosing one to undo or redo, deleting old ones."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.probe import ItemSnapshot
from rwq_cli.environment import os_reason
from rwq_cli.input.export_file import parse_header, parse_line
from rwq_cli.input.streams import BadRecord
from rwq_cli.output.export_file import ControlWord, UndoOrigin
from rwq_cli.undo.file import REDO, UNDONE, lock, numbered, open_undo_file
from rwq_cli.undo.run import UndoFileBusy, UndoReader

_OTHERS = "rwq undo --list lists the undo files, and rwq undo N takes one of them"


class NothingToUndo(RwqError, code="nothing-to-undo"): ...


class UndoState(StrEnum):
    UNUSED = "unused"
    # An undo is running or was interrupted; or it has ended without restoring everything.
    BEGUN = "begun"
    INCOMPLETE = "incomplete"
    RESTORED = "restored"
    REDONE = "redone"


_STATE_AFTER = {
    ControlWord.BEGUN: UndoState.BEGUN,
    ControlWord.TRIED: UndoState.INCOMPLETE,
    ControlWord.REDONE: UndoState.REDONE,
}


class UndoEntry(NamedTuple):
    """An undo file; its times are those of the server, `undone_ms` is 0 if it was not undone."""

    number: int
    path: Path
    queue: bytes
    origin: UndoOrigin
    time_ms: int
    items: int
    results: int
    state: UndoState
    undone_ms: int
    file_bytes: int


def undo_files(directory: Path, unreadable: Callable[[Path, str], object]) -> Iterator[UndoEntry]:
    """List undo files, latest first; `unreadable` gets those that cannot be read, with reasons."""
    # No lock is taken: an undo that runs at the same time must not find its file locked.
    for number, path in numbered(directory).items():
        try:
            if (entry := _read(number, path)) is not None:
                yield entry
        except FileNotFoundError:
            # It was renamed or deleted meanwhile.
            continue
        except OSError as error:
            unreadable(path, os_reason(error))


def _read(number: int, path: Path) -> UndoEntry | None:
    """Read an undo file; None if it is none, or its writer has not yet removed anything."""
    state, undone_ms, items, results = UndoState.UNUSED, 0, 0, 0
    with open_undo_file(path) as file:
        first = file.readline()
        try:
            header = parse_header(first.rstrip(b"\n"), str(path))
        except InvalidArgument:
            return None
        if (origin := header.origin) is None or not first.endswith(b"\n"):
            return None
        for line in file:
            # Most lines; parsing them would take many times as long.
            if line.startswith(b'{"id'):
                items += line.endswith(b"\n")
                continue
            try:
                _, entry = parse_line(line)
            except BadRecord:
                continue
            if isinstance(entry, ItemSnapshot):
                items += 1
            elif isinstance(entry, Result):
                results += 1
            else:
                items -= entry.word is ControlWord.NOT_REMOVED
                state = _STATE_AFTER.get(entry.word, state)
                undone_ms = entry.value if entry.word is ControlWord.TRIED else undone_ms
        size = file.tell()
    if path.name.endswith(UNDONE) and state is not UndoState.REDONE:
        state = UndoState.RESTORED
    what = number, path, header.queue, origin, header.exported_ms
    return UndoEntry(*what, items, results, state, undone_ms, size)


def open_latest(entries: Iterable[UndoEntry], skipped: Callable[[Path], object]) -> UndoReader:
    """Open the latest of these undo files that is not restored yet, and not in use."""
    for entry in entries:
        if entry.state in (UndoState.UNUSED, UndoState.BEGUN):
            try:
                reader = UndoReader(entry.path)
            except UndoFileBusy:
                skipped(entry.path)
                continue
            if not reader.is_done():
                return reader
            reader.close()
    raise NothingToUndo("there is nothing to undo here", _OTHERS)


def open_undone(entries: Iterable[UndoEntry]) -> UndoReader:
    done = (UndoState.RESTORED, UndoState.INCOMPLETE)
    undone = [entry for entry in entries if entry.state in done]
    if not undone:
        raise NothingToUndo("there is no undo to undo here", _OTHERS)
    return UndoReader(max(undone, key=lambda entry: entry.undone_ms).path)


def redo_file(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix(UNDONE)}{REDO}")


def delete(path: Path, *, dry_run: bool) -> bool:
    # Another process may have deleted it.
    with suppress(FileNotFoundError), open_undo_file(path) as file:
        if not lock(file):
            return False
        if not dry_run:
            path.unlink()
            for each in path.parent.glob(f"{redo_file(path).name}*"):
                each.unlink()
    return True
