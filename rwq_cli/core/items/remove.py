"""Removing items, or moving them to another queue: `lua/ops/remove.lua`.

Items are written to a journal before they are removed, so that they can be restored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.bulk import FEW_IDS, BulkRun, new_mark
from rwq_cli.core.items.importing import Line
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.places import ListRange, Where
from rwq_cli.core.state.snapshot import (
    SNAPSHOT_BYTES,
    End,
    ItemSnapshot,
    Skipped,
    read_snapshots,
)

# Each takes the server about four microseconds, besides one pass over half of the list at most.
_REMOVE_ITEMS = 250
# Matches no data.
_OTHER_DATA = "-"
# A range, and the fingerprints of its items that were written down.
_Written = tuple[ListRange, Mapping[bytes, str]]


class Journal(Protocol):
    """Where items are written before they are removed."""

    def write(self, items: Sequence[ItemSnapshot]) -> None:
        """Write items so that they survive a crash of this machine; raise if that fails."""

    def write_results(self, results: Sequence[Result]) -> None:
        """The same for results."""

    def settle(self, kept: Sequence[bytes]) -> None:
        """Record that the items written so far were removed, except these."""


class NoJournal:
    """For items that need not be written: they are in another queue, or in a file already."""

    def write(self, items: Sequence[ItemSnapshot]) -> None:
        """Nothing."""

    def write_results(self, results: Sequence[Result]) -> None:
        """Nothing."""

    def settle(self, kept: Sequence[bytes]) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where items are moved to.

    Attributes:
        keys: The queue.
        force: Move also items that have a lease, which ends.
    """

    keys: QueueKeys
    force: bool = False

    def args(self) -> tuple[object, ...]:
        """The arguments that the script takes for it."""
        keys = self.keys
        lists = (keys.main, keys.processing, keys.delayed, keys.buried, keys.returns)
        prefixes = (keys.item_prefix, keys.lease_prefix, keys.old_lease_prefix)
        return (*lists, *prefixes, int(self.force))


@dataclass(frozen=True, slots=True)
class Marks:
    """Which lines of an undo file are done.

    Attributes:
        key: The key of the bitmap.
        numbers: The number of each item's line.
    """

    key: bytes
    numbers: Mapping[bytes, int]

    def args(self, ids: Iterable[bytes]) -> tuple[object, ...]:
        """The arguments that the script takes for it."""
        return (self.key, ";".join(str(self.numbers[item_id]) for item_id in ids))


def remove(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal,
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Remove items with every trace of them.

    Args:
        queue: The queue.
        ids: The IDs. A few are removed in the order given; of many, those in the lists come first,
            next or longest leased first.
        journal: Where the items are written first.
        expected: What the items were chosen for.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` says how many IDs were done.

    Returns:
        For each ID `REMOVED`, `MISSING`, `WRONG_TYPE`, or `CHANGED` if it is not what it was chosen
        for any more, or its data are not those that were written.
    """
    return Outcomes(Remover(queue, journal, expected=expected, dry_run=dry_run).act(ids))


def move(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    to: bytes,
    journal: Journal,
    *,
    force: bool = False,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Move items to the end of another queue; each is in one of the two at every instant.

    Args:
        queue: The queue that the items are in.
        ids: The IDs, as for `remove`.
        to: The other queue's name.
        journal: Where the items are written first.
        force: Move also items that have a lease, which ends.
        expected: What the items were chosen for.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` says how many IDs were done.

    Returns:
        For each ID `MOVED`, `MISSING`, `CHANGED`, `WRONG_TYPE`, `NOT_OWNER` if it has a lease, or
        `CONFLICT` if the other queue has this ID.
    """
    destination = Destination(QueueKeys(to), force)
    remover = Remover(queue, journal, destination, expected=expected, dry_run=dry_run)
    return Outcomes(remover.act(ids))


def move_back(
    queue: Queue,
    lines: Callable[[], Iterable[Line]],
    came_to: bytes,
    *,
    file_id: bytes | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Move items back from the queue that they were moved to.

    Items that have a lease there, or other data by now, stay there.

    Args:
        queue: The queue that they come back to.
        lines: Gives the items as they were; called twice.
        came_to: The name of the queue that they were moved to.
        file_id: The SHA-256 of the file, whose lines are marked as by `restore`; None to mark none.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` says how many IDs were done.

    Returns:
        For each item the same as `move`, or `ALREADY_THERE` if it is back; `IMPORTED_BEFORE` if a
        run that was interrupted has moved it back.
    """
    saved: dict[bytes, str] = {}
    numbers: dict[bytes, int] = {}
    for number, item in lines():
        assert isinstance(item, ItemSnapshot)
        saved[item.item_id], numbers[item.item_id] = fingerprint(item.data), number
    remover = Remover(
        queue.sibling(came_to),
        NoJournal(),
        Destination(queue.keys),
        saved=saved,
        marks=None if file_id is None else Marks(queue.keys.undo(file_id), numbers),
        dry_run=dry_run,
    )
    return Outcomes(_with_those_back(queue, remover.act(line.entry.item_id for line in lines())))


def _with_those_back(queue: Queue, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
    for batch in batches:
        missing = batch.ids_with(Status.MISSING)
        exists = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in missing])
        back = {item_id for item_id, there in zip(missing, exists, strict=True) if there}
        yield (
            OutcomeBatch.of(
                Outcome(each.item_id, Status.ALREADY_THERE) if each.item_id in back else each
                for each in batch
            )
            if back
            else batch
        )


class Remover:
    """Takes items out of one queue.

    Args:
        queue: The queue.
        journal: Where they are written first.
        destination: Where they are moved to; None to remove them.
        expected: What they were chosen for.
        saved: The fingerprints of items that are written down already; None to read and write them.
        marks: Which lines of their file are done; None to keep no marks.
        dry_run: Change nothing, and report what would be done.

    Attributes:
        run: Finds the items.
    """

    def __init__(
        self,
        queue: Queue,
        journal: Journal,
        destination: Destination | None = None,
        *,
        expected: Expected = ANY,
        saved: Mapping[bytes, str] | None = None,
        marks: Marks | None = None,
        dry_run: bool = False,
    ) -> None:
        if not queue.connection.look_only():
            # To read an item to save it counts as use.
            expected = replace(expected, idle_s=None)
        self._queue = queue
        self._journal = journal
        self._destination = destination
        self._expected = expected
        self._saved = saved
        self._marks = marks
        self._dry_run = dry_run
        self._mark = new_mark()
        # Of a walk over main: where it is, and whether it is nearer to the last end.
        self._offset = 0
        self._is_past_middle = False
        self.run = BulkRun(
            queue,
            self.perform,
            self._mark,
            doing="moving" if destination else "removing",
            items_max=_REMOVE_ITEMS,
            dry_run=dry_run,
        )

    def act(self, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
        """Take the items with these IDs; see `BulkRun.act`."""
        return self.run.act(ids)

    def perform(self, ranges: Iterable[ListRange]) -> Iterator[OutcomeBatch]:
        """Write down what is there of each range, and take it if it is still that.

        Yields:
            One batch for each range; `ELSEWHERE` for an ID that is not where it was seen.
        """
        for group in self._written(ranges):
            outcomes: list[OutcomeBatch] = []
            left = dict.fromkeys(_saved_in(group))
            try:
                for seen, fingerprints in group:
                    outcomes.append(self._take(seen, fingerprints))
                    for item_id in outcomes[-1].ids_with(Status.REMOVED, Status.MOVED):
                        left.pop(item_id, None)
            except ConnectionLost:
                # It may have run: what was written stays in doubt.
                raise
            except ServerError:
                self._journal.settle(list(left))
                yield from outcomes
                raise
            self._journal.settle(list(left))
            yield from outcomes

    def _take(self, seen: ListRange, fingerprints: Mapping[bytes, str]) -> OutcomeBatch:
        to = self._destination
        states, idle, _ = self._expected.args()
        own_args = (states, idle, "1", *(to.args() if to else (*[""] * 8, 0)))
        words = [word for i in seen.ids for word in (i, fingerprints.get(i, ""))]
        marks = self._marks.args(seen.ids) if self._marks else ("", "")
        args = (*seen.args(self._mark), *own_args, *marks, *words)
        reply = self._queue.run("remove", *args, dry_run=self._dry_run)
        return OutcomeBatch.from_reply(seen.ids, reply)

    def _written(self, ranges: Iterable[ListRange]) -> Iterator[list[_Written]]:
        """The ranges, in groups, with the fingerprints of the items that were written down.

        Items are written in the order in which they stand in main. Those that are looked for by
        name come in any order: several of these ranges, which are small, are read together.
        """
        group: list[_Written] = []
        items: list[ItemSnapshot] = []
        for seen in ranges:
            if self._saved is not None or self._dry_run:
                yield [(seen, self._saved or self._expected.fingerprints or {})]
                continue
            fingerprints: dict[bytes, str] = {}
            group.append((seen, fingerprints))
            for batch in self._read(seen, fingerprints):
                items += batch
                if seen.where is not Where.NAME:
                    self._write(items, group)
            size = sum(len(item.data) for item in items)
            if seen.where is not Where.NAME or len(items) >= FEW_IDS or size >= SNAPSHOT_BYTES:
                self._write(items, group)
                yield group
                group = []
        if group:
            self._write(items, group)
            yield group

    def _read(
        self, seen: ListRange, fingerprints: dict[bytes, str]
    ) -> Iterator[list[ItemSnapshot]]:
        """The items of a range that may be taken."""
        chosen = self._expected.fingerprints
        keeps_leased = self._destination is not None and not self._destination.force
        # The script that takes them looks at the lists again.
        is_trusted = seen.where is not Where.NAME and (
            seen.where is not Where.MAIN or seen.entries == len(seen.ids)
        )
        snapshots = read_snapshots(self._queue, seen, Skipped(), self._mark, is_trusted=is_trusted)
        for batch in snapshots:
            items: list[ItemSnapshot] = []
            for item in batch:
                data = fingerprint(item.data)
                if chosen is not None and chosen.get(item.item_id) != data:
                    fingerprints[item.item_id] = _OTHER_DATA
                elif not (keeps_leased and item.lease):
                    fingerprints[item.item_id] = data
                    items.append(item)
            yield self._in_order(seen, items)

    def _in_order(self, seen: ListRange, items: list[ItemSnapshot]) -> list[ItemSnapshot]:
        """The items, with `nearer` set to LAST once one of them was nearer to the last end.

        In a walk over main, items that were removed shift the middle of it.
        """
        if seen.where is not Where.MAIN or seen.offset < self._offset:
            self._is_past_middle = False
        self._offset = seen.offset
        if self._is_past_middle:
            items = [replace(i, nearer=End.LAST) if i.nearer is End.NEXT else i for i in items]
        self._is_past_middle |= any(item.nearer is End.LAST for item in items)
        return items

    def _write(self, items: list[ItemSnapshot], group: Iterable[_Written]) -> None:
        """Write items down, and empty the list; the group holds what was written before."""
        items.sort(key=lambda item: -1 if item.position is None else item.position)
        if items:
            try:
                self._journal.write(items)
            except Exception:
                fresh = {item.item_id for item in items}
                self._journal.settle([i for i in _saved_in(group) if i not in fresh])
                raise
        items.clear()


def _saved_in(group: Iterable[_Written]) -> list[bytes]:
    return [i for seen, data in group for i in seen.ids if data.get(i, _OTHER_DATA) != _OTHER_DATA]
