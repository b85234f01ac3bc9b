"""The acts of cleans and of the doctor.

Each acts on IDs that looked broken in the same way a grace period ago. Its script looks once more
and changes nothing that is not broken any more. A dry run is the same without the writes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from rwq_cli.core.batches import BATCH_ITEMS, ids_per_call, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.core.items.bulk import FEW_IDS, Operation, act
from rwq_cli.core.model import OutcomeBatch, State, Status

STALE_SCHEDULE = "stale-schedule"
LOST_REASON = b"its reason was lost with its guard"
# How scripts take a `bury_after` of None.
_NEVER = -1
_REPAIR_ITEMS = 250


def repair(
    queue: Queue,
    ids: Collection[bytes],
    expected: Iterable[State | str],
    *,
    bury_after: int | None = None,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Repair items that are still in one of the expected states.

    Abandoned and orphaned items are returned; ghosts lose their list entries; of a duplicated item
    one entry stays. An orphan is claimed before the lists are read for the last time, so that two
    deep cleans at once, ours or not, push it once.

    Args:
        queue: The queue.
        ids: The IDs.
        expected: The states, or `STALE_SCHEDULE`: an item in a list that has an entry in the
            delayed or buried sorted set all the same.
        bury_after: An item that was returned this often already, 0 or more, is buried instead;
            None for never.
        dry_run: Change nothing, and report what would be done.

    Yields:
        `RETURNED`, `BURIED`, `DROPPED` or `PRUNED` for each ID that was repaired.
    """
    if not ids:
        return
    states = tuple(expected)
    operation = Operation(
        "repair",
        (";".join(states), _NEVER if bury_after is None else bury_after),
        "repairing",
        pushes=True,
        claims_first=states == (State.ORPHANED,),
        items_max=_REPAIR_ITEMS,
    )
    for batch in act(queue, operation, ids, dry_run=dry_run):
        done = batch.only(set(batch.ids) - set(batch.ids_with(Status.SKIPPED)))
        if len(done):
            yield done


def restore_guards(
    queue: Queue, ids: Collection[bytes], *, dry_run: bool = False
) -> Iterator[bytes]:
    """Guard delayed and buried items that have lost their guard, or half of it.

    Args:
        queue: The queue.
        ids: The IDs.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The IDs that were guarded.
    """
    if ids:
        operation = Operation(
            "restore_guards", (LOST_REASON,), "guarding", pushes=True, items_max=_REPAIR_ITEMS
        )
        for batch in act(queue, operation, ids, dry_run=dry_run):
            yield from batch.ids_with(Status.GUARDED)


def prune(
    queue: Queue, where: str, ids: Iterable[bytes], *, dry_run: bool = False
) -> Iterator[bytes]:
    """Remove entries of the delayed, buried or returns structure that belong to no item.

    Args:
        queue: The queue.
        where: `delayed`, `buried` or `returns`.
        ids: The IDs.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The IDs whose entry was removed.
    """
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 2):
        yield from queue.run("prune", where, 0, 0, *batch, dry_run=dry_run)


def prune_cleaning(queue: Queue, ids: Sequence[bytes], *, dry_run: bool = False) -> Iterator[bytes]:
    """Remove entries of the list of 0.1 cleaners.

    Args:
        queue: The queue.
        ids: The IDs: gone, or in another list.
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
    """Rotate the list of 0.1 cleaners once, and remove entries of it.

    Args:
        queue: The queue.
        choose: Says which IDs of a page are to go.
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
