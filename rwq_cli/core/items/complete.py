"""Completing items: `lua/ops/complete.lua`."""

from collections.abc import Iterable

from rwq_cli.core.batches import BATCH_ITEMS, Flush
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Operation, act
from rwq_cli.core.items.results import ResultOptions, result_args
from rwq_cli.core.model import Outcomes
from rwq_cli.core.state.expected import ANY, Expected


def complete(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    owner: bytes | None = None,
    result_options: ResultOptions | None = None,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Complete items wherever they are; exactly one complete of an item succeeds.

    The outcome is kept in the same step, and only of items that this call completes. If none is
    kept, the outcome of an earlier item with the same ID is deleted.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        owner: Only where this holder still has the lease; None for any.
        result_options: The outcome to keep of each; None for none.
        expected: What the items were chosen for; one that is not that any more is `CHANGED`.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` says how many IDs were done. If an outcome is to be kept, a key
            of another type in its place is an error, too.

    Returns:
        For each ID `COMPLETED`, `MISSING`, `NOT_OWNER` or `CHANGED`, as the server acknowledges it.
    """
    operation = Operation(
        "complete",
        (owner or b"", *result_args(result_options)),
        "completing",
        items_max=BATCH_ITEMS if result_options is None else result_options.items_max,
        expected=expected,
    )
    return Outcomes(act(queue, operation, ids, dry_run=dry_run))
