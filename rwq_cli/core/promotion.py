"""Promoting delayed items: what is due goes onto main, in the order of the due times."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.scripts import queue_args, queue_keys

# Two keys an item go, and the server makes its table of keys smaller meanwhile.
_PROMOTE_ITEMS = 250


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
    if unproven:
        from rwq_cli.core.unproven import settle_unproven, would_settle

        settle = would_settle if dry_run else settle_unproven
        for settled in settle(connection, keys, "delayed", unproven):
            yield Promoted(settled.pushed, settled.stale)
