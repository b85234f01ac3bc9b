"""Waiting until a queue is empty or short, or until items are gone."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied, ReadOnly
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import lengths
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Counts

# The pause between two polls grows from the first value to the second.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_GROWTH = 1.5


class WaitCondition(NamedTuple):
    """What to wait for; by default, until the queue is empty.

    A queue is empty when no item waits, is in processing or is delayed. Buried items stay until
    somebody kicks them, so they do not count.

    Attributes:
        below: Until fewer than this many items wait; None for another condition.
        ids: Until none of these items exists; empty for another condition.
    """

    below: int | None = None
    ids: tuple[bytes, ...] = ()


class WaitResult(NamedTuple):
    """How a wait ended.

    Attributes:
        reached: Whether the condition was met in time.
        counts: The lengths of the queue's structures at the end.
        remaining: How many of the condition's items still existed; None for another condition.
        waited_s: How long it took, seconds.
        met_at_first: Whether the first poll met the condition already.
    """

    reached: bool
    counts: Counts
    remaining: int | None
    waited_s: float
    met_at_first: bool


def wait(
    queue: Queue,
    condition: WaitCondition | None = None,
    *,
    timeout_s: float = float("inf"),
    promotes: bool = True,
) -> WaitResult:
    """Poll until the condition is met; see `WorkQueue.wait`.

    A poll takes one round trip for the lengths of the queue, or one for every 500 IDs. Finding due
    items takes two more: always if it waits for IDs, otherwise only if something is delayed.

    While an upstream cleaner returns an item, the item is in no list between the cleaner's two
    commands. So a queue counts as empty only after two empty polls in a row, a moment apart.

    Due items are promoted, so that the wait needs no cleaner, unless it is told not to, or the user
    has no write permission.
    """
    with queue.connection.deadline(timeout_s):
        return _wait(queue, condition or WaitCondition(), timeout_s, promotes)


def wait_for_all(
    queues: Sequence[Queue],
    condition: WaitCondition | None = None,
    *,
    timeout_s: float = float("inf"),
    promotes: bool = True,
) -> Iterator[WaitResult]:
    """Wait until several queues all meet the condition: one after the other, then all at once.

    Yields for each queue, in order, how its last wait ended, and how long all took.
    """
    if not queues:
        return
    clock = queues[0].clock
    started_s = clock.monotonic()
    met_at_first: Sequence[bool] = ()
    while True:
        results = []
        for queue in queues:
            left_s = max(0.0, timeout_s - (clock.monotonic() - started_s))
            results.append(wait(queue, condition, timeout_s=left_s, promotes=promotes))
        met_at_first = met_at_first or [result.met_at_first for result in results]
        if len(queues) > 1 and all(result.reached for result in results):
            # The first may have been filled again while the last was waited for.
            results = [wait(queue, condition, timeout_s=0, promotes=promotes) for queue in queues]
        waited_s = clock.monotonic() - started_s
        if waited_s >= timeout_s or all(result.reached for result in results):
            for result, met in zip(results, met_at_first, strict=True):
                yield result._replace(waited_s=waited_s, met_at_first=met)
            return
        clock.sleep(min(_FIRST_PAUSE_S, timeout_s - waited_s))


def _wait(queue: Queue, condition: WaitCondition, timeout_s: float, promotes: bool) -> WaitResult:
    clock = queue.clock
    started_s = clock.monotonic()
    pause_s, seen_empty = _FIRST_PAUSE_S, False
    met_at_first: bool | None = None
    left: Sequence[bytes] = condition.ids
    while True:
        counts: Counts | None = None
        if condition.ids:
            left = _existing(queue, left)
            reached = is_met = not left
        else:
            counts = lengths(queue)
            if condition.below is not None:
                reached = is_met = counts.waiting < condition.below
            else:
                # Buried items need no worker, so they are not waited for.
                is_met = not (counts.waiting or counts.processing or counts.delayed)
                reached, seen_empty = is_met and seen_empty, is_met
        if met_at_first is None:
            met_at_first = is_met
        waited_s = clock.monotonic() - started_s
        if reached or (waited_s >= timeout_s and not seen_empty):
            remaining = len(left) if condition.ids else None
            return WaitResult(reached, counts or lengths(queue), remaining, waited_s, met_at_first)
        if seen_empty:
            clock.sleep(_FIRST_PAUSE_S)
            continue
        if promotes and (counts is None or counts.delayed):
            promotes = _promote(queue)
        clock.sleep(min(pause_s, timeout_s - waited_s))
        pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)


def _promote(queue: Queue) -> bool:
    """Promote due items; return whether that is allowed."""
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
