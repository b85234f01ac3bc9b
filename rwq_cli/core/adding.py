"""Putting items in."""

from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.core.batches import BATCH_BYTES, PAUSE, Pause
from rwq_cli.core.connection import REFUSED, Connection
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import NewItem, NewItems, OutcomeBatch
from rwq_cli.core.scripts import queue_args, queue_keys

# One call takes the server about a millisecond.
ADD_ITEMS = 500


def add_batches(
    connection: Connection, keys: QueueKeys, batches: Iterable[NewItems | Pause], *, unique: bool
) -> Iterator[OutcomeBatch]:
    """Add a stream of items, batch by batch; memory does not grow with the stream.

    While the server works on one batch the next is made and sent.

    Args:
        connection: The server.
        keys: The queue.
        batches: What to add, at most 2,000 items a batch; at a `PAUSE` all outcomes are awaited.
        unique: The caller vouches that no ID is in the queue: skip the check. If that is wrong,
            the item is replaced and its ID is in the queue twice.

    Raises:
        InvalidArgument: An ID is empty.
        ServerError: The server refused, or was lost. Its `acknowledged` says how many of the
            items the server had answered for; each batch in flight is wholly in or wholly out.

    Yields:
        One batch of outcomes for each batch of items, in order, once it is acknowledged.
    """
    sent: list[NewItems] = []

    def calls() -> Iterator[Sequence[object] | None]:
        head = (*queue_args(keys), "1" if unique else "0")
        for batch in batches:
            if isinstance(batch, Pause):
                yield None
                continue
            if b"" in batch.ids:
                raise InvalidArgument("an item's ID is empty", "give it one, or let rwq make it")
            words: list[object] = [*head, *batch.ids, *batch.data]
            words[len(head) :: 2] = batch.ids
            words[len(head) + 1 :: 2] = batch.data
            sent.append(batch)
            yield words

    acknowledged = 0
    try:
        for duplicates in connection.run_each("add", queue_keys(keys), calls()):
            batch = sent.pop(0)
            if duplicates is REFUSED:
                continue
            letters = "a" * len(batch.ids)
            if duplicates:
                refused = frozenset(duplicates)
                letters = "".join("d" if at in refused else "a" for at in range(len(batch.ids)))
            acknowledged += len(batch.ids)
            yield OutcomeBatch(batch.ids, letters)
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def batched_items(items: Iterable[NewItem | Pause]) -> Iterator[NewItems | Pause]:
    """A stream of items in batches that `add_batches` takes; a `PAUSE` ends one early."""
    ids: list[bytes] = []
    data: list[bytes] = []
    size_bytes = 0
    for item in items:
        pauses = isinstance(item, Pause)
        if not isinstance(item, Pause):
            ids.append(item.item_id)
            data.append(item.data)
            size_bytes += len(item.item_id) + len(item.data)
        if ids and (pauses or len(ids) >= ADD_ITEMS or size_bytes >= BATCH_BYTES):
            yield NewItems(ids, data)
            ids, data, size_bytes = [], [], 0
        if pauses:
            yield PAUSE
    if ids:
        yield NewItems(ids, data)
