"""Waiting until a queue is empty or short, or items are gone, at little cost to the server."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied, ReadOnly
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import lengths
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Counts

# Between two looks: short at first, and longer the longer it takes.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """What to wait for; without a field, that the queue is empty.

    A queue is empty when no item waits, is in processing or is delayed. Buried items stay until
    somebody kicks them, so they do not count.

    Attributes:
        below: Fewer than this many items wait; None for another condition.
        ids: All of these items are gone: completed, removed, or never there; empty for another
            condition.
    """

    below: int | None = None
    ids: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitResult:
    """How a wait ended.

    Attributes:
        reached: Whether the condition was reached in time.
        counts: The lengths of the queue's structures at the end.
        remaining: How many of the condition's items still existed; None for another condition.
        waited_s: How long it took, seconds.
    """

    reached: bool
    counts: Counts
    remaining: int | None
    waited_s: float


def wait(
    queue: Queue, condition: WaitCondition | None = None, *, timeout_s: float = float("inf")
) -> WaitResult:
    """Look again and again, in one round trip each, until the condition is reached.

    While a cleaner of another language returns an item, it is in no list between the cleaner's two
    commands. So a queue is empty only if two looks in a row, a moment apart, say so.

    Items that fall due meanwhile are promoted, so that a wait does not last for lack of a clean; a
    user who may not write can still wait.

    Args:
        queue: The queue.
        condition: What to wait for; None for an empty queue.
        timeout_s: How long, seconds; 0 for one look, infinity for ever.
    """
    with queue.connection.deadline(timeout_s):
        return _wait(queue, condition or WaitCondition(), timeout_s)


def _wait(queue: Queue, condition: WaitCondition, timeout_s: float) -> WaitResult:
    clock = queue.clock
    started_s = clock.monotonic()
    pause_s, seen_empty, promotes = _FIRST_PAUSE_S, False, True
    left: Sequence[bytes] = condition.ids
    while True:
        counts: Counts | None = None
        if condition.ids:
            left = _existing(queue, left)
            reached = not left
        else:
            counts = lengths(queue)
            if condition.below is not None:
                reached = counts.waiting < condition.below
            else:
                is_empty = not (counts.waiting or counts.processing or counts.delayed)
                reached, seen_empty = is_empty and seen_empty, is_empty
        waited_s = clock.monotonic() - started_s
        if reached or (waited_s >= timeout_s and not seen_empty):
            remaining = len(left) if condition.ids else None
            return WaitResult(reached, counts or lengths(queue), remaining, waited_s)
        if seen_empty:
            clock.sleep(_FIRST_PAUSE_S)
            continue
        if promotes and (counts is None or counts.delayed):
            promotes = _promote(queue)
        clock.sleep(min(pause_s, timeout_s - waited_s))
        pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)


def _promote(queue: Queue) -> bool:
    """Promote what is due, and return whether that is allowed."""
    try:
        deque(promote(queue), maxlen=0)
    except (PermissionDenied, ReadOnly):
        return False
    return True


def _existing(queue: Queue, ids: Sequence[bytes]) -> Sequence[bytes]:
    left: list[bytes] = []
    for batch in in_batches(ids):
        exist = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in batch])
        left += [item_id for item_id, count in zip(batch, exist, strict=True) if count]
    return left
