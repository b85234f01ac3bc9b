"""Waiting until a queue is empty or short, or items are gone, at little cost to the server."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from rwq_cli.core.batches import in_batches
from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import PermissionDenied, ReadOnly
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import count_lengths
from rwq_cli.core.items.promote import promote
from rwq_cli.core.model import Counts

# Between two looks: short at first, for what is nearly done, and longer the longer it takes.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """What to wait for; without a field, that the queue is empty.

    A queue is empty when no item waits, is in processing or is delayed; buried ones stay until
    somebody comes for them, so they do not count.

    Attributes:
        below: Fewer than this many items wait; None for another condition.
        ids: All of these items are gone: completed, removed, or never there; empty for another.
    """

    below: int | None = None
    ids: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitResult:
    """How a wait ended.

    Attributes:
        reached: Whether the condition was reached in time.
        counts: The lengths of the queue's structures at the end.
        remaining: How many of the condition's items were still there; None for another condition.
        waited_s: How long it took, seconds.
    """

    reached: bool
    counts: Counts
    remaining: int | None
    waited_s: float


def wait_until(
    queue: Queue, condition: WaitCondition, *, timeout_s: float, clock: Clock
) -> WaitResult:
    """Look again and again, in one round trip each, until the condition is reached.

    An item that a cleaner of another language returns is in no list for a moment, between its two
    commands. So a queue is empty only when two looks in a row, a moment apart, say so.

    What falls due meanwhile is promoted, so that a wait does not last for want of a clean; a user
    who may not write waits all the same.

    Args:
        queue: The queue.
        condition: What to wait for.
        timeout_s: How long, seconds; 0 for one look, infinity for ever.
        clock: Measures the waiting, and waits.
    """
    with queue.connection.deadline(timeout_s):
        return _wait_until(queue, condition, timeout_s, clock)


def _wait_until(
    queue: Queue, condition: WaitCondition, timeout_s: float, clock: Clock
) -> WaitResult:
    started_s = clock.monotonic()
    pause_s, seen_empty = _FIRST_PAUSE_S, False
    left_ids: Sequence[bytes] = condition.ids
    promotes = True
    while True:
        counts: Counts | None = None
        if condition.ids:
            left_ids = _still_there(queue, left_ids)
            reached = not left_ids
        else:
            counts = count_lengths(
                queue,
            )
            if condition.below is not None:
                reached = counts.waiting < condition.below
            else:
                is_empty = not (counts.waiting or counts.processing or counts.delayed)
                reached, seen_empty = is_empty and seen_empty, is_empty
        waited_s = clock.monotonic() - started_s
        if reached or (waited_s >= timeout_s and not seen_empty):
            return WaitResult(
                reached=reached,
                counts=counts
                or count_lengths(
                    queue,
                ),
                remaining=len(left_ids) if condition.ids else None,
                waited_s=waited_s,
            )
        if seen_empty:
            clock.sleep(_FIRST_PAUSE_S)
            continue
        if promotes and (counts is None or counts.delayed):
            promotes = _promote(
                queue,
            )
        clock.sleep(min(pause_s, timeout_s - waited_s))
        pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)


def _promote(
    queue: Queue,
) -> bool:
    """Promote what is due; whether that is allowed."""
    try:
        deque(
            promote(
                queue,
            ),
            maxlen=0,
        )
    except (PermissionDenied, ReadOnly):
        return False
    return True


def _still_there(queue: Queue, ids: Sequence[bytes]) -> Sequence[bytes]:
    left: list[bytes] = []
    for batch in in_batches(ids):
        there = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in batch])
        left += [item_id for item_id, exists in zip(batch, there, strict=True) if exists]
    return left
