"""Completing and removing items: `lua/ops/complete.lua`."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import RESULT_TTL_S, result_time_ms
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.operation import Operation
from rwq_cli.core.model import Outcomes, State, Status
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshots import End, ItemSnapshot, Place

# A result takes the server as long as copying so much data.
_RESULT_BYTES = 4096
# As an owner: no session, so that items that nobody leases are completed, too.
NOBODY = b""


class ResultOptions(NamedTuple):
    """The result to keep for each item that a call completes, the same for all: `REJECTED` for
    items that were given up. To keep it for less than 1 ms is an `InvalidArgument`."""

    result: bytes | None = None
    status: ResultStatus = ResultStatus.COMPLETED
    ttl_s: float = RESULT_TTL_S


def completing_args(
    options: ResultOptions | None = None,
    owners: Iterable[bytes] = (),
    done: Status = Status.COMPLETED,
) -> dict[str, Any]:
    """The arguments of the script: the results to keep, and the holders (or `NOBODY`) of which one
    must have the lease, none for any item."""
    return {
        "done": done.value,
        "owners": b"".join(b"%d:%b" % (len(owner), owner) for owner in owners),
        "keep_ms": options and result_time_ms(options.ttl_s),
        "status": options and options.status.value,
        "has_result": options is not None and options.result is not None,
        "result": options and options.result,
    }


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
    """Complete items; see `WorkQueue.complete_many`. `owner` may name several holders,
    and `NOBODY`."""
    owners = () if owner is None else (owner,) if isinstance(owner, bytes) else owner
    args = completing_args(result_options, owners)
    completion = Operation(
        *(queue, "complete", args, "completing", expected),
        journal=journal,
        as_saved=as_waiting,
        bytes_each=_RESULT_BYTES + len(result_options.result or b"") if result_options else 0,
        dry_run=dry_run,
    )
    return Outcomes(completion.run(ids))


def remove(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal | None = None,
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Remove items with every trace of them; see `WorkQueue.remove_many`. A few are removed in
    their order; of many, those in the lists come first."""
    return Outcomes(removal(queue, journal, expected=expected, dry_run=dry_run).run(ids))


def removal(
    queue: Queue,
    journal: Journal | None = None,
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Operation:
    """The operation that removes items with every trace of them."""
    args = completing_args(done=Status.REMOVED)
    return Operation(
        queue, "complete", args, "removing", expected, journal=journal, dry_run=dry_run
    )


def as_waiting(item: ItemSnapshot) -> ItemSnapshot:
    """An item as it is restored after it was completed: one that a session held, or that is broken,
    is the next to be leased."""
    is_whole = item.state is State.WAITING or item.state.is_scheduled
    if is_whole and (item.lease is None or is_guard(item.lease)):
        return item
    waiting = item._replace(state=State.WAITING, place=Place.MAIN, nearer=item.nearer or End.NEXT)
    return waiting._replace(lease=None, due_ms=None, buried_ms=None, reason=None)
