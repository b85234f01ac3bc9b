"""Removing stale entries: `lua/ops/prune.lua`."""

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from rwq_cli.core.batches import BATCH_ITEMS, ids_per_call, in_batches
from rwq_cli.core.handle import Queue


def prune(
    queue: Queue,
    where: str,
    ids: Iterable[bytes] = (),
    *,
    samples: int = 0,
    dry_run: bool = False,
) -> Iterator[list[bytes]]:
    """Remove entries of `delayed`, `buried` or `returns`, which stay if the item has data; or of
    `cleaning`, whose IDs are gone or in another structure.

    For `returns`, `samples` calls look at counts that are chosen at random. A clean that looked at
    all of them would grow with their number. If it looks at twice as many as it adds, at most about
    half of them are stale in the long run. Yields the IDs whose entry was removed, in batches.
    """
    left = list(ids)
    size = BATCH_ITEMS // 2
    if where == "cleaning" and left:
        size = min(size, ids_per_call(int(queue.call("LLEN", queue.keys.cleaning))))
    calls = ((0, batch) for batch in in_batches(left, items_max=size))
    done: set[bytes] = set()
    for sample, batch in chain(calls, repeat((BATCH_ITEMS, list[bytes]()), samples)):
        pruned = queue.run("prune", *batch, which=where, sample=sample, dry_run=dry_run)
        if fresh := [item_id for item_id in pruned if item_id not in done]:
            done.update(fresh)
            yield fresh
