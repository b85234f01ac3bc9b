"""Undo files: the items that a command removes or changes, written before it does so.

An undo file is an export: items, then results. `rwq undo` is an import of it, which marks restored
lines on the server. An undo of `edit` or `import` replaces only what these have written. In the
file of `complete`, items that a session held are recorded as waiting at the front, because that is
how they are restored. Control lines between the items:

- `"kept": true` cancels the lines of that item above it: it was not removed.
- `"written": text` follows a line of `edit` or `import`: what replaced it, as in `Journal`.
- `"taken": n`: the n items above it that are not cancelled were removed. The items after the last
  such line are in doubt: the writer may have died before removing them.
- `"begun": true`: an undo may have restored any of the lines. It is not part of the file's ID,
  under which the marks on the server are stored.
- `"restored": true` lists the lines that an incomplete undo has restored.
- `"closed": {…}` is the trailer, the last line when the file is written, and again when an undo of
  it has ended: see `Trailer`. A list of files reads no more than it and the header.

Files are numbered, so that no clock decides which is the latest: `7.jsonl`. One that was restored
completely is `7.jsonl.undone`. The process that writes or restores a file holds a lock on it.
Several users may share the directory: a file is for the group, too, if its directory is.
"""

import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import BinaryIO, Self

from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.environment import is_full, os_reason
from rwq_cli.exit_codes import Fault
from rwq_cli.output.export_lines import (
    ControlWord,
    ExportHeader,
    Trailer,
    UndoState,
    control_line,
    entry_line,
    header_line,
    trailer_line,
)
from rwq_cli.output.field import bytes_fields
from rwq_cli.undo.directory import SUFFIX, append, list_numbered, make_directory, sync_directory


class UndoFileError(Fault, code="undo-file"): ...


class UndoJournal(Journal):
    """Writes an undo file, as the journal of a removal; it is created with the first item.

    Lines are written so that they survive a crash of this machine. If that fails, an
    `UndoFileError` is raised, and what was written before is intact. At the end of the block the
    file is closed; an empty one is deleted.

    Attributes:
        path: The file, once it exists.
        items: How many items in it were removed, or may have been.
        results: The same of results.
    """

    def __init__(self, directory: Path, header: Callable[[], ExportHeader]) -> None:
        self.directory, self._header = directory, header
        self._file: BinaryIO | None = None
        self._end = 0
        # Written together with the next lines: a separate write would double the cost.
        self._pending = b""
        self.path: Path | None = None
        self.items = self.results = 0

    def write(
        self, entries: Sequence[ItemSnapshot | Result], replaced_by: Sequence[str] = ()
    ) -> None:
        by: Iterable[str] = replaced_by or repeat("")
        lines = b"".join(
            entry_line(entry) + (control_line(ControlWord.REPLACED_BY, text) if text else b"")
            for entry, text in zip(entries, by, strict=False)
        )
        try:
            if self._file is None:
                self._file = self._open(header_line(self._header()))
            self._append(lines)
        except OSError as error:
            reason = os_reason(error)
            way_out = "make room there, or set" if is_full(error) else "name a directory in"
            raise UndoFileError(
                f"cannot write the undo file {self.path or self.directory}: {reason}",
                f"nothing is removed or changed before it is written: {way_out} RWQ_UNDO_DIR",
            ) from error
        results = sum(isinstance(entry, Result) for entry in entries)
        self.results += results
        self.items += len(entries) - results

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Record that all written items are removed, except these."""
        self.items -= len(kept)
        ids = (bytes_fields("id", item_id) for item_id in kept)
        lines = [control_line(ControlWord.NOT_REMOVED, **fields) for fields in ids]
        lines.append(control_line(ControlWord.REMOVED, self.items))
        self._pending = b"".join(lines)
        if kept:
            # Without these lines an undo finds the items in the queue.
            with suppress(OSError):
                self._append()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, _error: BaseException | None, _traceback: object) -> None:
        if self._file is None or self.path is None:
            return
        if self.items or self.results:
            # Without these lines an undo counts the items as in doubt, and a list reads it all.
            with suppress(OSError):
                self._append(trailer_line(Trailer(self.items, self.results, UndoState.UNUSED)))
        else:
            with suppress(OSError):
                self.path.unlink()
            self.path = None
        self._file.close()
        self._file = None

    def _append(self, lines: bytes = b"") -> None:
        if self._file is not None:
            self._end = append(self._file, self._end, self._pending + lines)
            self._pending = b""

    def _open(self, header: bytes) -> BinaryIO:
        make_directory(self.directory)
        mode = 0o660 if self.directory.stat().st_mode & stat.S_IWGRP else 0o600
        while self.path is None:
            number = max(list_numbered(self.directory), default=0) + 1
            path = self.directory / f"{number}{SUFFIX}"
            # Of two processes, only one gets the number.
            with suppress(FileExistsError):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(path, flags, 0o600)
                self.path = path
        file: BinaryIO = os.fdopen(descriptor, "wb", buffering=0)
        # Whatever the umask is.
        os.fchmod(descriptor, mode)
        # A reader that has the lock has locked an empty file, and closes it.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        self._pending = header
        # The name, too, has to survive a crash.
        sync_directory(self.directory)
        return file
