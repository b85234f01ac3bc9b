"""Removing stale entries: `lua/ops/prune.lua`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from rwq_cli.core.batches import BATCH_ITEMS, FEW_IDS, ids_per_call, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import PAGE_SIZE


def prune(
    queue: Queue, where: str, ids: Iterable[bytes], *, dry_run: bool = False
) -> Iterator[list[bytes]]:
    """Remove entries of the delayed, buried or returns structure whose items have no data.

    Args:
        queue: The queue.
        where: `delayed`, `buried` or `returns`.
        ids: The IDs.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The IDs whose entry was removed, in batches; none is empty.
    """
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 2):
        if pruned := queue.run("prune", where, 0, 0, *batch, dry_run=dry_run):
            yield pruned


def prune_cleaning(queue: Queue, ids: Sequence[bytes], *, dry_run: bool = False) -> Iterator[bytes]:
    """Remove entries of the list of 0.1 cleaners.

    Args:
        queue: The queue.
        ids: The IDs, which are gone or in another structure.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The ID of each entry that was removed.
    """
    if len(ids) > FEW_IDS:
        wanted = frozenset(ids)
        yield from prune_cleaning_pages(queue, wanted.intersection, dry_run=dry_run)
    elif ids:
        length = int(queue.call("LLEN", queue.keys.cleaning))
        for batch in in_batches(ids, items_max=ids_per_call(length)):
            yield from queue.run("prune", "cleaning", 0, 0, *batch, dry_run=dry_run)


def prune_cleaning_pages(
    queue: Queue, choose: Callable[[list[bytes]], Collection[bytes]], *, dry_run: bool = False
) -> Iterator[bytes]:
    """Rotate the list of 0.1 cleaners once, and remove chosen entries.

    Args:
        queue: The queue.
        choose: Returns the IDs of a page to remove.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The ID of each entry that was removed.
    """
    left = int(queue.call("LLEN", queue.keys.cleaning))
    skipped = 0
    while left > 0:
        size = min(left, PAGE_SIZE)
        page = queue.call("LRANGE", queue.keys.cleaning, -(skipped + size), -(skipped + 1))
        if not page:
            return
        left -= len(page)
        chosen = choose(page)
        yield from queue.run("prune", "cleaning", len(page), skipped, *chosen, dry_run=dry_run)
        skipped += len(page) if dry_run else 0
