"""The repairs of cleans and of the doctor: `lua/ops/repair.lua` and `restore_guards.lua`.

Each takes IDs that looked broken in the same way a grace period ago. Its script checks them again,
and skips IDs that are no longer broken.
"""

from collections.abc import Collection, Iterable, Iterator

from rwq_cli.core.batches import BATCH_WRITES, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import by_script, run
from rwq_cli.core.model import OutcomeBatch, State, Status
from rwq_cli.core.state.expected import Expected
from rwq_cli.core.state.first_look import FirstLook

LOST_REASON = b"its reason was lost with its guard"
# The script argument for a `bury_after` of None.
_NEVER = -1
_REPAIR_ITEMS = BATCH_WRITES


def repair(
    queue: Queue,
    ids: Collection[bytes],
    expected: Iterable[State],
    *,
    look: FirstLook | None = None,
    bury_after: int | None = None,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Repair items that are still in one of the expected states.

    Abandoned and orphaned items are returned; ghosts lose their list entries; a duplicated item
    keeps one entry.

    Args:
        queue: The queue.
        ids: The IDs.
        expected: The states, at least one.
        look: The first look at them; an ID that now names another item is skipped.
        bury_after: Bury an item instead if it was already returned this often, 0 or more; None for
            never.
        dry_run: Change nothing, and report what would be done.

    Yields:
        `RETURNED`, `BURIED` or `DROPPED` for each ID that was repaired.
    """
    return _repair(queue, ids, frozenset(expected), look, bury_after, dry_run=dry_run)


def remove_stale_schedule(
    queue: Queue, ids: Collection[bytes], *, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Remove the entries in the delayed and buried sorted sets of items that are in a list.

    Args:
        queue: The queue.
        ids: The IDs.
        dry_run: Change nothing, and report what would be done.

    Yields:
        `PRUNED` for each ID whose entry was removed.
    """
    return _repair(queue, ids, frozenset(), dry_run=dry_run)


def _repair(
    queue: Queue,
    ids: Collection[bytes],
    states: frozenset[State],
    look: FirstLook | None = None,
    bury_after: int | None = None,
    *,
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    if not ids:
        return
    args = {
        "bury_after": _NEVER if bury_after is None else bury_after,
        "looked_ms": look.at_ms if look else 0,
    }
    expected = Expected(states, fingerprints=None if look is None else look.digests)
    act = by_script(queue, "repair", args, expected, dry_run=dry_run)
    for batch in run(queue, act, ids, "repairing", items_max=_REPAIR_ITEMS):
        if skipped := batch.ids_with(Status.SKIPPED):
            batch = batch.only(set(batch.ids).difference(skipped))
        if len(batch):
            yield batch


def restore_guards(queue: Queue, ids: Iterable[bytes], *, dry_run: bool = False) -> Iterator[bytes]:
    """Put back the guards of delayed and buried items that are missing under a name.

    Args:
        queue: The queue.
        ids: The IDs, which were in no list.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The IDs that were guarded.
    """
    for batch in in_batches(ids, items_max=_REPAIR_ITEMS):
        yield from queue.run("restore_guards", LOST_REASON, *batch, dry_run=dry_run)


def without(ids: Iterable[bytes], others: Collection[bytes]) -> dict[bytes, None]:
    """The IDs that are not among the others, in order."""
    return {item_id: None for item_id in ids if item_id not in others}
