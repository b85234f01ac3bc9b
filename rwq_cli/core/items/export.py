"""Exporting a queue, item by item: `lua/ops/snapshot.lua`, and `results.lua` for results."""

from collections.abc import Iterable, Iterator

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor, lengths_of
from rwq_cli.core.inspect.keyspace import ids_of, may_be_in_nested_queue, nested_names
from rwq_cli.core.inspect.places import read_items
from rwq_cli.core.inspect.results import Result, all_results
from rwq_cli.core.keys import is_key_of
from rwq_cli.core.model import State
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.reads import read_facts
from rwq_cli.core.state.snapshots import ItemSnapshot, Skipped, read_snapshots


class Export:
    """The items and results of a queue, or the items with these IDs.

    Each ID is kept until the end, so that no item comes twice: about 110 MB for a million IDs. What
    is `skipped` because it is no item is known after everything was read.
    """

    def __init__(self, queue: Queue, ids: frozenset[bytes] | None = None) -> None:
        queue.connection.set_no_touch()
        self._queue = queue
        self._chosen = ids
        self._done: set[bytes] = set()
        self.queue = queue.name
        self.skipped = Skipped()
        self.results_read = 0
        self.exported_ms = queue.now_ms()

    def batches(self) -> Iterator[list[ItemSnapshot]]:
        """The items, read lazily, each at one instant and once: those of main, next to be leased
        first; of processing, longest leased first; delayed and buried ones; and those in no list.

        An item that is leased meanwhile is found in main or in processing. One that is released may
        be missed in both; it is found by its data key, and comes last.
        """
        queue, keys = self._queue, self._queue.keys
        queue.progress.begin("exporting", lengths_of(queue, keys.main, keys.processing))
        for number, key in enumerate((keys.main, keys.processing)):
            yield from self._snapshots(self._pages(number, ListCursor(queue, key)))
        for name in ("delayed", "buried"):
            for page in ScheduledCursor(queue, name):
                yield from self._snapshots([Located.unlisted(self._fresh(page, takes=True))])
        queue.progress.begin("looking for items in no list")
        unread: set[bytes] = set()
        leased: dict[bytes, None] = {}
        for page in queue.connection.scan_keys(keys.pattern):
            unread.update(self._fresh(ids_of(page, keys.item_prefix)))
            if self._chosen is None:
                ids = self._fresh(ids_of(page, keys.lease_prefix, keys.old_lease_prefix))
                leased.update((i, None) for i in ids if not may_be_in_nested_queue(i))
        nested = nested_names(queue, map(keys.item, unread))
        unlisted_ids = (i for i in unread if not (nested and is_key_of(keys.item(i), nested)))
        # Few, unless the queue is broken.
        yield from read_items(queue, self._fresh(unlisted_ids, takes=True), self.skipped)
        if self._chosen is None:
            for facts in read_facts(queue, self._fresh(leased)):
                self.skipped.stray_leases += facts.state is State.STRAY_LEASE

    def results(self) -> Iterator[list[Result]]:
        """The results of completed items, read after the items: one that was completed in between
        has its result here."""
        self._queue.progress.begin("exporting results")
        for batch in all_results(self._queue):
            self.results_read += len(batch)
            yield batch

    def _fresh(self, ids: Iterable[bytes], *, takes: bool = False) -> list[bytes]:
        """Those of the IDs that are wanted and were not taken yet."""
        wanted, done = self._chosen, self._done
        fresh = [
            item_id
            for item_id in dict.fromkeys(ids)
            if item_id not in done and (wanted is None or item_id in wanted)
        ]
        if takes:
            done.update(fresh)
        return fresh

    def _pages(self, number: int, cursor: ListCursor) -> Iterator[Located]:
        for page in cursor:
            positions = {entry: (place,) for place, entry in enumerate(page, cursor.offset)}
            fresh = self._fresh(page, takes=True)
            column = [positions[item_id] for item_id in fresh]
            yield Located(fresh, "windows", ((), column) if number else (column, ()))

    def _snapshots(self, calls: Iterable[Located]) -> Iterator[list[ItemSnapshot]]:
        for _, items in read_snapshots(self._queue, calls, self.skipped):
            if items:
                yield items
            if self.skipped.elsewhere:
                moved, self.skipped.elsewhere = self.skipped.elsewhere, []
                yield from read_items(self._queue, moved, self.skipped)
