"""Restoring the items and results of an export: `lua/ops/restore.lua`, `restore_results.lua`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import sha1, sha256
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_WRITES, Flush
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result, read_result_keys
from rwq_cli.core.items.bulk import read_items, ways_to_find
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.acknowledged import Acknowledged
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshot import (
    SNAPSHOT_BYTES,
    ItemSnapshot,
    Place,
    Skipped,
)

RESTORE_ITEMS = BATCH_WRITES
# What may be replaced, besides a SHA-1: nothing; or nothing, and the item must exist.
_NEVER, _OTHER = "-", "other"
_SHA1_DIGITS = 40


class OnConflict(StrEnum):
    """How to handle an ID that exists with other data."""

    FAIL = "fail"
    SKIP = "skip"
    REPLACE = "replace"


_OTHER_DATA = {
    OnConflict.FAIL: Status.CONFLICT,
    OnConflict.SKIP: Status.SKIPPED,
    OnConflict.REPLACE: Status.REPLACED,
}


class Line(NamedTuple):
    """A line of an export.

    Attributes:
        number: Its number in the file, from 1 for the header.
        entry: The item or the result.
        replaced_by: For what an import replaced, what replaced it, as in `Journal`: the entry is
            restored only in place of that. Else None.
    """

    number: int
    entry: ItemSnapshot | Result
    replaced_by: str | None = None


def restore(
    queue: Queue,
    lines: Iterable[Line | Flush],
    *,
    on_conflict: OnConflict = OnConflict.FAIL,
    front: bool = False,
    file_id: bytes | None = None,
    results: ResultTally | None = None,
    journal: Journal | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Restore items and results, in their order; memory does not grow with the stream.

    An ID that exists with the same data counts as already there, in any state: a worker may have
    leased it since. A result is restored if there is none; an existing one stays, unless
    `on_conflict` is `REPLACE`. The script that restores a line also marks it, in a bitmap on the
    server. So a run after an interruption resumes where the first one stopped, and never restores
    an item that was completed in between. At the end, the caller calls `forget_marks`.

    Args:
        queue: The queue.
        lines: The lines, read in batches; a `FLUSH` ends a batch. Items of main in the order in
            which they are to be leased, those of processing longest leased first.
        on_conflict: How to handle an ID that exists with other data. A replaced item gets the
            restored place, lease and times.
        front: Put each item of main before all waiting items instead of after them. The lines
            must then come in reverse order.
        file_id: The SHA-256 of the file; None to mark nothing.
        results: Counts the results.
        journal: The journal to write items and results to before they are replaced, if any.
        dry_run: Change nothing, and report what would be done. Memory grows with the number of
            lines, because an ID may be repeated.

    Raises:
        InvalidArgument: The queue's name is refused: see `QueueKeys.check_new`.
        ServerError: `acknowledged` and `acknowledged_after` say which items, in their order, have
            an acknowledged outcome.

    Returns:
        For each item, in order, `IMPORTED`, `IMPORTED_BEFORE` by an interrupted run,
        `ALREADY_THERE`, `SKIPPED`, `REPLACED`, `CONFLICT` or `WRONG_TYPE`. With a journal, or lines
        with `replaced_by`, also `CHANGED` or `MISSING` if the item is no longer what was to be
        replaced.
    """
    queue.keys.check_new()
    marks = b"" if file_id is None else queue.keys.undo(file_id)
    if dry_run:
        queue.connection.set_no_touch()
    run = _Restore(queue, marks, on_conflict, front, None if dry_run else journal, dry_run)
    return Outcomes(run.batches(lines, results or ResultTally()))


def restore_args(
    on_conflict: OnConflict,
    *,
    marks: bytes = b"",
    front: bool = False,
    located: Located | None = None,
) -> dict[str, Any]:
    """The arguments of `lua/ops/restore.lua`.

    Args:
        on_conflict: See `restore`.
        marks: The key of the bitmap of restored lines; empty for none.
        front: See `restore`.
        located: The items that may be replaced; None for none.
    """
    args = (located or Located.by_name(())).args()
    return {**args, "marks": marks, "on_conflict": on_conflict.value, "front": front}


def item_args(number: int, item: ItemSnapshot, *, replaceable: str = "") -> tuple[object, ...]:
    """The arguments of `lua/ops/restore.lua` for an item, for which see there."""
    lease, left_ms = item.lease, -2
    if lease is not None:
        # A lease that was about to end must keep an expiry.
        left_ms = -1 if lease.ttl_ms is None else max(1, lease.ttl_ms)
    return (
        number,
        item.item_id,
        item.data,
        item.place.value if item.place in (Place.MAIN, Place.PROCESSING) else "none",
        lease.holder if lease else b"",
        left_ms,
        _number(item.due_ms),
        _number(item.buried_ms),
        _number(item.returns),
        replaceable,
    )


def read_marks(queue: Queue, file_id: bytes) -> bytes:
    """The bitmap of the lines that were restored, beginning with the bit of line 0."""
    return queue.call("GET", queue.keys.undo(file_id)) or b""


def has_marks(queue: Queue, file_id: bytes) -> bool:
    """Whether the server has the bitmap of restored lines."""
    return bool(queue.call("EXISTS", queue.keys.undo(file_id)))


def forget_marks(queue: Queue, file_id: bytes) -> None:
    """Delete the marks of a file that was restored completely."""
    queue.call("DEL", queue.keys.undo(file_id))


class _Restore:
    """One run of `restore`."""

    def __init__(
        self,
        queue: Queue,
        marks: bytes,
        on_conflict: OnConflict,
        front: bool,
        journal: Journal | None,
        dry_run: bool,
    ) -> None:
        self._queue = queue
        self._marks = marks
        self._on_conflict = on_conflict
        self._front = front
        self._journal = journal
        self._dry_run = dry_run
        # In a dry run, a hash of the data that each restored ID would have.
        self._items: dict[bytes, bytes] = {}
        self._results: set[bytes] = set()
        self._acknowledged = Acknowledged()

    def batches(
        self, lines: Iterable[Line | Flush], results: ResultTally
    ) -> Iterator[OutcomeBatch]:
        with self._acknowledged as acknowledged:
            for kind, batches in groupby(_batches(lines), _last_kind()):
                if kind is Result:
                    self._restore_results(batches, results)
                    continue
                for outcomes in self._restore_items(batches):
                    acknowledged.add(len(outcomes))
                    self._queue.progress.advance(len(outcomes))
                    yield outcomes

    def _restore_items(self, batches: Iterator[list[Line]]) -> Iterator[OutcomeBatch]:
        self._queue.progress.begin("restoring")
        if self._on_conflict is OnConflict.REPLACE:
            for batch in filter(None, batches):
                yield self._replace(batch)
            return
        sent: list[list[Line]] = []

        def calls() -> Iterator[Sequence[object] | None]:
            for batch in batches:
                if batch:
                    sent.append(batch)
                rest, args = self._words(batch)
                yield script_words("restore", rest, **args) if batch else None

        for reply in self._queue.run_each("restore", calls(), dry_run=self._dry_run):
            batch = sent.pop(0)
            if reply is REFUSED:
                self._acknowledged.skip(len(batch))
            else:
                yield self._outcomes(batch, reply)

    def _replace(self, lines: Sequence[Line]) -> OutcomeBatch:
        """Restore lines, and replace only items that were read, and are in any journal."""
        by_id = {line.entry.item_id: line for line in lines}
        rest, args = self._words(lines)
        reply = self._queue.run("restore", *rest, dry_run=True, **args)
        replaced = OutcomeBatch.from_reply(list(by_id), reply).ids_with(Status.REPLACED)
        if self._dry_run and lines[0].replaced_by is None:
            return self._outcomes(lines, reply)
        may_replace = {i: _NEVER if by_id[i].replaced_by is None else _OTHER for i in by_id}
        saved: list[bytes] = []
        for items in read_items(self._queue, replaced, Skipped()):
            if self._journal is not None:
                entries = [_item(by_id[item.item_id].entry) for item in items]
                self._journal.write(items, [sha256(e.data).hexdigest() for e in entries])
            saved += [item.item_id for item in items]
            for item in items:
                replaced_by = by_id[item.item_id].replaced_by
                if replaced_by in (None, sha256(item.data).hexdigest()):
                    may_replace[item.item_id] = sha1(item.data, usedforsecurity=False).hexdigest()
        try:
            outcomes = self._replace_read(by_id, may_replace)
        except ConnectionLost:
            # The call may have run.
            raise
        except ServerError:
            if self._journal is not None:
                self._journal.record_removed_except(saved)
            raise
        if self._journal is not None:
            done = set(outcomes.ids_with(Status.REPLACED))
            self._journal.record_removed_except([i for i in saved if i not in done])
        return outcomes

    def _replace_read(
        self, by_id: Mapping[bytes, Line], may_replace: Mapping[bytes, str]
    ) -> OutcomeBatch:
        """Restore lines, looking for the items to replace until each is found."""
        known: dict[bytes, Outcome] = {}
        wanted = [i for i, digest in may_replace.items() if len(digest) == _SHA1_DIGITS]
        for call in ways_to_find(self._queue, wanted) if wanted else (Located.by_name(()),):
            now = call.only([item_id for item_id in call.ids if item_id not in known])
            later = set(wanted).difference(now.ids)
            lines = [line for i, line in by_id.items() if i not in known and i not in later]
            rest, args = self._words(lines, now, may_replace)
            reply = self._queue.run("restore", *rest, dry_run=self._dry_run, **args)
            known.update((each.item_id, each) for each in self._outcomes(lines, reply).located())
            if len(known) == len(by_id):
                break
        return OutcomeBatch.of(known[item_id] for item_id in by_id)

    def _words(
        self,
        lines: Sequence[Line],
        located: Located | None = None,
        may_replace: Mapping[bytes, str] = MappingProxyType({}),
    ) -> tuple[list[object], dict[str, Any]]:
        """The arguments of the script for some lines: those of each, and the named ones."""
        rest: list[object] = []
        for number, entry, _ in lines:
            rest += item_args(number, _item(entry), replaceable=may_replace.get(entry.item_id, ""))
        args = restore_args(
            self._on_conflict, marks=self._marks, front=self._front, located=located
        )
        return rest, args

    def _restore_results(self, batches: Iterator[list[Line]], tally: ResultTally) -> None:
        self._queue.progress.begin("restoring results")
        for batch in filter(None, batches):
            args: list[object] = []
            replaceable = self._save_replaced_results(batch)
            for number, found, _ in batch:
                assert isinstance(found, Result)
                args += (
                    number,
                    found.item_id,
                    -1 if found.ttl_ms is None else max(1, found.ttl_ms),
                    found.status.value,
                    found.completed_ms,
                    int(found.holder is not None),
                    found.holder or b"",
                    int(found.result is not None),
                    found.result or b"",
                    replaceable.get(found.item_id, ""),
                )
            reply = self._queue.run(
                "restore_results",
                *args,
                dry_run=self._dry_run,
                marks=self._marks,
                replaces=self._on_conflict is OnConflict.REPLACE,
            )
            outcomes = self._outcomes(batch, reply)
            tally.restored += outcomes.count(Status.IMPORTED, Status.REPLACED)
            tally.already_there += outcomes.count(Status.ALREADY_THERE)
            tally.wrong_type += outcomes.count(Status.WRONG_TYPE)
            self._queue.progress.advance(len(outcomes))

    def _save_replaced_results(self, batch: Sequence[Line]) -> dict[bytes, str]:
        """Save the results to be replaced, if there is a journal; return their completion times."""
        replaced_by = {
            line.entry.item_id: line.replaced_by or _NEVER
            for line in batch
            if line.replaced_by is not None
        }
        if self._journal is None or self._on_conflict is not OnConflict.REPLACE:
            return replaced_by
        replaceable = {line.entry.item_id: _NEVER for line in batch}
        new = {line.entry.item_id: line.entry for line in batch}
        for keys in read_result_keys(self._queue, list(new), data=True):
            results = [key.result for key in keys if key.result is not None]
            times = [str(_result(new[result.item_id]).completed_ms) for result in results]
            if results:
                self._journal.write_results(results, times)
            for result in results:
                replaceable[result.item_id] = str(result.completed_ms)
        return replaceable

    def _outcomes(self, batch: Sequence[Line], reply: Sequence[bytes]) -> OutcomeBatch:
        outcomes = OutcomeBatch.from_reply([line.entry.item_id for line in batch], reply)
        if not self._dry_run:
            return outcomes
        return OutcomeBatch.of(
            Outcome(outcome.item_id, self._status(line.entry, outcome.status))
            for line, outcome in zip(batch, outcomes, strict=True)
        )

    def _status(self, entry: ItemSnapshot | Result, status: Status) -> Status:
        """The status in a dry run, as if the entries before this one had been restored."""
        restored = (Status.IMPORTED, Status.REPLACED)
        if status is Status.IMPORTED_BEFORE:
            return status
        if isinstance(entry, Result):
            if status is Status.IMPORTED and entry.item_id in self._results:
                replaces = self._on_conflict is OnConflict.REPLACE
                return Status.REPLACED if replaces else Status.ALREADY_THERE
            if status in restored:
                self._results.add(entry.item_id)
            return status
        digest, before = sha256(entry.data).digest(), self._items.get(entry.item_id)
        if before is not None:
            same = before == digest
            status = Status.ALREADY_THERE if same else _OTHER_DATA[self._on_conflict]
        if status in restored:
            self._items[entry.item_id] = digest
        return status


def _batches(lines: Iterable[Line | Flush]) -> Iterator[list[Line]]:
    """Batches of lines of one kind, with each ID at most once. An empty batch is a `FLUSH`."""
    batch: list[Line] = []
    ids: set[bytes] = set()
    size = 0
    for line in lines:
        if isinstance(line, Flush):
            if batch:
                yield batch
                yield []
            batch, ids, size = [], set(), 0
            continue
        if batch and (
            len(batch) >= RESTORE_ITEMS
            or size >= SNAPSHOT_BYTES
            or line.entry.item_id in ids
            or type(line.entry) is not type(batch[0].entry)
        ):
            yield batch
            batch, ids, size = [], set(), 0
        batch.append(line)
        ids.add(line.entry.item_id)
        entry = line.entry
        size += (entry.result_bytes or 0) if isinstance(entry, Result) else len(entry.data)
    if batch:
        yield batch


def _last_kind() -> Callable[[Sequence[Line]], type]:
    """A `groupby` key that separates items from results; an empty batch has the last one."""
    kind: type = ItemSnapshot

    def kind_of(batch: Sequence[Line]) -> type:
        nonlocal kind
        kind = type(batch[0].entry) if batch else kind
        return kind

    return kind_of


def _item(entry: ItemSnapshot | Result) -> ItemSnapshot:
    assert isinstance(entry, ItemSnapshot)
    return entry


def _result(entry: ItemSnapshot | Result) -> Result:
    assert isinstance(entry, Result)
    return entry


def _number(number: float | None) -> str:
    return "" if number is None else repr(number)
