"""Removing a whole queue: its items by `lua/ops/remove.lua`, then every other key."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from rwq_cli.core.batches import BATCH_WRITES, BLOCK_IDS, Acknowledged, in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import InvalidArgument, PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    WALK_ENTRIES,
    ListCursor,
    ScheduledCursor,
    lengths_of,
    read_first_pages,
)
from rwq_cli.core.inspect.keyspace import ids_of, names_of_unlisted, nested_names
from rwq_cli.core.inspect.lookup import places_of
from rwq_cli.core.inspect.results import KIND_NONE, read_result_keys
from rwq_cli.core.items.bulk import Journal, by_script, in_rounds, saving, unlisted
from rwq_cli.core.items.remove import REMOVE_ARGS
from rwq_cli.core.items.repairs import prune
from rwq_cli.core.items.results import delete_results
from rwq_cli.core.keys import PER_QUEUE_SUFFIXES
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.probe import probe

_Ids = dict[bytes, None]


@dataclass(slots=True)
class PurgedResults:
    """How many results a purge removed, and how many of their keys are none, and stay."""

    results: int = 0
    others: int = 0
    # This user may not access results, so that all of them stay.
    is_denied: bool = False


def purge(
    queue: Queue,
    journal: Journal,
    *,
    grace_s: float = GRACE_S,
    results: PurgedResults | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Remove all items that are in the queue now, and then every key that belongs to no item.

    Items that a live producer adds during the purge stay healthy: main is read only up to the
    entry that is the newest now, and an item in no list is removed only if it is still in none a
    grace period later, because it may be between two commands of its producer. Leased items are
    removed with their leases. Items and results are written to the journal first; the latter are
    counted. A dry run keeps the ID of each item in memory. If another queue's keys look like items
    of this one, that is an `InvalidArgument`, and nothing was removed.

    Returns for each item `REMOVED`, `WRONG_TYPE`, or `CHANGED` if its data was replaced.
    """
    return Outcomes(_Purge(queue, journal, grace_s, results or PurgedResults(), dry_run).batches())


def count_items(queue: Queue) -> int:
    """Count the items in any state. SCAN may return a key twice, so each ID is kept in memory."""
    queue.progress.begin("counting the items")
    return len(_own_keys(queue).items)


@dataclass
class _Keys:
    """The IDs of a queue's items, leases and results, and the keys of its marks."""

    items: _Ids = field(default_factory=_Ids)
    leases: _Ids = field(default_factory=_Ids)
    results: _Ids = field(default_factory=_Ids)
    marks: _Ids = field(default_factory=_Ids)


def _own_keys(queue: Queue) -> _Keys:
    """Scan all keys once; `InvalidArgument` if another queue's keys are among them."""
    keys, found = queue.keys, _Keys()
    suspects: list[bytes] = []
    prefixes = *keys.id_prefixes, keys.result_prefix, keys.undo_prefix
    for page in queue.connection.scan_keys(keys.pattern):
        ids = ids_of(page, keys.item_prefix)
        queue.progress.advance(len(ids))
        found.items.update(dict.fromkeys(ids))
        found.leases.update(dict.fromkeys(ids_of(page, keys.lease_prefix, keys.old_lease_prefix)))
        found.results.update(dict.fromkeys(ids_of(page, keys.result_prefix)))
        found.marks.update((key, None) for key in page if key.startswith(keys.undo_prefix))
        members = (key for key in page if key.startswith(prefixes))
        suspects += (key for key in members if key.endswith(PER_QUEUE_SUFFIXES))
    nested = nested_names(queue, suspects) or tuple(names_of_unlisted(queue, found.items))
    if nested:
        own, other = (each.decode("utf-8", "backslashreplace") for each in (queue.name, nested[0]))
        raise InvalidArgument(
            f"keys of the queue {other} look like items of {own}",
            f"purge {other} first; or if they are items of {own} in no list, clean it first",
        )
    return found


@dataclass
class _Purge:
    """One run of `purge`."""

    _queue: Queue
    _journal: Journal
    _grace_s: float
    _purged: PurgedResults
    _dry_run: bool
    # IDs with a key of the wrong type that were reported: they stay, perhaps in several structures.
    _wrong: set[bytes] = field(default_factory=set)
    # In a dry run, the IDs that were reported, and those that would have been removed.
    _reported: set[bytes] = field(default_factory=set)
    _gone: set[bytes] = field(default_factory=set)
    # The keys at the beginning; without those of the items that were removed.
    _keys: _Keys = field(default_factory=_Keys)

    def batches(self) -> Iterator[OutcomeBatch]:
        queue, keys = self._queue, self._queue.keys
        queue.connection.set_no_touch()
        queue.progress.begin("reading the keys")
        self._keys = _own_keys(queue)
        queue.progress.begin("removing", lengths_of(queue, keys.main, keys.processing))
        with Acknowledged() as acknowledged:
            for batch in self._items():
                known = batch.only(set(batch.ids) - self._reported)
                wrong = set(known.ids_with(Status.WRONG_TYPE)) - self._wrong
                self._wrong |= wrong
                # A ghost is not an item.
                shown = known.only(wrong.union(known.ids_with(Status.REMOVED, Status.CHANGED)))
                removed = shown.ids_with(Status.REMOVED)
                if self._dry_run:
                    self._reported.update(shown.ids)
                    self._gone.update(removed)
                for item_id in removed:
                    self._keys.items.pop(item_id, None)
                    self._keys.leases.pop(item_id, None)
                if len(shown):
                    acknowledged.add(len(removed))
                    queue.progress.advance(len(shown))
                    yield shown
            self._remove_results()
            if not self._dry_run:
                self._remove_leftovers()

    def _items(self) -> Iterator[OutcomeBatch]:
        queue = self._queue
        remove = by_script(queue, "remove", REMOVE_ARGS, dry_run=self._dry_run)
        act = saving(queue, self._journal, remove, dry_run=self._dry_run)
        for block in in_batches(list(self._listed()), items_max=BLOCK_IDS):
            yield from in_rounds(queue, act, block, "removing")
        queue.progress.begin("looking for items in no list")
        if left := self._in_no_list(self._keys.items):
            queue.clock.sleep(self._grace_s)
            for batch in act(unlisted(self._in_no_list(left)), False):
                yield batch.without(Status.ELSEWHERE)

    def _listed(self) -> _Ids:
        """What is in a list or sorted set now, also without data: next or longest leased first."""
        queue, keys = self._queue, self._queue.keys
        found: _Ids = {}
        newest = queue.call("LINDEX", keys.main, 0)
        if newest and queue.call("LPOS", keys.main, newest, "RANK", 2) is not None:
            # It is there twice: its older entry must not end the walk.
            newest = None
        main, processing = (
            ListCursor(queue, key, page_size=WALK_ENTRIES, reports_progress=False)
            for key in (keys.main, keys.processing)
        )
        zsets = [
            ScheduledCursor(queue, name, page_size=WALK_ENTRIES) for name in ("delayed", "buried")
        ]
        read_first_pages(queue, main, processing, *zsets)
        for page in main:
            if newest in page:
                # What follows was pushed since.
                found.update(dict.fromkeys(page[: page.index(newest) + 1]))
                break
            found.update(dict.fromkeys(page))
        found.update((item_id, None) for page in processing for item_id in page)
        found.update((item_id, None) for entries in zsets for page in entries for item_id in page)
        return found

    def _in_no_list(self, ids: Iterable[bytes]) -> list[bytes]:
        wanted = {item_id: None for item_id in ids if item_id not in self._reported}
        listed = places_of(self._queue, wanted).listed if wanted else set()
        return [item_id for item_id in wanted if item_id not in listed]

    def _remove_results(self) -> None:
        """Delete the results of items that are gone; keys that are not results stay."""
        queue, others = self._queue, set[bytes]()
        queue.progress.begin("removing results")
        try:
            for batch in read_result_keys(queue, self._keys.results, data=True):
                others.update(found.item_id for found in batch if not found.result)
                others.difference_update(k.item_id for k in batch if k.kind == KIND_NONE)
                results = [
                    found.result
                    for found in batch
                    if found.result and (not found.has_item or found.item_id in self._gone)
                ]
                if not self._dry_run and results:
                    self._journal.write_results(results)
                    delete_results(queue, results)
                self._purged.results += len(results)
                queue.progress.advance(len(results))
        except PermissionDenied:
            self._purged.is_denied = True
            return
        self._purged.others = len(others)

    def _remove_leftovers(self) -> None:
        """Delete the remaining keys that belong to no item."""
        queue, keys = self._queue, self._queue.keys
        leases = in_batches(list(self._keys.leases), items_max=BATCH_WRITES)
        script = "delete_stray_leases"
        calls = ((ids, script_words(script, ids, endless_only=False)) for ids in leases)
        deque(queue.run_each(script, calls), maxlen=0)
        for marks in in_batches(list(self._keys.marks)):
            types = queue.call_all([("TYPE", key) for key in marks])
            ours = [key for key, kind in zip(marks, types, strict=True) if kind == b"string"]
            queue.call_all([("DEL", key) for key in ours])
        structures = (keys.delayed, keys.buried, keys.returns, keys.cleaning)
        if not any(queue.call_all([("EXISTS", key) for key in structures])):
            return
        for name in ("delayed", "buried"):
            for page in ScheduledCursor(queue, name):
                list(prune(queue, name, page))
        for fields in queue.connection.scan_members("HSCAN", keys.returns):
            list(prune(queue, "returns", fields))
        entries = list(chain.from_iterable(ListCursor(queue, keys.cleaning)))
        listed = dict.fromkeys(entries)
        gone = [facts.item_id for facts in probe(queue, listed) if not facts.has_data]
        if len(gone) < len(listed):
            list(prune(queue, "cleaning", gone))
        elif gone:
            # A cleaner adds at the left end.
            queue.call("LTRIM", keys.cleaning, 0, -len(entries) - 1)
