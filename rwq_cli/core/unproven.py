"""Delayed and buried items whose guard proves nothing: only the lists tell what they are."""

from collections.abc import Iterator, Sequence
from os import urandom
from typing import Literal, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import CLEANING_GUARD, CLEANING_GUARD_MS, QueueKeys
from rwq_cli.core.looking import glance
from rwq_cli.core.scripts import queue_args, queue_keys
from rwq_cli.core.states import is_guard
from rwq_cli.core.survey import listed_ids


class Settled(NamedTuple):
    """What became of some items whose guard was gone, or of one lease name alone.

    Attributes:
        pushed: The items that were in no list and wait now.
        stale: The items that somebody else had brought back already: their entry is gone.
    """

    pushed: Sequence[bytes]
    stale: Sequence[bytes]


def settle_unproven(
    connection: Connection,
    keys: QueueKeys,
    which: Literal["delayed", "buried"],
    ids: Sequence[bytes],
) -> Iterator[Settled]:
    """Put items without a full guard onto main, unless a cleaner has returned them already.

    They are guarded by a lease of our own before the lists are read, so that nobody can push them
    between that reading and our own push.

    Args:
        connection: The server.
        keys: The queue.
        which: The zset that they have an entry in; of delayed ones only those that are due.
        ids: The IDs, in the order in which they shall be leased.

    Raises:
        ServerError: The server refused, or was lost.

    Yields:
        What each call did; IDs that somebody works on, or that have no entry any more, are left
        out.
    """
    guard = CLEANING_GUARD + urandom(8).hex().encode()
    claimed: list[bytes] = []
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 4):
        claimed += connection.run(
            "claim_scheduled",
            queue_keys(keys),
            (*queue_args(keys), which, guard, CLEANING_GUARD_MS, *batch),
        )
    if not claimed:
        return
    listed = listed_ids(connection, keys, claimed, scheduled=False)
    for unlisted in (True, False):
        own = [item_id for item_id in claimed if (item_id not in listed) is unlisted]
        for batch in in_batches(own):
            words = (*queue_args(keys), which, guard, "1" if unlisted else "0", *batch)
            pushed = connection.run("settle_scheduled", queue_keys(keys), words)
            settled = frozenset(pushed)
            yield Settled(pushed, [item_id for item_id in batch if item_id not in settled])


def would_settle(
    connection: Connection, keys: QueueKeys, ids: Sequence[bytes]
) -> Iterator[Settled]:
    """What `settle_unproven` would do, found out by reading.

    Raises:
        ServerError: The server refused, or was lost.
    """
    free = [
        item_id
        for item_id, look in zip(ids, glance(connection, keys, ids), strict=True)
        if look.has_data and (look.lease is None or is_guard(look.lease))
    ]
    if free:
        listed = listed_ids(connection, keys, free, scheduled=False)
        yield Settled(
            [item_id for item_id in free if item_id not in listed],
            [item_id for item_id in free if item_id in listed],
        )
