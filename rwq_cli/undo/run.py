"""Restores the contents of an undo file."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.items.move import move_back
from rwq_cli.core.items.restore import (
    Line,
    OnConflict,
    forget_marks,
    has_marks,
    read_marks,
    restore,
)
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.items.set_data import put_back
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.undo.reader import UndoReader

_RESTORED = (
    *(Status.IMPORTED, Status.IMPORTED_BEFORE, Status.ALREADY_THERE, Status.MOVED),
    *(Status.SET, Status.REPLACED),
)


class UndoRun:
    """One run over an undo file, which is closed at its end.

    Attributes:
        results: The outcomes of results, counted.
        restored_before: How many items an earlier run had restored.
        in_doubt: How many items were restored that may not have been removed, or may have been
            restored before.
        lost_marks: True if an undo has begun, and its marks are gone from the server.
        is_complete: True if everything is restored now.
    """

    def __init__(self, reader: UndoReader, queue: WorkQueue, *, dry_run: bool) -> None:
        self._reader = reader
        self._queue = queue
        self._dry_run = dry_run
        self.results = ResultTally()
        self.restored_before = reader.restored_before()
        self.in_doubt = 0
        self.lost_marks = False
        self.is_complete = not reader.rejected

    def batches(self) -> Iterator[OutcomeBatch]:
        """The outcomes of items; reading them does the work."""
        reader = self._reader
        try:
            # Raises if the server is unreachable, before the file says that an undo has begun.
            is_marked = has_marks(self._queue, reader.file_id)
            self.lost_marks = reader.was_begun and not is_marked
            if not self._dry_run:
                reader.begin()
            if reader.origin.written_sha256 is not None:
                yield from self._set_back(reader.origin.written_sha256)
            elif reader.origin.to is not None:
                yield from self._move_back(reader.origin.to)
            else:
                yield from self._restore()
        except ConnectionLost:
            # The last call may have restored something.
            raise
        except ServerError:
            with suppress(ServerError):
                if not has_marks(self._queue, reader.file_id):
                    reader.withdraw()
            raise
        finally:
            reader.close()

    def _restore(self) -> Iterator[OutcomeBatch]:
        reader, queue = self._reader, self._queue
        yield from self._counted(self._restore_lines(reader.front(), front=True))
        yield from self._counted(self._restore_lines(reader.others(), front=False))
        self.is_complete = self.is_complete and not self.results.wrong_type
        if not self._dry_run:
            reader.finish(read_marks(queue, reader.file_id), complete=self.is_complete)
            forget_marks(queue, reader.file_id)

    def _restore_lines(self, lines: Iterable[Line], *, front: bool) -> Iterator[OutcomeBatch]:
        return restore(
            self._queue,
            lines,
            # Only what an import has written: see `Line.replaced_by`.
            on_conflict=OnConflict.REPLACE if self._reader.is_of_import else OnConflict.FAIL,
            front=front,
            file_id=self._reader.file_id,
            results=self.results,
            dry_run=self._dry_run,
        ).batches

    def _move_back(self, moved_to: bytes) -> Iterator[OutcomeBatch]:
        reader = self._reader
        numbers = {line.entry.item_id: line.number for line in reader.items()}
        restored = bytearray(max(numbers.values(), default=0) // 8 + 1)
        moved = move_back(
            self._queue, reader.items, moved_to, file_id=reader.file_id, dry_run=self._dry_run
        ).batches
        for batch in self._counted(moved):
            for item_id in batch.ids_with(*_RESTORED):
                at, bit = divmod(numbers[item_id], 8)
                restored[at] |= 0x80 >> bit
            yield batch
        if not self._dry_run:
            reader.finish(bytes(restored), complete=self.is_complete)
            forget_marks(self._queue, reader.file_id)

    def _set_back(self, written: str) -> Iterator[OutcomeBatch]:
        """Restore data if the item still has the data that replaced it."""
        items = (line.entry for line in self._reader.items())
        edited = ((item, written) for item in items if isinstance(item, ItemSnapshot))
        yield from self._counted(put_back(self._queue, edited, dry_run=self._dry_run).batches)
        if not self._dry_run:
            self._reader.finish(b"", complete=self.is_complete)

    def _counted(self, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
        for batch in batches:
            if batch.count(*_RESTORED) < len(batch):
                self.is_complete = False
            imported = set(batch.ids_with(Status.IMPORTED))
            doubtful = imported if self.lost_marks else imported & self._reader.in_doubt
            self.in_doubt += len(doubtful)
            yield batch
