"""Removing items: `lua/ops/remove.lua`."""

from collections.abc import Iterable

from rwq_cli.core.batches import Flush
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Journal, by_script, once_read, run, saving
from rwq_cli.core.model import Outcomes
from rwq_cli.core.state.expected import ANY, Expected

# The arguments of the script to remove items.
REMOVE_ARGS = {"keeps_leased": False, "is_first_look": False}


def remove(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal,
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Remove items with every trace of them; see `WorkQueue.remove_many`.

    They are written to the journal first; items that do not meet the conditions of `expected` any
    more are `CHANGED`. A few are removed in their order; of many, those in the lists come first.
    """
    known = once_read(queue, expected)
    act = by_script(queue, "remove", REMOVE_ARGS, known, dry_run=dry_run)
    act = saving(queue, journal, act, known, dry_run=dry_run)
    return Outcomes(run(queue, act, ids, "removing"))
