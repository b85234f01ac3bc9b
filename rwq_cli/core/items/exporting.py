"""Everything of a queue, item by item, in the order in which it can be put back."""

from collections.abc import Iterator

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing, walk_scheduled
from rwq_cli.core.inspect.nested_queues import member_ids, nested_names
from rwq_cli.core.inspect.report import probe
from rwq_cli.core.items.all_results import read_all
from rwq_cli.core.items.results import Result
from rwq_cli.core.state.snapshot import ItemSnapshot, ListRange, Place, Skipped, read_snapshots


class Export:
    """The items of a queue.

    Of each ID a number of 64 bits is kept until the end, so that none comes twice; data are held
    no longer than their batch.

    Args:
        queue: The queue.
        chosen: The IDs of the items to export; None for everything.

    Attributes:
        queue: The queue's name.
        exported_ms: The server's clock when it began, unix ms.
        skipped: What was met and is no item; complete when all was read.
        results_read: How many results were read.
    """

    def __init__(self, queue: Queue, chosen: frozenset[bytes] | None = None) -> None:
        self._queue = queue
        self._chosen = chosen
        self._met: set[int] = set()
        self.queue = queue.keys.name
        self.skipped = Skipped()
        self.results_read = 0
        seconds, microseconds = queue.call("TIME")
        self.exported_ms = int(seconds) * 1000 + int(microseconds) // 1000

    def batches(self) -> Iterator[list[ItemSnapshot]]:
        """The items, read as they are asked for, each at one instant and each once.

        Main comes first, next to be leased first; then processing, longest leased first; then the
        delayed and the buried; then what is in no list. An item that is leased meanwhile is met in
        main or in processing. One that went the other way is met by the walk over all keys, and
        comes with the last.

        Raises:
            ServerError: The server refused, or was lost.
        """
        queue = self._queue
        queue.progress.begin("exporting", lengths_of(queue, queue.keys.main, queue.keys.processing))
        walks = (
            (Place.MAIN, walk_list(queue, queue.keys.main, newest_first=False)),
            (Place.PROCESSING, walk_processing(queue)),
        )
        for place, walk in walks:
            yield from self._listed(place, walk, None)
        for name in ("delayed", "buried"):
            for page in walk_scheduled(queue, name):
                yield from self._snapshots(None, 0, 0, [item_id for item_id, _ in page])
        queue.progress.begin("looking for what is in no list")
        names = nested_names(queue)
        left = self._unmet(names, queue.keys.item_prefix)
        if left:
            # Few, unless the queue is broken: most of what is in a list was met above.
            for place, walk in (
                (Place.MAIN, walk_list(queue, queue.keys.main, newest_first=False)),
                (Place.PROCESSING, walk_processing(queue)),
            ):
                yield from self._listed(place, walk, left)
            for batch in in_batches(item_id for item_id in left if hash(item_id) not in self._met):
                yield from self._snapshots(None, 0, 0, batch)
        if self._chosen is None:
            self._count_strays(names)

    def results(self) -> Iterator[list[Result]]:
        """What is kept of items that were completed, in no order.

        Read behind the items, so that one that is completed meanwhile is here if it is not there.

        Raises:
            ServerError: The server refused, or was lost.
        """
        self._queue.progress.begin("exporting results")
        for batch in read_all(
            self._queue,
        ):
            self.results_read += len(batch)
            yield batch

    def _is_wanted(self, item_id: bytes) -> bool:
        """Whether it was chosen and not met yet."""
        return hash(item_id) not in self._met and (self._chosen is None or item_id in self._chosen)

    def _listed(
        self, place: Place, walk: Iterator[list[bytes]], wanted: dict[bytes, None] | None
    ) -> Iterator[list[ItemSnapshot]]:
        passed = 0
        for page in walk:
            ids = page if wanted is None else [entry for entry in page if entry in wanted]
            if ids:
                yield from self._snapshots(place, passed, len(page), ids)
            passed += len(page)

    def _snapshots(
        self, place: Place | None, offset: int, span: int, ids: list[bytes]
    ) -> Iterator[list[ItemSnapshot]]:
        """Those that were not met before."""
        fresh = [item_id for item_id in dict.fromkeys(ids) if self._is_wanted(item_id)]
        self._met.update(map(hash, fresh))
        yield from read_snapshots(self._queue, ListRange(place, offset, span, fresh), self.skipped)

    def _unmet(self, names: tuple[bytes, ...], *prefixes: bytes) -> dict[bytes, None]:
        """IDs in keys with these prefixes that were not met yet."""
        pages = member_ids(self._queue, prefixes, names)
        return {item_id: None for page in pages for item_id in page if self._is_wanted(item_id)}

    def _count_strays(self, names: tuple[bytes, ...]) -> None:
        leased = self._unmet(
            names, self._queue.keys.lease_prefix, self._queue.keys.old_lease_prefix
        )
        for look in probe(self._queue, list(leased)):
            self.skipped.stray_leases += look.lease is not None and not look.has_data
