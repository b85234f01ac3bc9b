"""Removing items, or moving them to another queue: `lua/ops/remove.lua`.

Items are written to a journal before they are removed, so that they can be restored.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_WRITES, FEW_IDS, Flush
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import LOST_REPLY_HINT, BulkRun, new_token
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.acknowledged import in_doubt
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.list_range import ListRange, Where
from rwq_cli.core.state.snapshot import (
    SNAPSHOT_BYTES,
    End,
    ItemSnapshot,
    Skipped,
    read_snapshots,
)

# Each takes the server about four microseconds, plus one scan of at most half of the list.
REMOVE_ITEMS = BATCH_WRITES
_TAKEN = (Status.REMOVED, Status.MOVED, Status.COMPLETED)
# Matches no data.
_OTHER_DATA = "-"
# A range, and the fingerprints of its items that the journal has.
_Written = tuple[ListRange, Mapping[bytes, str]]


class Destination(NamedTuple):
    """The queue that items are moved to.

    Attributes:
        keys: The queue.
        force: Move leased items, too, and end their leases.
    """

    keys: QueueKeys
    force: bool = False

    def args(self) -> tuple[object, ...]:
        """The script arguments."""
        keys = self.keys
        lists = (keys.main, keys.processing, keys.delayed, keys.buried, keys.returns)
        return (*lists, *keys.id_prefixes, int(self.force))


class Marks(NamedTuple):
    """The bitmap of restored lines of an undo file.

    Attributes:
        key: The key of the bitmap.
        numbers: The line number of each item.
    """

    key: bytes
    numbers: Mapping[bytes, int]

    def args(self, ids: Iterable[bytes]) -> tuple[object, ...]:
        """The script arguments."""
        return (self.key, ";".join(str(self.numbers[item_id]) for item_id in ids))


def remove_args(
    seen: ListRange,
    token: bytes,
    expected: Expected,
    *,
    destination: Destination | None = None,
    is_first_look: bool = False,
    marks: Marks | None = None,
) -> tuple[object, ...]:
    """The arguments of `lua/ops/remove.lua`; `expected` has the fingerprints of the saved data."""
    to = ("",) * 8 + (0,) if destination is None else destination.args()
    marked = ("", "") if marks is None else marks.args(seen.ids)
    return (
        *seen.args(token),
        *expected.args(),
        *to,
        int(is_first_look),
        *marked,
        *expected.id_args(seen.ids),
    )


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
        ids: The IDs. A few are removed in the given order. If there are many, those in the lists
            come first, next or longest leased first.
        journal: The journal to write the items to first.
        expected: The conditions that the items must still meet.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` is the number of processed IDs.

    Returns:
        For each ID `REMOVED`, `MISSING`, `WRONG_TYPE`, or `CHANGED` if it no longer meets the
        conditions, or its data differs from that in the journal.
    """
    return Outcomes(Remover(queue, journal, expected=expected, dry_run=dry_run).apply(ids))


class Remover:
    """Removes items from a queue, or moves them to another.

    Args:
        queue: The queue.
        journal: The journal to write the items to first.
        destination: The queue to move them to; None to remove them.
        is_first_look: Skip abandoned and orphaned items, which may be in transit.
        expected: The conditions that the items must still meet.
        saved: The fingerprints of items that are already in a file; None to read and write them.
        marks: The bitmap of restored lines; None if there is none.
        dry_run: Change nothing, and report what would be done.

    Attributes:
        run: Finds the items.
        held: The holders of items that are not moved, because they have a lease.
    """

    def __init__(
        self,
        queue: Queue,
        journal: Journal,
        destination: Destination | None = None,
        *,
        is_first_look: bool = False,
        expected: Expected = ANY,
        saved: Mapping[bytes, str] | None = None,
        marks: Marks | None = None,
        dry_run: bool = False,
    ) -> None:
        if not queue.connection.set_no_touch():
            # Reading an item to save it would reset its idle time.
            expected = expected._replace(idle_s=None)
        self._queue = queue
        self._journal = journal
        self._destination = destination
        self._is_first_look = is_first_look
        self._expected = expected
        self._saved = saved
        self._marks = marks
        self._dry_run = dry_run
        self._token = new_token()
        self.held: dict[bytes, bytes] = {}
        # The position of a walk over main, and whether it is nearer to the end of the queue.
        self._offset = 0
        self._is_past_middle = False
        self.run = BulkRun(
            queue,
            self.perform,
            self._token,
            doing="moving" if destination else "removing",
            items_max=REMOVE_ITEMS,
            dry_run=dry_run,
        )

    def apply(self, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
        """Remove or move the items with these IDs; see `BulkRun.apply`."""
        return self.run.apply(ids)

    def finish(self) -> None:
        """Finish what a killed run of the same kind has left; one script leaves nothing."""

    def perform(self, ranges: Iterable[ListRange]) -> Iterator[OutcomeBatch]:
        """Save the items of each range, then remove or move those that have not changed.

        Yields:
            One batch for each range; `ELSEWHERE` for an ID that is not where it was seen.
        """
        for group in self._save(ranges):
            outcomes: list[OutcomeBatch] = []
            left = dict.fromkeys(_saved_in(group))
            try:
                for seen, fingerprints in group:
                    with in_doubt(partial(len, seen.ids), LOST_REPLY_HINT):
                        outcomes.append(self._take(seen, fingerprints))
                    for item_id in outcomes[-1].ids_with(*_TAKEN):
                        left.pop(item_id, None)
            except ConnectionLost:
                # The call may have run, so the written items stay in doubt.
                raise
            except ServerError:
                self._journal.record_removed_except(list(left))
                yield from outcomes
                raise
            self._journal.record_removed_except(list(left))
            yield from outcomes

    def _take(self, seen: ListRange, fingerprints: Mapping[bytes, str]) -> OutcomeBatch:
        expected = self._expected._replace(fingerprints=fingerprints)
        args = remove_args(
            seen,
            self._token,
            expected,
            destination=self._destination,
            is_first_look=self._is_first_look,
            marks=self._marks,
        )
        reply = self._queue.run("remove", *args, dry_run=self._dry_run)
        return OutcomeBatch.from_reply(seen.ids, reply)

    def _save(self, ranges: Iterable[ListRange]) -> Iterator[list[_Written]]:
        """Save the items of the ranges; yield the ranges in groups, with the fingerprints.

        Items are written in their order in main. Items that are looked up by name come in any
        order, so several of these small ranges are read together.
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
        """The items of a range that may be removed or moved."""
        chosen = self._expected.fingerprints
        keeps_leased = self._destination is not None and not self._destination.force
        # The script checks the lists again.
        is_trusted = seen.where is not Where.NAME and (
            seen.where is not Where.MAIN or seen.entries == len(seen.ids)
        )
        snapshots = read_snapshots(self._queue, seen, Skipped(), self._token, is_trusted=is_trusted)
        for batch in snapshots:
            items: list[ItemSnapshot] = []
            for item in batch:
                data = fingerprint(item.data)
                if chosen is not None and chosen.get(item.item_id) != data:
                    fingerprints[item.item_id] = _OTHER_DATA
                elif keeps_leased and item.lease:
                    self.held[item.item_id] = item.lease.holder
                else:
                    fingerprints[item.item_id] = data
                    items.append(item)
            yield self._with_fixed_ends(seen, items)

    def _with_fixed_ends(self, seen: ListRange, items: list[ItemSnapshot]) -> list[ItemSnapshot]:
        """The items; once one is nearer to the end, all that follow it have `nearer` LAST.

        Removed items shift the middle of main during a walk.
        """
        if seen.where is not Where.MAIN or seen.offset < self._offset:
            self._is_past_middle = False
        self._offset = seen.offset
        if self._is_past_middle:
            items = [i._replace(nearer=End.LAST) if i.nearer is End.NEXT else i for i in items]
        self._is_past_middle |= any(item.nearer is End.LAST for item in items)
        return items

    def _write(self, items: list[ItemSnapshot], group: Iterable[_Written]) -> None:
        """Write the items to the journal, and clear the list; the group has the earlier ones."""
        items.sort(key=lambda item: -1 if item.position is None else item.position)
        if items:
            try:
                self._journal.write(items)
            except Exception:
                fresh = {item.item_id for item in items}
                self._journal.record_removed_except([i for i in _saved_in(group) if i not in fresh])
                raise
        items.clear()


def _saved_in(group: Iterable[_Written]) -> list[bytes]:
    return [i for seen, data in group for i in seen.ids if data.get(i, _OTHER_DATA) != _OTHER_DATA]
