"""Putting items in."""

from collections.abc import Iterable, Iterator

from rwq_cli.core.batches import Pause, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import NewItem, Outcome, Status
from rwq_cli.core.scripts import queue_args, queue_keys


def add_items(
    connection: Connection, keys: QueueKeys, items: Iterable[NewItem | Pause], *, unique: bool
) -> Iterator[Outcome]:
    """Add a stream of items in batches; memory does not grow with the stream.

    Args:
        connection: The server.
        keys: The queue.
        items: What to add; read no further than the batch that is being filled, which a `PAUSE`
            ends early.
        unique: The caller vouches that no ID is in the queue: skip the check. If that is wrong,
            the item is replaced and its ID is in the queue twice.

    Raises:
        InvalidArgument: An ID is empty.
        ServerError: The server refused, or was lost. Its `acknowledged` says how many of the
            items the server had answered for; the batch in flight is wholly in or wholly out.

    Yields:
        One outcome an item, in order, once the server has acknowledged its batch.
    """
    acknowledged = 0
    for batch in in_batches(items, size=_size):
        words: list[bytes] = []
        for item in batch:
            if not item.item_id:
                raise InvalidArgument("an item's ID is empty", "give it one, or let rwq make it")
            words += (item.item_id, item.data)
        try:
            duplicates = connection.run(
                "add", queue_keys(keys), (*queue_args(keys), "1" if unique else "0", *words)
            )
        except ServerError as error:
            error.acknowledged = acknowledged
            raise
        acknowledged += len(batch)
        refused = frozenset(duplicates)
        for index, item in enumerate(batch):
            status = Status.DUPLICATE if index in refused else Status.ADDED
            yield Outcome(item.item_id, status)


def _size(item: NewItem) -> int:
    return len(item.item_id) + len(item.data)
