"""Waiting until a queue is empty or short, or until items are gone."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rwq_cli.core.errors import PermissionDenied, ReadOnly
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import lengths
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Counts
from rwq_cli.core.state.probe import existing

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
    """Poll until the condition is met; see `WorkQueue.wait` and `wait_for_all`."""
    (result,) = wait_for_all([queue], condition, timeout_s=timeout_s, promotes=promotes)
    return result


def wait_for_all(
    queues: Sequence[Queue],
    condition: WaitCondition | None = None,
    *,
    timeout_s: float = float("inf"),
    promotes: bool = True,
) -> Iterator[WaitResult]:
    """Poll until several queues, on one connection, all meet the condition at once.

    For each, a poll takes one round trip for its lengths, or one or two for its IDs. Finding due
    items takes two more: always if it waits for IDs, otherwise only if something is delayed. Due
    items are promoted, so that the wait needs no cleaner, unless it is told not to, or the user has
    no write permission.

    While an upstream cleaner returns an item, the item is in no list between the cleaner's two
    commands. So a queue counts as empty only after two empty polls in a row, a moment apart.

    Yields for each queue, in order, how its wait ended.
    """
    if not queues:
        return
    condition = condition or WaitCondition()
    polls_twice = not condition.ids and condition.below is None
    clock, pause_s = queues[0].clock, _FIRST_PAUSE_S
    started_s = clock.monotonic()
    left: list[Sequence[bytes]] = [condition.ids for _ in queues]
    met_at_first: list[bool] = []
    was_met = False
    with queues[0].connection.deadline(timeout_s):
        while True:
            if condition.ids:
                left = [existing(*each) for each in zip(queues, left, strict=True)]
                counts, met = [], [not ids for ids in left]
            else:
                counts = [lengths(queue) for queue in queues]
                met = [_is_met(each, condition.below) for each in counts]
            met_at_first = met_at_first or met
            is_met = all(met)
            is_over = is_met and (was_met or not polls_twice)
            waited_s = clock.monotonic() - started_s
            if is_over or (waited_s >= timeout_s and not is_met):
                break
            if was_met := is_met:
                clock.sleep(_FIRST_PAUSE_S)
                continue
            # Where the lengths are known, only if something is delayed.
            delayed = [q for q, each in zip_longest(queues, counts) if not each or each.delayed]
            promotes = promotes and all(map(_promote, delayed))
            clock.sleep(min(pause_s, timeout_s - waited_s))
            pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
        counts = counts or [lengths(queue) for queue in queues]
    remaining = [len(ids) if condition.ids else None for ids in left]
    for reached, known, number, first in zip(met, counts, remaining, met_at_first, strict=True):
        yield WaitResult(reached, known, number, waited_s, first)


def _is_met(counts: Counts, below: int | None) -> bool:
    if below is not None:
        return counts.waiting < below
    # Buried items need no worker, so they are not waited for.
    return not (counts.waiting or counts.processing or counts.delayed)


def _promote(queue: Queue) -> bool:
    """Promote due items; return whether that is allowed."""
    try:
        deque(promote(queue), maxlen=0)
    except (PermissionDenied, ReadOnly):
        return False
    return True
