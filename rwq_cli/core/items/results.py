"""Results of completed items: waiting, and deleting by `lua/ops/delete_results.lua`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rwq_cli.core.batches import BATCH_BYTES, in_batches
from rwq_cli.core.errors import InvalidArgument, WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.results import A_RESULT, NOTHING, Result, Verdict, read_result_keys
from rwq_cli.core.model import State

RESULT_TTL_S = 3600.0
# An outcome makes a new key for each item. While the server resizes its table of keys, that costs
# up to fifteen microseconds instead of two.
_KEPT_ITEMS = 250


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """The outcome to keep of each item that a call completes.

    Attributes:
        result: The result, the same for each; None for an outcome without one.
        verdict: `REJECTED` for items that were given up.
        ttl_ms: How long to keep it, milliseconds, 1 or more.

    Raises:
        InvalidArgument: `ttl_ms` is less than 1.
    """

    result: bytes | None = None
    verdict: Verdict = Verdict.COMPLETED
    ttl_ms: int = round(RESULT_TTL_S * 1000)

    def __post_init__(self) -> None:
        if self.ttl_ms < 1:
            raise InvalidArgument("a result must be kept for at least 1 ms", "give a longer time")

    @property
    def items_max(self) -> int:
        """For how many items one call may keep it."""
        return max(1, min(_KEPT_ITEMS, BATCH_BYTES // max(1, len(self.result or b""))))


def result_args(options: ResultOptions | None) -> tuple[object, ...]:
    """The arguments that the scripts that complete take for it; None keeps nothing."""
    if options is None:
        return (b"", b"", 0, b"")
    has_result = int(options.result is not None)
    return (options.ttl_ms, options.verdict.value, has_result, options.result or b"")


@dataclass(frozen=True, slots=True)
class ResultLook:
    """What there is under an ID.

    Attributes:
        queue: The queue's name.
        item_id: The ID.
        state: The state of the item that has this ID now.
        result: What is kept of the item that was completed; None for nothing.
        timed_out: Whether the wait for the item's completion timed out.
    """

    queue: bytes
    item_id: bytes
    state: State
    result: Result | None
    timed_out: bool = False


def result(
    queue: Queue, item_id: bytes | str, *, wait: bool = False, timeout_s: float = float("inf")
) -> ResultLook:
    """What is kept of an item, and what has become of the item.

    Args:
        queue: The queue.
        item_id: The ID.
        wait: First wait until no item of this ID exists, whatever is kept of an earlier one.
        timeout_s: How long to wait, seconds.

    Raises:
        WrongType: The key of the result holds another type.
    """
    wanted = to_bytes(item_id)
    if not wait:
        queue.connection.look_only()
        return _look(queue, wanted)
    from rwq_cli.core.items.waiting import WaitCondition, wait as wait_until

    deadline_s = queue.clock.monotonic() + timeout_s
    with queue.connection.deadline(timeout_s):
        queue.connection.look_only()
        while True:
            left_s = max(0.0, deadline_s - queue.clock.monotonic())
            waited = wait_until(queue, WaitCondition(ids=(wanted,)), timeout_s=left_s)
            look = _look(queue, wanted)
            if look.state is State.GONE:
                return look
            if not waited.reached:
                return replace(look, result=None, timed_out=True)


def _look(queue: Queue, item_id: bytes) -> ResultLook:
    ((found,),) = read_result_keys(queue, [item_id], data=True)
    if found.kind not in (NOTHING, A_RESULT, "hash"):
        raise WrongType.of(queue.keys.result(item_id))
    state = _state(queue, item_id) if found.has_item else State.GONE
    return ResultLook(queue.name, item_id, state, found.result)


def _state(queue: Queue, item_id: bytes) -> State:
    from rwq_cli.core.inspect.report import state

    found = state(queue, item_id)
    # If it is gone by now, a leftover lease is not an item.
    return State.GONE if found in (State.GHOST, State.STRAY_LEASE) else found


@dataclass(slots=True)
class ResultTally:
    """What became of results that were restored.

    Attributes:
        restored: How many are in, those that replaced another among them.
        already_there: How many were not, because there is one in their place.
        rejected: How many were not, because a key in their place is no result.
    """

    restored: int = 0
    already_there: int = 0
    rejected: int = 0


def delete_results(queue: Queue, found: Sequence[Result]) -> None:
    """Delete results, unless another item of that ID was completed or added since."""
    for batch in in_batches(found):
        words: list[object] = []
        for each in batch:
            words += (each.item_id, each.completed_ms)
        queue.run("delete_results", *words)
