"""Remover items out of a queue: to remove them, or to move them to another queue.

What is taken away is written down first, by whoever asks for it: see `Journal`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Protocol
from uuid import uuid4

from rwq_cli.core.batches import Flush, ids_per_call, in_batches
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing
from rwq_cli.core.inspect.report import probe
from rwq_cli.core.items.bulk import outcome_batch
from rwq_cli.core.items.processing import FEW_IDS
from rwq_cli.core.items.results import Result
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.state.snapshot import (
    ItemSnapshot,
    ListRange,
    Place,
    Skipped,
    find_snapshots,
    read_snapshots,
)

# IDs are taken from their stream in blocks of this many, so that memory stays bounded while one
# walk over the lists serves a whole block.
_BLOCK_IDS = 200_000
# IDs that were pushed elsewhere while the lists were walked are looked for so often by pages.
_TURNS = 3
# Each takes the server about four microseconds, besides one pass over half of the list at most.
_TAKE_ITEMS = 250
# A call passes over the list once, however many it takes: few calls where few of many are wanted.
_PAGE_ENTRIES = 4000
# So many entries may be popped between two reads without looking for our place anew.
_OVERLAP = 256
_FINGERPRINT_BYTES = 1024 * 1024


class Journal(Protocol):
    """Where items are written down before they are taken away."""

    def write(self, snapshots: Sequence[ItemSnapshot]) -> None:
        """Write items down so that they outlast a crash of this machine; raise if that fails."""

    def write_results(self, results: Sequence[Result]) -> None:
        """The same, of results."""

    def take_back(self, ids: Sequence[bytes]) -> None:
        """Those items, the last to be written, were not taken away after all."""


class NoJournal:
    """For what needs not be written down: it is in another queue, or in a file already."""

    def write(self, snapshots: Sequence[ItemSnapshot]) -> None:
        """Nothing."""

    def write_results(self, results: Sequence[Result]) -> None:
        """Nothing."""

    def take_back(self, ids: Sequence[bytes]) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where items are moved to.

    Attributes:
        keys: The queue.
        force: Move also what has a lease, which ends by that.
    """

    keys: QueueKeys
    force: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """IDs of one list, as they were read.

    Attributes:
        place: The list; None for neither of the two.
        offset: Where the first stood, counted from the right end.
        span: How many entries there were from the first to the last.
        ids: The IDs.
        by_name: Look for each in both lists, because nobody knows where it is.
    """

    place: Place | None
    offset: int
    span: int
    ids: Sequence[bytes]
    by_name: bool = False


class Remover:
    """Takes items out of one queue.

    Args:
        queue: The queue.
        journal: Where they are written down first.
        destination: Where they are moved to; None to remove them.
        unchanged: Says of an item whether it may be taken; None for any.
    """

    def __init__(
        self,
        queue: Queue,
        journal: Journal,
        destination: Destination | None = None,
        unchanged: Callable[[ItemSnapshot], bool] | None = None,
    ) -> None:
        self._queue = queue
        self._journal = journal
        self._destination = destination
        self._unchanged = unchanged
        # No ID of anybody's: it stands in a list only while one script runs.
        self._mark = b"rwq-taken:" + uuid4().hex.encode()

    def take_ids(self, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
        """Take the items with these IDs.

        A few are looked for one by one, and so taken in the order given. Of many, those in the
        lists are taken page by page, next or longest leased first; the others follow.

        Args:
            ids: The IDs.

        Raises:
            ServerError: The server refused, or was lost; `acknowledged` says how many IDs were
                done.

        Yields:
            One outcome for each distinct ID.
        """
        acknowledged = 0
        try:
            for block in in_batches(ids, items_max=_BLOCK_IDS):
                self._queue.progress.begin("taking", len(block))
                for batch in self._take_block(dict.fromkeys(block)):
                    acknowledged += len(batch)
                    self._queue.progress.advance(len(batch))
                    yield batch
        except ServerError as error:
            error.acknowledged = acknowledged
            raise

    def _take_block(self, left: dict[bytes, None]) -> Iterator[OutcomeBatch]:
        listed: Collection[bytes] = list(left)
        if len(left) > FEW_IDS:
            # A second entry of what was taken stands behind it, and must not stay as a ghost.
            sought = frozenset(left)
            for _ in range(_TURNS):
                for place in (Place.MAIN, Place.PROCESSING):
                    for batch in self.take_listed(place, sought):
                        fresh = batch.only(left.keys())
                        for item_id in fresh.ids:
                            del left[item_id]
                        if len(fresh):
                            yield fresh
                meter = self._queue.progress
                entries = lengths_of(
                    self._queue, self._queue.keys.main, self._queue.keys.processing
                )
                meter.begin("reading the lists", entries)
                listed = self._listed(left)
                meter.begin("taking", len(left))
                if len(listed) <= FEW_IDS:
                    break
            yield from self.take_unlisted([item_id for item_id in left if item_id not in listed])
        yield from self._take_named(list(listed))

    def take_listed(
        self,
        place: Place,
        wanted: Collection[bytes] | None = None,
        last: bytes | None = None,
        entries_max: int | None = None,
    ) -> Iterator[OutcomeBatch]:
        """Take items of a list page by page, from its right end, beside others who push and pop.

        Args:
            place: The list.
            wanted: The IDs to take; None for every entry.
            last: Go no further than to this entry, where it is met; None to the end.
            entries_max: Go no further than so many entries; None for as many as there are now.

        Raises:
            ServerError: The server refused, or was lost.

        Yields:
            Outcomes of what was met; of an ID that is met twice, perhaps two.
        """
        key = self._queue.keys.main if place is Place.MAIN else self._queue.keys.processing
        offset, passed, anchor = 0, 0, None
        if entries_max is None:
            # Else a fast producer would keep us here for ever.
            entries_max = int(self._queue.call("LLEN", key))
        while passed < entries_max:
            # With some entries of what was passed, because others pop and push meanwhile.
            back = 0 if anchor is None else min(offset, _OVERLAP)
            window: list[bytes] = self._queue.call(
                "LRANGE", key, -(offset + _PAGE_ENTRIES), -(offset - back + 1)
            )[::-1]
            fresh = _behind(window, anchor, back)
            if fresh is None:
                behind = self._place_behind(key, anchor)
                if behind is None:
                    # A page is read again, rather than not at all.
                    behind, anchor = max(0, offset - _PAGE_ENTRIES), None
                    passed = max(0, passed - offset + behind)
                offset = behind
                continue
            offset += fresh - back
            page = window[fresh:]
            page = page[: entries_max - passed]
            if last is not None and last in page:
                page = page[: page.index(last) + 1]
                entries_max = passed + len(page)
            if not page:
                return
            passed += len(page)
            gone: set[bytes] = set()
            places = {
                entry: at for at, entry in enumerate(page) if wanted is None or entry in wanted
            }
            met = [entry for entry in dict.fromkeys(page) if entry in places]
            for ids in in_batches(iter(met), items_max=_TAKE_ITEMS):
                # Those that were taken do not stand before these any more. One that is here twice
                # is looked for as far as its last entry.
                start = page.index(ids[0])
                first = offset + start - len(gone)
                span = max(places[entry] for entry in ids) - start + 1
                for batch in self._take(_Seen(place, first, span, ids)):
                    gone.update(_dropped(batch))
                    yield batch
            kept = [entry for entry in page if entry not in gone]
            offset += len(kept)
            anchor = kept[-1] if kept else anchor

    def _place_behind(self, key: bytes, anchor: bytes | None) -> int | None:
        """Where the entry behind the anchor is now; None where the anchor is gone."""
        index, length = self._queue.call_all(
            [("LPOS", key, anchor, "RANK", -1), ("LLEN", key)], atomic=True
        )
        return None if index is None else length - index

    def take_unlisted(self, ids: Sequence[bytes]) -> Iterator[OutcomeBatch]:
        """Take items that the caller saw in no list.

        Raises:
            ServerError: The server refused, or was lost.
        """
        for batch in in_batches(ids):
            yield from self._take(_Seen(None, 0, 0, batch))

    def _take_named(self, ids: Sequence[bytes]) -> Iterator[OutcomeBatch]:
        while ids:
            lengths = self._queue.call_all(
                [("LLEN", self._queue.keys.main), ("LLEN", self._queue.keys.processing)]
            )
            some = ids_per_call(sum(lengths))
            yield from self._take(_Seen(None, 0, 0, ids[:some], by_name=True))
            ids = ids[some:]

    def _take(self, seen: _Seen) -> Iterator[OutcomeBatch]:
        """Write down what was seen, and take it if it is still that.

        Yields:
            Outcomes of all but those that were not where they were seen.
        """
        skipped = Skipped()
        sight = ListRange(seen.place, seen.offset, seen.span, seen.ids)
        if seen.by_name:
            snapshots = find_snapshots(self._queue, seen.ids, skipped)
        else:
            snapshots = read_snapshots(self._queue, sight, skipped)
        for batch in snapshots:
            yield from self._refused(batch)
            wanted = [snapshot for snapshot in batch if self._refusal(snapshot) is None]
            if not wanted:
                continue
            self._journal.write(wanted)
            ids = [snapshot.item_id for snapshot in wanted]
            try:
                done = self._run(
                    replace(seen, ids=ids), [fingerprint(snapshot.data) for snapshot in wanted]
                )
            except ConnectionLost:
                # Nobody knows whether it ran: what was written down stays.
                raise
            except ServerError:
                self._journal.take_back(ids)
                raise
            not_taken = [
                snapshot.item_id
                for snapshot, letter in zip(wanted, done[0].decode("ascii"), strict=True)
                if letter not in "xv"
            ]
            if not_taken:
                self._journal.take_back(not_taken)
            outcomes = outcome_batch(ids, done)
            if len(outcomes):
                yield outcomes
        if skipped.wrong_types:
            yield OutcomeBatch(skipped.wrong_types, "y" * len(skipped.wrong_types))
        if skipped.missing:
            ghosts = replace(seen, ids=skipped.missing)
            outcomes = outcome_batch(ghosts.ids, self._run(ghosts, [""] * len(ghosts.ids)))
            if len(outcomes):
                yield outcomes

    def _refusal(self, snapshot: ItemSnapshot) -> str | None:
        if self._unchanged is not None and not self._unchanged(snapshot):
            return "g"
        if self._destination and not self._destination.force and snapshot.lease:
            return "o"
        return None

    def _refused(self, snapshots: Sequence[ItemSnapshot]) -> Iterator[OutcomeBatch]:
        """Outcomes of what need not be tried."""
        refused = [
            (snapshot, letter) for snapshot in snapshots if (letter := self._refusal(snapshot))
        ]
        if refused:
            yield OutcomeBatch(
                [snapshot.item_id for snapshot, _ in refused],
                "".join(letter for _, letter in refused),
                [p.lease.holder for p, letter in refused if letter == "o" and p.lease],
            )

    def _run(self, seen: _Seen, fingerprints: Sequence[str]) -> list[bytes]:
        to = self._destination
        words: list[object] = [
            *(seen.place or "", seen.offset, seen.span, int(seen.by_name), self._mark),
            *((to.keys.main, to.keys.item_prefix, to.keys.returns) if to else ("", "", "")),
            int(to is not None and to.force),
        ]
        for item_id, written in zip(seen.ids, fingerprints, strict=True):
            words += (item_id, written)
        reply: list[bytes] = self._queue.run("take", *words)
        return reply

    def _listed(self, ids: Collection[bytes]) -> set[bytes]:
        """Which of the IDs are in a list."""
        met: set[bytes] = set()
        if ids:
            sought = frozenset(ids)
            for page in walk_list(self._queue, self._queue.keys.main, newest_first=True):
                met.update(sought.intersection(page))
            for page in walk_processing(
                self._queue,
            ):
                met.update(sought.intersection(page))
        return met


def _behind(window: Sequence[bytes], anchor: bytes | None, expected: int) -> int | None:
    """The index behind the anchor, nearest to where it should be; None where it is not there."""
    if anchor is None:
        return 0
    places = [at + 1 for at, entry in enumerate(window) if entry == anchor]
    return min(places, key=lambda at: abs(at - expected), default=None)


def _dropped(batch: OutcomeBatch) -> Iterator[bytes]:
    """The IDs whose entries are off the list now."""
    return (
        item_id for item_id, letter in zip(batch.ids, batch.letters, strict=True) if letter in "xvm"
    )


def fingerprint(data: bytes) -> str:
    """What `take.lua` compares to know that data are what was written down."""
    length, half = len(data), _FINGERPRINT_BYTES // 2
    if length > _FINGERPRINT_BYTES:
        data = data[:half] + data[-half:]
    return sha1(b"%d:" % length + data, usedforsecurity=False).hexdigest()


def take_back(
    queue: Queue,
    snapshots: Callable[[], Iterable[ItemSnapshot]],
    came_to: Queue,
    *,
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    """Move items back from the queue that they were moved to.

    What somebody holds there by now, or has changed, stays there. What is back already, because
    this was done before and interrupted, is told as that.

    Args:
        queue: The queue that they come back to.
        snapshots: Gives the items as they were; asked twice.
        came_to: The queue that they were moved to.
        dry_run: Change nothing.

    Yields:
        One outcome for each item.
    """
    written = {snapshot.item_id: fingerprint(snapshot.data) for snapshot in snapshots()}
    ids = (snapshot.item_id for snapshot in snapshots())
    destination = Destination(queue.keys)
    if dry_run:
        batches = would_take(came_to, ids, destination)
    else:
        batches = Remover(
            came_to,
            NoJournal(),
            destination,
            lambda snapshot: fingerprint(snapshot.data) == written[snapshot.item_id],
        ).take_ids(ids)
    for batch in batches:
        back = queue.call_all(
            [
                ("EXISTS", queue.keys.item(item_id))
                for item_id, letter in zip(batch.ids, batch.letters, strict=True)
                if letter == "m"
            ]
        )
        there = iter(back)
        letters = "".join(
            "h" if letter == "m" and next(there) else letter for letter in batch.letters
        )
        yield OutcomeBatch(batch.ids, letters, batch.holders)


def would_take(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    destination: Destination | None,
) -> Iterator[OutcomeBatch]:
    """What `Remover.take_ids` would do."""
    met: set[bytes] = set()
    for batch in in_batches(ids):
        distinct = [item_id for item_id in dict.fromkeys(batch) if item_id not in met]
        met.update(distinct)
        letters, holders = [], []
        there: list[int] = [0] * len(distinct)
        if destination is not None:
            there = queue.call_all(
                [("EXISTS", destination.keys.item(item_id)) for item_id in distinct]
            )
        looks = probe(queue, distinct)
        for look, exists in zip(looks, there, strict=True):
            if look.wrong_type:
                letters.append("y")
            elif not look.has_data:
                letters.append("m")
            elif destination is None:
                letters.append("x")
            elif look.lease and not destination.force:
                letters.append("o")
                holders.append(look.lease.holder)
            else:
                letters.append("f" if exists else "v")
        yield OutcomeBatch(distinct, "".join(letters), holders)
