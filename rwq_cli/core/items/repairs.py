"""The repairs of cleans and of the doctor: `lua/ops/repair.lua` and `prune.lua`.

Each takes IDs that looked broken in the same way a grace period ago. Its script checks them again,
and skips IDs that are no longer broken.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, repeat

from rwq_cli.core.batches import BLOCK_IDS, BUDGET, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of
from rwq_cli.core.items.operation import Operation
from rwq_cli.core.model import TIME_MS_MAX, OutcomeBatch, State, Status
from rwq_cli.core.state.expected import Expected, FirstLook
from rwq_cli.core.state.located import Located

_SCHEDULED = frozenset(state for state in State if state.is_scheduled)
# The script argument for a `bury_after` of None.
_NEVER = -1
# For each ID that is repaired, at most so many entries of the lists are read, which takes a third
# of its repair; so repairing many takes time in proportion to them, however long the lists are.
_ENTRIES_PER_ID = 10


def repair(
    queue: Queue,
    ids: Collection[bytes],
    states: Collection[State],
    look: FirstLook,
    bury_after: int | None = None,
    *,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Repair IDs that are still in one of these states, as `lua/ops/repair.lua` says; without
    states, stale schedule entries. Yields what was done, without the skipped."""
    args = {"bury_after": _NEVER if bury_after is None else bury_after, "looked_ms": look.at_ms}
    expected = Expected(frozenset(states), tokens=look.digests)
    repairing = Operation(queue, "repair", args, "repairing", expected, dry_run=dry_run)
    if len(ids) > BLOCK_IDS:
        entries = lengths_of(queue, queue.keys.main, queue.keys.processing)() + len(ids)
        repairing.block_ids = max(BLOCK_IDS, entries // _ENTRIES_PER_ID)
    for batch in repairing.run(ids):
        if len(repaired := batch.without(Status.SKIPPED)):
            yield repaired


def restore_guards(
    queue: Queue, ids: Iterable[bytes], *, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Put back the guards of delayed and buried items in no list that are missing under a name."""
    args = {"bury_after": _NEVER, "looked_ms": TIME_MS_MAX}
    guarding = Operation(queue, "repair", args, expected=Expected(_SCHEDULED), dry_run=dry_run)
    for batch in guarding.send([Located.unlisted(ids, since_ms=TIME_MS_MAX)]):
        yield OutcomeBatch.all_of(batch.ids_with(Status.GUARDED), Status.GUARDED)


def prune(
    queue: Queue, where: str, ids: Iterable[bytes] = (), *, samples: int = 0, dry_run: bool = False
) -> Iterator[list[bytes]]:
    """Remove entries of `delayed`, `buried` or `returns`, which stay if the item has data; or of
    `cleaning`, whose IDs are gone or in another structure. Yields the IDs of those, in batches.

    For `returns`, `samples` calls look at counts that are chosen at random: a clean that looked at
    all of them would grow with their number. If it looks at twice as many as it adds, at most about
    half of them are stale in the long run.
    """
    stale_ids = list(ids)
    budget = queue.budget("prune")
    size = budget.items
    if where == "cleaning" and stale_ids:
        # Each is looked for in the whole list.
        length = int(queue.call("LLEN", queue.keys.cleaning))
        size = max(1, min(size, budget.entries // (length + 1)))
    calls = ((0, batch) for batch in in_batches(stale_ids, items_max=size))
    pruned_ids: set[bytes] = set()
    for sample, batch in chain(calls, repeat((BUDGET.items, list[bytes]()), samples)):
        pruned = queue.run("prune", *batch, which=where, sample=sample, dry_run=dry_run)
        if fresh := [item_id for item_id in pruned if item_id not in pruned_ids]:
            pruned_ids.update(fresh)
            yield fresh
