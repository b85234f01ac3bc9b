"""Restoring the items and results of an export: `lua/ops/restore.lua`, `restore_results.lua`; and
replacing the data of items that is still what was read: `set_data.lua`."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import chain, groupby
from operator import itemgetter

from rwq_cli.core.batches import BUDGET, Acknowledged, Budget, Flush, acknowledged
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.places import NO_PLACES, Places, read_items
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.journal import Journal, recorded
from rwq_cli.core.items.lines import Line, batches_of_a_kind
from rwq_cli.core.items.operation import Operation
from rwq_cli.core.items.results import restore_results
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import hashed_bytes, token_of
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.reads import existing
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshots import ItemSnapshot, Place, Skipped

# Items that may have to be replaced: they are looked for together.
_REPLACE_ITEMS = 20_000
# What is read, replaced and written to the journal at once, new and current data apart.
_GROUP_BYTES = 4 * BUDGET.bytes
# What may be replaced, besides a token of data: nothing; or nothing, and the item must exist. A
# token after the last of these is of an item that keeps its place.
_NEVER, _OTHER, _IN_PLACE = b"-", b"other", b"="
_NOWHERE = Located(())
# An item as it was read, and its new data.
Edit = tuple[ItemSnapshot, bytes]
# What is written to the journal at once.
_GROUP_ITEMS = 8 * BUDGET.items


class OnConflict(StrEnum):
    """How to handle an ID that exists with other data."""

    FAIL = "fail"
    SKIP = "skip"
    REPLACE = "replace"


def restore(
    queue: Queue,
    lines: Iterable[Line | Flush],
    *,
    on_conflict: OnConflict = OnConflict.FAIL,
    front: bool = False,
    in_place: bool = False,
    file_id: bytes | None = None,
    results: Counter[Status] | None = None,
    journal: Journal | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Restore items and results, in their order: those of main next first, those of processing
    longest leased first.

    An ID that exists with the same data is already there, in any state: a worker may have leased it
    since. Of one with other data that is replaced, only the data change if nothing else differs, or
    a session holds the item, or with `in_place`; else it gets the place, lease and state of the
    line. A result that exists stays, unless `REPLACE`. What is replaced is written to the journal
    first.

    The script that restores a line also marks it, in a bitmap on the server that the SHA-256 of the
    file names. So a run after an interruption resumes where the first one stopped, and never
    restores an item that was completed in between. At the end, the caller calls `forget_marks`.

    An item is `CHANGED` or `MISSING` if it is no longer what was to be replaced. A dry run judges
    each line by what the server has now, also an ID that an earlier line would restore.

    Args:
        front: Put each item of main before all waiting items; the lines come in reverse order.
        in_place: Change only data.
        file_id: The SHA-256 of the file; None to mark no lines.
        results: Counts the outcomes of results.
    """
    queue.keys.check_new()
    if dry_run:
        queue.connection.set_no_touch()
    marks = b"" if file_id is None else queue.keys.undo(file_id)
    kept = None if dry_run else journal
    restoration = _Restoration(queue, on_conflict, marks, kept, front, in_place, dry_run)

    def batches() -> Iterator[OutcomeBatch]:
        with restoration.acknowledged:
            for kind, group in groupby(restoration.parts_of(lines), itemgetter(0)):
                parts = map(itemgetter(1), group)
                if kind is not Result:
                    yield from restoration.restore(parts)
                    continue
                replaces = on_conflict is OnConflict.REPLACE
                for part in filter(None, parts):
                    for outcomes in restore_results(queue, part, marks, kept, replaces, dry_run):
                        if results is not None:
                            results.update(outcomes.counts())

    return Outcomes(batches())


@dataclass
class _Restoration:
    """Restores the items of some lines; see `restore`.

    Attributes:
        acknowledged: Which of the items were.
    """

    queue: Queue
    on_conflict: OnConflict
    marks: bytes
    journal: Journal | None
    front: bool
    in_place: bool
    dry_run: bool
    acknowledged: Acknowledged = field(default_factory=Acknowledged)

    @property
    def _replaces(self) -> bool:
        return self.on_conflict is OnConflict.REPLACE

    @property
    def _budget(self) -> Budget:
        return self.queue.budget("restore")

    def parts_of(
        self, lines: Iterable[Line | Flush]
    ) -> Iterator[tuple[type[ItemSnapshot | Result], list[Line]]]:
        """The lines in the parts that `restore` takes; an empty one is a pause of the source."""
        if self._replaces:
            return batches_of_a_kind(lines, Budget(_REPLACE_ITEMS, _GROUP_BYTES))
        return batches_of_a_kind(lines, self._budget)

    def restore(self, parts: Iterable[Sequence[Line]]) -> Iterator[OutcomeBatch]:
        self.queue.progress.begin("restoring")
        batches: Iterator[OutcomeBatch] = self.send((part, _NOWHERE, {}) for part in parts)
        if self._replaces:
            batches = chain.from_iterable(map(self._replace, filter(None, parts)))
        for outcomes in batches:
            self.acknowledged.add(len(outcomes))
            self.queue.progress.advance(len(outcomes))
            yield outcomes

    def send(
        self, calls: Iterable[tuple[Sequence[Line], Located, Mapping[bytes, bytes]]]
    ) -> Iterator[OutcomeBatch]:
        """Call the script for lines, with where it looks for items, and what it may replace."""
        sent = deque[Sequence[Line]]()

        def requests() -> Iterator[tuple[Sequence[Line], Command] | None]:
            for lines, located, replaceable in calls:
                sent.append(lines)
                yield (lines, self._command(lines, located, replaceable)) if lines else None

        for lines, reply in self.queue.run_each(requests()):
            while (oldest := sent.popleft()) is not lines:
                # A pause, or refused.
                self.acknowledged.skip(len(oldest))
            yield OutcomeBatch.from_reply([line.entry.item_id for line in lines], reply)

    def _command(
        self, lines: Sequence[Line], located: Located, replaceable: Mapping[bytes, bytes]
    ) -> Command:
        words: list[object] = []
        for line in lines:
            item, left_ms = line.item, -2
            if item.lease is not None:
                # A lease that was about to end must keep an expiry.
                left_ms = -1 if item.lease.ttl_ms is None else max(1, item.lease.ttl_ms)
            place = item.place if item.place in (Place.MAIN, Place.PROCESSING) else "none"
            words += line.number, item.item_id, item.data, str(place)
            words += item.lease.holder if item.lease else b"", left_ms
            numbers = item.due_ms, item.buried_ms, item.returns
            words += ("" if number is None else repr(number) for number in numbers)
            words.append(replaceable.get(item.item_id, b""))
        return self.queue.script(
            "restore",
            *words,
            dry_run=self.dry_run,
            marks=self.marks,
            on_conflict=self.on_conflict.value,
            front=self.front,
            **located.args(),
        )

    def _replace(self, part: Sequence[Line]) -> Iterator[OutcomeBatch]:
        """Restore lines, and replace only items that were read, and are in any journal.

        Only so much current data are read at once.
        """
        if self.dry_run and part[0].replaced_by is None:
            # What would be replaced need not be read.
            calls = self._budget.split(part, lambda line: len(line.item.data))
            yield from self.send((lines, _NOWHERE, {}) for lines in calls)
            return
        sizes = self._current_sizes(part)
        limit = Budget(items=len(part), bytes=_GROUP_BYTES)
        groups = list(limit.split(part, lambda line: sizes.get(line.entry.item_id, 0)))
        # One walk over the lists serves all groups.
        is_walked = len(groups) > 1 and not self.in_place
        places = Places.read(self.queue, sizes) if is_walked else None
        for lines in groups:
            yield from self._replace_group(lines, sizes, places)

    def _replace_group(
        self, lines: Sequence[Line], sizes: Mapping[bytes, int], places: Places | None
    ) -> Iterator[OutcomeBatch]:
        by_id = {line.entry.item_id: line for line in lines}
        current_sizes = {item_id: sizes[item_id] for item_id in by_id if item_id in sizes}
        replacing = _Replacing(self, by_id)
        for item in chain.from_iterable(self._read(by_id, current_sizes, places)):
            replacing.add(item)
        batches = replacing.run_block(by_id, places if replacing.moving else NO_PLACES)
        replaced = self.queue, self.journal, replacing.items, batches
        by = replacing.replaced_by
        yield from recorded(*replaced, Status.REPLACED, replaced_by=by)

    def _current_sizes(self, lines: Sequence[Line]) -> dict[bytes, int]:
        """By ID, the size of the data of each item that exists now."""
        queue = self.queue
        ids = existing(queue, [line.entry.item_id for line in lines])
        lengths = queue.call_all([("STRLEN", queue.keys.item(i)) for i in ids], return_errors=True)
        # A key of another type is the script's to report.
        return {
            item_id: length if isinstance(length, int) else 0
            for item_id, length in zip(ids, lengths, strict=True)
        }

    def _read(
        self, by_id: Mapping[bytes, Line], sizes: Mapping[bytes, int], places: Places | None
    ) -> Iterator[list[ItemSnapshot]]:
        """The items that exist; as they are in the lines, but for their data, if they stay."""
        if not self.in_place:
            # Reading items reads the lists.
            yield from read_items(self.queue, sizes, Skipped(), places)
            return
        keys = self.queue.keys
        for batch in self._budget.split(sizes, sizes.__getitem__):
            values = self.queue.call("MGET", *map(keys.item, batch))
            pairs = zip(batch, values, strict=True)
            yield [by_id[i].item._replace(data=data) for i, data in pairs if data is not None]


class _Replacing(Operation):
    """Restores lines, and replaces what was read of the items that have their IDs.

    Attributes:
        items: What is replaced, as it is now.
        replaced_by: What replaces each: see `Journal`.
        moving: The IDs of those that also leave their places.
    """

    def __init__(self, restoration: _Restoration, by_id: Mapping[bytes, Line]) -> None:
        super().__init__(restoration.queue, "restore", {}, at_once=True)
        self._restoration, self._by_id = restoration, by_id
        self.items = list[ItemSnapshot]()
        self.replaced_by = list[str]()
        self.moving = set[bytes]()
        self._hashed_bytes = dict[bytes, int]()
        # By ID, what may be replaced: see `lua/ops/restore.lua`.
        self._replaceable = {
            item_id: _NEVER if line.replaced_by is None else _OTHER
            for item_id, line in by_id.items()
        }

    def add(self, item: ItemSnapshot) -> None:
        """Replace an item if its data are other than those of its line, and may be replaced."""
        item_id, line = item.item_id, self._by_id[item.item_id]
        if item.data == line.item.data:
            return
        self.items.append(item)
        self.replaced_by.append(sha256(line.item.data).hexdigest())
        if line.replaced_by not in (None, sha256(item.data).hexdigest()):
            return
        token = token_of(item.data)
        self._hashed_bytes[item_id] = hashed_bytes(token)
        is_held = item.lease is not None and not is_guard(item.lease)
        is_there = (item.place, item.due_ms) == (line.item.place, line.item.due_ms)
        if self._restoration.in_place or is_held or is_there:
            token = _IN_PLACE + token
        else:
            self.moving.add(item_id)
        self._replaceable[item_id] = token

    def send(self, calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        budget = self.queue.budget(self.script)
        parts = chain.from_iterable(call.within(budget, self._bytes_of) for call in calls)
        # Only what leaves its place is looked for.
        return self._restoration.send(
            ([self._by_id[i] for i in part.ids], part.only(self.moving), self._replaceable)
            for part in parts
        )

    def _bytes_of(self, item_id: bytes) -> int:
        return len(self._by_id[item_id].item.data) + self._hashed_bytes.get(item_id, 0)


def read_marks(queue: Queue, file_id: bytes) -> bytes:
    """The bitmap of the lines that were restored, beginning with the bit of line 0; b"" if the
    server has none."""
    return queue.call("GET", queue.keys.undo(file_id)) or b""


def forget_marks(queue: Queue, file_id: bytes) -> None:
    """Delete the marks of a file that was restored completely."""
    queue.call("DEL", queue.keys.undo(file_id))


def _edited_bytes(edit: Edit) -> int:
    item, new_data = edit
    return len(item.data) + len(new_data)


def edit_items(
    queue: Queue,
    edits: Iterable[Edit | Flush],
    journal: Journal | None = None,
    *,
    dry_run: bool = False,
) -> Outcomes:
    """Replace the data of items, each if it is still what was read; see `WorkQueue.edit_many`.
    Place, lease, state, times and expiry stay; idle times are reset.

    What is replaced is written to the journal first, some thousand items at a time or up to a
    `FLUSH`, each with the SHA-256 of its new data, which `Line` takes.
    """
    kept = None if dry_run else journal

    def calls(edits: Iterable[Edit]) -> Iterator[tuple[list[bytes], Command]]:
        for batch in queue.budget("set_data").split(edits, _edited_bytes):
            words = (word for item, new in batch for word in (item.item_id, item.data, new))
            ids = [item.item_id for item, _ in batch]
            yield ids, queue.script("set_data", *words, dry_run=dry_run)

    def edited() -> Iterator[OutcomeBatch]:
        if dry_run:
            queue.connection.set_no_touch()
        queue.check_one_slot()
        queue.progress.begin("editing")
        for group in Budget(_GROUP_ITEMS, _GROUP_BYTES).split(edits, _edited_bytes):
            if same := [item.item_id for item, new in group if new == item.data]:
                yield OutcomeBatch.all_of(same, Status.UNCHANGED)
            changes = [(item, new) for item, new in group if new != item.data]
            items = [item for item, _ in changes]
            by = [sha256(new).hexdigest() for _, new in changes]
            outcomes = queue.act_each(calls(changes))
            yield from recorded(queue, kept, items, outcomes, Status.SET, replaced_by=by)

    return Outcomes(acknowledged(queue.progress, edited()))
