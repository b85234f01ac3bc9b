"""Results of completed items: options, waiting, and deleting by `lua/ops/delete_results.lua`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.batches import BATCH_BYTES, BATCH_WRITES, in_batches
from rwq_cli.core.clock import RESULT_TTL_S, result_time_ms
from rwq_cli.core.errors import WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.results import (
    KIND_NONE,
    KIND_RESULT,
    Result,
    ResultStatus,
    read_result_keys,
)
from rwq_cli.core.model import State

if TYPE_CHECKING:
    from rwq_cli.core.items.journal import Journal


class ResultOptions:
    """The result to keep for each item that a call completes, the same for all.

    Its status is `REJECTED` for items that were given up. One that would be kept for less than 1 ms
    is an `InvalidArgument`.
    """

    def __init__(
        self,
        result: bytes | None = None,
        status: ResultStatus = ResultStatus.COMPLETED,
        ttl_s: float = RESULT_TTL_S,
    ) -> None:
        self.result = result
        self.status = status
        self.ttl_ms = result_time_ms(ttl_s)

    @property
    def items_max(self) -> int:
        """The maximum number of items for one call."""
        return max(1, min(BATCH_WRITES, BATCH_BYTES // max(1, len(self.result or b""))))


def completing_args(options: ResultOptions | None, owners: Iterable[bytes] = ()) -> dict[str, Any]:
    """The arguments of `lua/ops/complete.lua`: the results to keep, and the holders of which one
    must have the lease, none for any item."""
    return {
        "owners": b"".join(b"%d:%b" % (len(owner), owner) for owner in owners),
        "keep_ms": None if options is None else options.ttl_ms,
        "status": None if options is None else options.status.value,
        "has_result": options is not None and options.result is not None,
        "result": None if options is None else options.result,
    }


class ResultLookup(NamedTuple):
    """The result of an ID, and the state of the item with this ID.

    Attributes:
        queue: The queue's name.
        item_id: The ID.
        state: The state of the item that has this ID now.
        result: The result of the completed item; None if there is none.
        timed_out: Whether the wait for the item's completion timed out.
    """

    queue: bytes
    item_id: bytes
    state: State
    result: Result | None
    timed_out: bool = False


def result(
    queue: Queue,
    item_id: bytes | str,
    *,
    wait: bool = False,
    timeout_s: float = float("inf"),
    promotes: bool = True,
) -> ResultLookup:
    """Read the result of an ID, and the state of its item; see `WorkQueue.result`."""
    wanted = to_bytes(item_id)
    if not wait:
        queue.connection.set_no_touch()
        return _look_up(queue, wanted)
    from rwq_cli.core.items.waiting import WaitCondition, wait as wait_until

    gone = WaitCondition(ids=(wanted,))
    deadline_s = queue.clock.monotonic() + timeout_s
    with queue.connection.deadline(timeout_s):
        queue.connection.set_no_touch()
        while True:
            left_s = max(0.0, deadline_s - queue.clock.monotonic())
            waited = wait_until(queue, gone, timeout_s=left_s, promotes=promotes)
            lookup = _look_up(queue, wanted)
            if lookup.state is State.GONE:
                return lookup
            if not waited.reached:
                return lookup._replace(result=None, timed_out=True)


def _look_up(queue: Queue, item_id: bytes) -> ResultLookup:
    ((found,),) = read_result_keys(queue, [item_id], data=True)
    if found.kind not in (KIND_NONE, KIND_RESULT, "hash"):
        raise WrongType.of(queue.keys.result(item_id))
    state = State.GONE
    if found.has_item:
        (facts,) = facts_of(queue, [item_id])
        # A leftover entry or lease is not an item.
        state = facts.state if facts.has_data else State.GONE
    return ResultLookup(queue.name, item_id, state, found.result)


@dataclass(slots=True)
class ResultTally:
    """Counts of restored results."""

    # Also those that replaced one.
    restored: int = 0
    already_there: int = 0
    # Something else has the result's key.
    wrong_type: int = 0


def result_args(
    number: int, result: Result, replaceable: Mapping[bytes, str]
) -> tuple[object, ...]:
    """The arguments of `lua/ops/restore_results.lua` for a line of an export."""
    return (
        number,
        result.item_id,
        -1 if result.ttl_ms is None else max(1, result.ttl_ms),
        result.status.value,
        result.completed_ms,
        int(result.holder is not None),
        result.holder or b"",
        int(result.result is not None),
        result.result or b"",
        replaceable.get(result.item_id, ""),
    )


def save_replaced(queue: Queue, journal: "Journal", results: Sequence[Result]) -> dict[bytes, str]:
    """Save the results that others are to replace; return which may be: their times, else "-"."""
    new = {result.item_id: str(result.completed_ms) for result in results}
    replaceable = dict.fromkeys(new, "-")
    for keys in read_result_keys(queue, list(new), data=True):
        found = [key.result for key in keys if key.result is not None]
        if found:
            journal.write_results(found, [new[result.item_id] for result in found])
        replaceable.update((each.item_id, str(each.completed_ms)) for each in found)
    return replaceable


def delete_results(queue: Queue, found: Sequence[Result]) -> None:
    """Delete results, unless another item of that ID was completed or added since."""
    for batch in in_batches(found, items_max=BATCH_WRITES):
        args = [word for each in batch for word in (each.item_id, each.completed_ms)]
        queue.run("delete_results", *args)
