"""Restores the contents of an undo file, or removes or changes again what was restored."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.move import move, move_back
from rwq_cli.core.items.remove import remove
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
from rwq_cli.core.state.expected import Expected, fingerprint
from rwq_cli.core.state.probe import ItemSnapshot
from rwq_cli.undo.reader import UndoReader

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
        journal: Journal,
        *,
        dry_run: bool,
    ) -> None:
        self._reader, self._queue, self._moved_to = reader, queue, moved_to
        self._journal, self._dry_run = journal, dry_run
        self.results = ResultTally()
        self.restored_before = reader.count(restored=True)
        # How many items were restored that may not have been removed, or restored before.
        self.in_doubt = 0
        # Whether an undo has begun, and its marks are gone from the server.
        self.lost_marks = False
        self.is_complete = not reader.rejected

    def batches(self) -> Iterator[OutcomeBatch]:
        reader, queue = self._reader, self._queue
        try:
            # Raises if the server is unreachable, before the file says that an undo has begun.
            is_marked = has_marks(queue, reader.file_id)
            self.lost_marks = reader.was_begun and not is_marked
            if not self._dry_run:
                reader.begin()
            if reader.origin.to is not None:
                yield from self._move_back()
            else:
                yield from self._restore()
        except ConnectionLost:
            # The last call may have restored something.
            raise
        except ServerError:
            with suppress(ServerError):
                if not has_marks(queue, reader.file_id):
                    reader.withdraw()
            raise
        finally:
            reader.close()

    def _restore(self) -> Iterator[OutcomeBatch]:
        reader, queue = self._reader, self._queue
        if reader.origin.verb == "edit":
            edited = ((_item(line), line.replaced_by or "") for line in reader.items())
            put = put_back(queue, edited, self._journal, dry_run=self._dry_run)
            yield from self._counted(put.batches)
        else:
            yield from self._counted(self._restore_lines(reader.front(), front=True))
            yield from self._counted(self._restore_lines(reader.others(), front=False))
        self.is_complete = self.is_complete and not self.results.wrong_type
        self._finish(lambda: read_marks(queue, reader.file_id))

    def _restore_lines(self, lines: Iterable[Line], *, front: bool) -> Iterator[OutcomeBatch]:
        is_import = self._reader.changed_data
        return restore(
            self._queue,
            lines,
            # Only what an import has written: see `Line.replaced_by`.
            on_conflict=OnConflict.REPLACE if is_import else OnConflict.FAIL,
            front=front,
            file_id=self._reader.file_id,
            results=self.results,
            dry_run=self._dry_run,
        ).batches

    def _move_back(self) -> Iterator[OutcomeBatch]:
        reader = self._reader
        numbers = {line.entry.item_id: line.number for line in reader.items()}
        restored = bytearray(max(numbers.values(), default=0) // 8 + 1)
        moved = move_back(
            self._queue,
            reader.items,
            self._moved_to,
            file_id=reader.file_id,
            dry_run=self._dry_run,
        ).batches
        for batch in self._counted(moved):
            for item_id in batch.ids_with(*_RESTORED):
                at, bit = divmod(numbers[item_id], 8)
                restored[at] |= 0x80 >> bit
            yield batch
        self._finish(lambda: bytes(restored))

    def _finish(self, restored: Callable[[], bytes]) -> None:
        if not self._dry_run:
            now_ms = self._queue.now_ms()
            self._reader.finish(restored(), now_ms, complete=self.is_complete)
            forget_marks(self._queue, self._reader.file_id)

    def _counted(self, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
        for batch in batches:
            if batch.count(*_RESTORED) < len(batch):
                self.is_complete = False
            imported = set(batch.ids_with(Status.IMPORTED))
            doubtful = imported if self.lost_marks else imported & self._reader.in_doubt
            self.in_doubt += len(doubtful)
            yield batch


def remove_again(
    reader: UndoReader, queue: WorkQueue, moved_to: WorkQueue, journal: Journal, *, dry_run: bool
) -> Iterator[OutcomeBatch]:
    items = map(_item, reader.items(restored=True))
    prints = {item.item_id: fingerprint(item.data) for item in items}
    expected = Expected(fingerprints=prints)
    if reader.origin.to is None:
        yield from remove(queue, prints, journal, expected=expected, dry_run=dry_run).batches
    else:
        yield from move(
            queue, prints, moved_to, journal, expected=expected, dry_run=dry_run
        ).batches


def _item(line: Line) -> ItemSnapshot:
    assert isinstance(line.entry, ItemSnapshot)
    return line.entry
