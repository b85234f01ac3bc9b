"""Completing items: `lua/ops/complete.lua`."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from rwq_cli.core.batches import BATCH_ITEMS, Flush
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Operation, apply
from rwq_cli.core.items.results import ResultOptions, completing_args
from rwq_cli.core.model import Outcomes, State
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshot import End, ItemSnapshot, Place

if TYPE_CHECKING:
    from rwq_cli.core.items.journal import Journal


def complete(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    owner: bytes | Collection[bytes] | None = None,
    result_options: ResultOptions | None = None,
    expected: Expected = ANY,
    journal: "Journal | None" = None,
    dry_run: bool = False,
) -> Outcomes:
    """Complete items; see `WorkQueue.complete_many`.

    Each of a few IDs costs a scan of both lists; for many, the lists are read once in pages.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        owner: Complete only items whose lease this holder, or one of these, still has.
        result_options: The result to keep for each; None if there is none.
        expected: The conditions that the items must still meet; otherwise they are `CHANGED`.
        journal: The journal to write the items to first, if any; see `complete_saved`.
        dry_run: Change nothing, and report what would be done.
    """
    owners = () if owner is None else (owner,) if isinstance(owner, bytes) else tuple(owner)
    args = completing_args(result_options, owners)
    items_max = BATCH_ITEMS if result_options is None else result_options.items_max
    if journal is not None and not dry_run:
        # Completing items by name needs none of this.
        from rwq_cli.core.items.remove import REMOVE_ITEMS, SavedRun, by_script

        act = by_script(queue, "complete", lambda _: args, expected)
        run = SavedRun(queue, journal, act, expected, as_saved=as_waiting)
        return Outcomes(run.apply(ids, "completing", items_max=min(items_max, REMOVE_ITEMS)))
    operation = Operation("complete", args, "completing", items_max=items_max, expected=expected)
    return Outcomes(apply(queue, operation, ids, dry_run=dry_run))


# States in which a completed item is restored as it was.
_STAYS = frozenset({State.WAITING, State.DELAYED, State.DUE, State.BURIED})


def as_waiting(item: ItemSnapshot) -> ItemSnapshot:
    """An item as it is restored after it was completed: one that a session held, or that is broken,
    is the next to be leased."""
    if item.state in _STAYS and (item.lease is None or is_guard(item.lease)):
        return item
    return item._replace(
        state=State.WAITING,
        place=Place.MAIN,
        lease=None,
        due_ms=None,
        buried_ms=None,
        reason=None,
        nearer=item.nearer or End.NEXT,
    )
