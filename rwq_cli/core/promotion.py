"""Promoting delayed items: what is due goes onto main, in the order of the due times."""

from collections.abc import Iterator, Sequence
from os import urandom
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import CLEANING_GUARD, QueueKeys
from rwq_cli.core.scripts import queue_args, queue_keys

# Two keys an item go, and the server makes its table of keys smaller meanwhile.
_PROMOTE_ITEMS = 250
# Long enough to read the lists of a very large queue; if we die, it ends by itself.
_GUARD_MS = 120_000


class Promoted(NamedTuple):
    """What one call promoted.

    Attributes:
        ids: The items that wait now, the earliest due first.
        dropped: IDs whose entry in the delayed zset meant nothing any more: no data, or an item
            that somebody works on.
    """

    ids: Sequence[bytes]
    dropped: Sequence[bytes]


def promote(
    connection: Connection, keys: QueueKeys, *, dry_run: bool = False
) -> Iterator[Promoted]:
    """Promote all that is due by the server's clock.

    Items are pushed in the order of their due times, behind what waits already. A due item whose
    guard has ended may have been returned by a cleaner of another language; such items come last,
    after a look through the lists for them.

    Args:
        connection: The server.
        keys: The queue.
        dry_run: Change nothing, and say what would be done.

    Raises:
        ServerError: The server refused, or was lost.

    Yields:
        What each call did, if it did anything.
    """
    unproven: list[bytes] = []
    # Entries that stay where they are, and are passed over.
    kept = 0
    while True:
        words = (*queue_args(keys), _PROMOTE_ITEMS, kept, "0" if dry_run else "1")
        reply = connection.run("promote", queue_keys(keys), words)
        looked_at, count = reply[0], reply[1]
        ids, rest = reply[2 : 2 + count], reply[2 + count :]
        dropped, left = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        unproven += left
        kept += looked_at if dry_run else looked_at - len(ids) - len(dropped)
        if ids or dropped:
            yield Promoted(ids, dropped)
        if looked_at < _PROMOTE_ITEMS:
            break
    if unproven and dry_run:
        yield from _would_promote_unproven(connection, keys, unproven)
    elif unproven:
        yield from _promote_unproven(connection, keys, unproven)


def _would_promote_unproven(
    connection: Connection, keys: QueueKeys, ids: Sequence[bytes]
) -> Iterator[Promoted]:
    from rwq_cli.core.looking import glance
    from rwq_cli.core.states import is_guard
    from rwq_cli.core.survey import listed_ids

    free = [
        item_id
        for item_id, look in zip(ids, glance(connection, keys, ids), strict=True)
        if look.has_data and (look.lease is None or is_guard(look.lease))
    ]
    if free:
        listed = listed_ids(connection, keys, free, scheduled=False)
        yield Promoted(
            [item_id for item_id in free if item_id not in listed],
            [item_id for item_id in free if item_id in listed],
        )


def _promote_unproven(
    connection: Connection, keys: QueueKeys, ids: Sequence[bytes]
) -> Iterator[Promoted]:
    """Promote items without a guard that are in no list.

    They are guarded by a lease of our own before the lists are read, so that nobody can push them
    between that reading and our own push.
    """
    from rwq_cli.core.survey import listed_ids

    guard = CLEANING_GUARD + urandom(8).hex().encode()
    claimed: list[bytes] = []
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 4):
        claimed += connection.run(
            "claim_due", queue_keys(keys), (*queue_args(keys), guard, _GUARD_MS, *batch)
        )
    if not claimed:
        return
    listed = listed_ids(connection, keys, claimed, scheduled=False)
    for unlisted in (True, False):
        own = [item_id for item_id in claimed if (item_id not in listed) is unlisted]
        for batch in in_batches(own):
            words = (*queue_args(keys), guard, "1" if unlisted else "0", *batch)
            promoted = connection.run("settle_due", queue_keys(keys), words)
            settled = frozenset(promoted)
            yield Promoted(promoted, [item_id for item_id in batch if item_id not in settled])
