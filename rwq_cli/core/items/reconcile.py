"""Delayed and buried items whose guard proves nothing: only the lists tell what they are."""

from collections.abc import Iterator, Sequence
from os import urandom
from typing import Literal, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.report import probe
from rwq_cli.core.inspect.survey import listed_ids
from rwq_cli.core.keys import CLEANING_GUARD, CLEANING_GUARD_MS
from rwq_cli.core.state.rules import is_guard


class Settled(NamedTuple):
    """What became of some items whose guard was gone, or of one lease name alone.

    Attributes:
        pushed: The items that were in no list and wait now.
        stale: The items that somebody else had brought back already: their entry is gone.
    """

    pushed: Sequence[bytes]
    stale: Sequence[bytes]


def reconcile(
    queue: Queue,
    which: Literal["delayed", "buried"],
    ids: Sequence[bytes],
) -> Iterator[Settled]:
    """Put items without a full guard onto main, unless a cleaner has returned them already.

    They are guarded by a lease of our own before the lists are read, so that nobody can push them
    between that reading and our own push.

    Args:
        queue: The queue.
        which: The zset that they have an entry in; of delayed ones only those that are due.
        ids: The IDs, in the order in which they shall be leased.

    Yields:
        What each call did; IDs that somebody works on, or that have no entry any more, are left
        out.
    """
    guard = CLEANING_GUARD + urandom(8).hex().encode()
    claimed: list[bytes] = []
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 4):
        claimed += queue.run("claim_scheduled", which, guard, CLEANING_GUARD_MS, *batch)
    if not claimed:
        return
    listed = listed_ids(queue, claimed, scheduled=False)
    for unlisted in (True, False):
        own = [item_id for item_id in claimed if (item_id not in listed) is unlisted]
        for batch in in_batches(own):
            words = (which, guard, "1" if unlisted else "0", *batch)
            pushed = queue.run("settle_scheduled", *words)
            settled = frozenset(pushed)
            yield Settled(pushed, [item_id for item_id in batch if item_id not in settled])


def would_settle(queue: Queue, ids: Sequence[bytes]) -> Iterator[Settled]:
    """What `reconcile` would do, found out by reading."""
    free = [
        item_id
        for item_id, look in zip(ids, probe(queue, ids), strict=True)
        if look.has_data and (look.lease is None or is_guard(look.lease))
    ]
    if free:
        listed = listed_ids(queue, free, scheduled=False)
        yield Settled(
            [item_id for item_id in free if item_id not in listed],
            [item_id for item_id in free if item_id in listed],
        )
