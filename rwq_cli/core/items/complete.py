"""Completing items: `lua/ops/complete.lua`."""

from collections.abc import Collection, Iterable

from rwq_cli.core.batches import Flush
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Journal, by_script, once_read, run, saving
from rwq_cli.core.items.results import ResultOptions, completing_args
from rwq_cli.core.model import Outcomes, State
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.probe import End, ItemSnapshot, Place
from rwq_cli.core.state.rules import is_guard

# States in which a completed item is restored as it was.
_STAYS = frozenset({State.WAITING, State.DELAYED, State.DUE, State.BURIED})


def complete(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    owner: bytes | Collection[bytes] | None = None,
    result_options: ResultOptions | None = None,
    expected: Expected = ANY,
    journal: Journal | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Complete items; see `WorkQueue.complete_many`.

    The lease of each must be that of the `owner`, or of one of several; items that do not meet the
    conditions of `expected` any more are `CHANGED`. With a journal, they are written to it first.
    """
    owners = () if owner is None else (owner,) if isinstance(owner, bytes) else tuple(owner)
    args = completing_args(result_options, owners)
    if journal is None or dry_run:
        act = by_script(queue, "complete", args, expected, dry_run=dry_run)
    else:
        act = by_script(queue, "complete", args, once_read(queue, expected))
        act = saving(queue, journal, act, expected, as_saved=as_waiting)
    items_max = None if result_options is None else result_options.items_max
    return Outcomes(run(queue, act, ids, "completing", items_max=items_max))


def as_waiting(item: ItemSnapshot) -> ItemSnapshot:
    """An item as it is restored after it was completed: one that a session held, or that is broken,
    is the next to be leased."""
    if item.state in _STAYS and (item.lease is None or is_guard(item.lease)):
        return item
    waiting = item._replace(state=State.WAITING, place=Place.MAIN, nearer=item.nearer or End.NEXT)
    return waiting._replace(lease=None, due_ms=None, buried_ms=None, reason=None)
