"""What a verb would do, found out by reading: the dry runs of add, complete, touch and release."""

from collections.abc import Iterable, Iterator

from rwq_cli.core.batches import Pause, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import Glance, glance
from rwq_cli.core.model import NewItem, Outcome, Status
from rwq_cli.core.paging import walk_list
from rwq_cli.core.states import is_guard


def would_add(
    connection: Connection, keys: QueueKeys, items: Iterable[NewItem | Pause], *, unique: bool
) -> Iterator[Outcome]:
    """Which items would be added; an ID that comes twice in the stream is a duplicate, too.

    Memory grows with the number of IDs here, because none of them is written down anywhere.
    """
    met: set[bytes] = set()
    for batch in in_batches(items, size=lambda item: len(item.data)):
        exists = connection.call_all([("EXISTS", keys.item(item.item_id)) for item in batch])
        for item, there in zip(batch, exists, strict=True):
            is_new = unique or not (there or item.item_id in met)
            met.add(item.item_id)
            yield Outcome(item.item_id, Status.ADDED if is_new else Status.DUPLICATE)


def would_complete(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause], *, owner: bytes | None
) -> Iterator[Outcome]:
    """Which items would be completed."""
    for item_id, seen in _glances(connection, keys, ids):
        if not seen.has_data:
            yield Outcome(item_id, Status.MISSING)
        elif owner and (seen.lease is None or seen.lease.holder != owner):
            holder = seen.lease.holder if seen.lease else None
            yield Outcome(item_id, Status.NOT_OWNER, holder)
        else:
            yield Outcome(item_id, Status.COMPLETED)


def would_touch(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause]
) -> Iterator[Outcome]:
    """Which leases would get a new expiry."""
    for item_id, seen in _glances(connection, keys, ids):
        if not seen.has_data:
            yield Outcome(item_id, Status.MISSING)
        elif seen.lease is None or is_guard(seen.lease):
            yield Outcome(item_id, Status.NOT_LEASED)
        else:
            yield Outcome(item_id, Status.TOUCHED, seen.lease.holder)


def would_release(
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    own_holder: bytes,
    force: bool,
    front: bool,
) -> Iterator[Outcome]:
    """Which items would be put back."""
    for block in in_batches(ids, items_max=100_000):
        sought = set(block)
        waiting: set[bytes] = set()
        for page in walk_list(connection, keys.main, newest_first=True):
            waiting.update(sought.intersection(page))
        for item_id, seen in _glances(connection, keys, block):
            holder = seen.lease.holder if seen.lease else None
            if not seen.has_data:
                yield Outcome(item_id, Status.MISSING)
            elif item_id in waiting and not front:
                yield Outcome(item_id, Status.ALREADY_WAITING, holder)
            elif item_id not in waiting and holder and holder != own_holder and not force:
                yield Outcome(item_id, Status.NOT_OWNER, holder)
            else:
                yield Outcome(item_id, Status.RELEASED, holder)


def _glances(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause]
) -> Iterator[tuple[bytes, Glance]]:
    for batch in in_batches(ids):
        distinct = list(dict.fromkeys(batch))
        yield from zip(distinct, glance(connection, keys, distinct), strict=True)
