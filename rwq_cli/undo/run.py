"""Reading an undo file in the order in which its items are restored, and restoring them."""

from array import array
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from rwq_cli.core.errors import ConnectionLost, InvalidArgument, RwqError, ServerError
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.move import move_back
from rwq_cli.core.items.restore import OnConflict, forget_marks, read_marks, restore
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshots import End, ItemSnapshot
from rwq_cli.environment import os_errors_as, os_reason
from rwq_cli.input.export_reader import ControlLine, parse_header, parse_line
from rwq_cli.input.streams import BadRecord
from rwq_cli.output.export_lines import (
    BEGUN_LINE,
    ControlWord,
    ExportHeader,
    Trailer,
    UndoState,
    control_line,
    trailer_line,
)
from rwq_cli.undo.directory import UNDONE, append, lock, open_undo_file

# No header is longer.
_HEADER_BYTES = 65536


class UndoFileBusy(RwqError, code="undo-file-busy"): ...


def read_header(file: BinaryIO, path: Path) -> tuple[bytes, ExportHeader]:
    """Read the first line of an undo file; raise `InvalidArgument` if it is none."""
    line = file.readline(_HEADER_BYTES)
    if not line:
        raise InvalidArgument(f"{path} is empty")
    if not line.endswith(b"\n"):
        raise InvalidArgument(f"{path} has a header that is cut off")
    header = parse_header(line.rstrip(b"\n"), str(path))
    if header.origin is None:
        raise InvalidArgument(
            f"{path} is an export, not an undo file", f"rwq import reads it: rwq import {path}"
        )
    return line, header


class UndoReader:
    """Reads an undo file under its lock, forwards and backwards, without keeping its items."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Bad lines, each with its number and the reason; and why the file cannot be changed.
        self.rejected: list[tuple[int, str]] = []
        self.unrecorded: str | None = None
        # True if an undo has begun and not ended; and the offset of its line, if we wrote it.
        self.was_begun = False
        self._begun_at: int | None = None
        self._is_undone = path.name.endswith(UNDONE)
        # The offset of each line, by its number; and the numbers of the lines of items that go to
        # the front of main, of other items, and of results.
        self._starts = array("Q", (0, 0))
        self._front, self._back, self._results = array("Q"), array("Q"), array("Q")
        # For each cancelled item, the number of the line that cancels those above it; by the number
        # of a line, what replaced it; and bitmaps of the lines that were restored.
        self._kept: dict[bytes, int] = {}
        self._written: dict[int, str] = {}
        self._restored: list[bytes] = []
        with (
            os_errors_as(InvalidArgument, f"cannot read {path}", "check the file's name"),
            ExitStack() as opened,
        ):
            self._file = opened.enter_context(open_undo_file(path, "r+b"))
            if not lock(self._file):
                raise UndoFileBusy(
                    f"another rwq is writing or restoring {path}",
                    "wait until it ends, or name another file: see rwq undo --list",
                )
            self._read()
            opened.pop_all()

    def _read(self) -> None:
        first, self.header = read_header(self._file, self.path)
        assert self.header.origin is not None
        self.origin = self.header.origin
        digest = sha256(first)
        in_doubt: set[bytes] = set()
        self._end = len(first)
        for number, line in enumerate(self._file, 2):
            if not line.endswith(b"\n"):
                # The writer was killed during this write, so before it removed the item.
                break
            self._starts.append(self._end)
            self._end += len(line)
            self._read_line(number, line, in_doubt)
            if line != BEGUN_LINE:
                digest.update(line)
        # The ID under which lines are marked on the server.
        self.file_id = digest.hexdigest().encode()
        # A moved item is in one of the two queues, and data is compared, so nothing is restored
        # twice.
        is_certain = self.origin.to is not None or self.changed_data
        self.in_doubt = frozenset(() if is_certain else in_doubt)

    def _read_line(self, number: int, line: bytes, in_doubt: set[bytes]) -> None:
        try:
            _, entry = parse_line(line)
        except BadRecord as error:
            self.rejected.append((number, str(error)))
            return
        if isinstance(entry, ItemSnapshot):
            # What a purge removed is older than anything added since.
            is_front = entry.nearer is End.NEXT or (
                entry.nearer is End.LAST and self.origin.verb == "purge"
            )
            (self._front if is_front else self._back).append(number)
            in_doubt.add(entry.item_id)
        elif isinstance(entry, Result):
            self._results.append(number)
        elif entry.word is ControlWord.REMOVED:
            in_doubt.clear()
        elif entry.word is ControlWord.REPLACED_BY:
            self._written[number - 1] = entry.value
        elif entry.word is ControlWord.BEGUN:
            self.was_begun = True
        elif entry.word is ControlWord.RESTORED:
            self.was_begun = False
            self._restored.append(entry.lines)
        elif entry.word is ControlWord.NOT_REMOVED and entry.item_id is not None:
            self._kept[entry.item_id] = number
            in_doubt.discard(entry.item_id)

    @property
    def changed_data(self) -> bool:
        return self.origin.verb in ("edit", "import")

    def parts(self) -> Iterator[tuple[bool, Iterator[Line]]]:
        """Yield the lines to restore, in order, with True if they go to the front of main."""
        yield True, self._lines(reversed(self._front))
        yield False, self._lines(chain(self._back, self._results))

    def items(self, *, restored: bool = False) -> Iterator[Line]:
        return self._lines(sorted((*self._front, *self._back)), restored=restored)

    def _lines(self, numbers: Iterable[int], *, restored: bool = False) -> Iterator[Line]:
        """Yield these lines if they were not restored; with `restored`, those that were."""
        for number in numbers:
            if self._is_restored(number) is restored:
                self._file.seek(self._starts[number])
                _, entry = parse_line(self._file.readline())
                assert not isinstance(entry, ControlLine)
                is_item = isinstance(entry, ItemSnapshot)
                if not is_item or self._kept.get(entry.item_id, 0) < number:
                    # Without a `written` line, nothing has replaced it.
                    written = self._written.get(number, "") if self.changed_data else None
                    yield Line(number, entry, written)

    def _is_restored(self, number: int) -> bool:
        at, bit = divmod(number, 8)
        return self._is_undone or any(
            at < len(lines) and lines[at] & 0x80 >> bit for lines in self._restored
        )

    def count(self, *, restored: bool = False) -> int:
        if self._kept:
            return sum(1 for _ in self.items(restored=restored))
        numbers = chain(self._front, self._back)
        return sum(self._is_restored(number) is restored for number in numbers)

    @property
    def item_count(self) -> int:
        return self.count() + self.count(restored=True)

    def is_done(self) -> bool:
        """Return True if every line could be read, and none is left to restore."""
        return not self.rejected and not any(True for _, part in self.parts() for _ in part)

    def begin(self) -> None:
        if not self.was_begun and not self._is_undone:
            self._begun_at = self._end
            self._append(BEGUN_LINE)

    def withdraw(self) -> None:
        if self._begun_at is not None:
            self._end, self._begun_at = self._begun_at, None
            self._append(b"")

    def finish(self, restored: bytes, *, complete: bool) -> None:
        """Record the end of an undo and a bitmap of the lines that it has restored."""
        # `rwq undo` without a name skips this file from now on.
        if complete and self._is_undone:
            return
        state = UndoState.RESTORED if complete else UndoState.INCOMPLETE
        lines = control_line(ControlWord.RESTORED, lines_b64=b64encode(restored).decode())
        self._append(lines + trailer_line(Trailer(self.item_count, len(self._results), state)))
        if complete:
            with suppress(OSError):
                self.path.rename(f"{self.path}{UNDONE}")

    def _append(self, lines: bytes) -> None:
        if self.unrecorded is None:
            try:
                self._end = append(self._file, self._end, lines)
            except OSError as error:
                self.unrecorded = os_reason(error)

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


_RESTORED = (
    *(Status.IMPORTED, Status.IMPORTED_BEFORE, Status.ALREADY_THERE, Status.MOVED),
    *(Status.SET, Status.REPLACED),
)


class UndoRun:
    def __init__(
        self,
        reader: UndoReader,
        queue: WorkQueue,
        moved_to: WorkQueue,
        *,
        dry_run: bool,
    ) -> None:
        self._reader, self._queue, self._moved_to = reader, queue, moved_to
        self._dry_run = dry_run
        self.results: Counter[Status] = Counter()
        self.restored_before = reader.count(restored=True)
        # How many items were restored that may not have been removed, or may have been restored
        # before; and True if an undo has begun whose marks are gone from the server.
        self.in_doubt, self.lost_marks = 0, False
        # How many were delayed or buried before they were moved, and wait now.
        self.now_waiting = 0
        self.is_complete = not reader.rejected

    def batches(self) -> Iterator[OutcomeBatch]:
        reader, queue = self._reader, self._queue
        try:
            # Raises if the server is unreachable, before the file says that an undo has begun.
            is_marked = bool(read_marks(queue, reader.file_id))
            self.lost_marks = reader.was_begun and not is_marked
            if not self._dry_run:
                reader.begin()
            if reader.origin.to is not None:
                yield from self._move_back()
            else:
                yield from self._restore()
        except ServerError as error:
            # If the connection was lost, the last call may have restored something.
            with suppress(ServerError):
                if not isinstance(error, ConnectionLost) and not read_marks(queue, reader.file_id):
                    reader.withdraw()
            raise
        finally:
            reader.close()

    def _restore(self) -> Iterator[OutcomeBatch]:
        reader, queue = self._reader, self._queue
        # Only what an edit or import has written: see `Line.replaced_by`.
        conflict = OnConflict.REPLACE if reader.changed_data else OnConflict.FAIL
        is_edit = reader.origin.verb == "edit"
        for is_front, lines in reader.parts():
            restored = restore(
                *(queue, lines),
                on_conflict=conflict,
                front=is_front,
                in_place=is_edit,
                file_id=reader.file_id,
                results=self.results,
                dry_run=self._dry_run,
            )
            yield from self._counted(restored.batches)
        self.is_complete = self.is_complete and not self.results[Status.WRONG_TYPE]
        self._finish(lambda: read_marks(queue, reader.file_id))

    def _move_back(self) -> Iterator[OutcomeBatch]:
        reader = self._reader
        numbers: dict[bytes, int] = {}
        scheduled: set[bytes] = set()
        for number, entry, _ in reader.items():
            assert isinstance(entry, ItemSnapshot)
            numbers[entry.item_id] = number
            if entry.state.is_scheduled:
                scheduled.add(entry.item_id)
        restored = bytearray(max(numbers.values(), default=0) // 8 + 1)
        both, file_id = (self._queue, reader.items(), self._moved_to), reader.file_id
        moved = move_back(*both, file_id=file_id, dry_run=self._dry_run)
        for batch in self._counted(moved.batches):
            self.now_waiting += len(scheduled.intersection(batch.ids_with(Status.MOVED)))
            for item_id in batch.ids_with(*_RESTORED):
                at, bit = divmod(numbers[item_id], 8)
                restored[at] |= 0x80 >> bit
            yield batch
        self._finish(lambda: bytes(restored))

    def _finish(self, restored: Callable[[], bytes]) -> None:
        if not self._dry_run:
            self._reader.finish(restored(), complete=self.is_complete)
            forget_marks(self._queue, self._reader.file_id)

    def _counted(self, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
        for batch in batches:
            if batch.count(*_RESTORED) < len(batch):
                self.is_complete = False
            imported = set(batch.ids_with(Status.IMPORTED))
            doubtful = imported if self.lost_marks else imported & self._reader.in_doubt
            self.in_doubt += len(doubtful)
            yield batch
