"""Putting items in."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rwq_cli.core.batches import BATCH_BYTES, FLUSH, Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.model import Due, NewItem, NewItems, OutcomeBatch
from rwq_cli.core.server.acknowledged import Acknowledged
from rwq_cli.core.server.connection import REFUSED, Command

# One call takes the server about a millisecond.
ADD_ITEMS = 500
# Of items put off: three new keys each, and an entry in a sorted set.
ADD_ITEMS_LATER = 150


def add_batches(
    queue: Queue, batches: Iterable[NewItems | Flush], *, unique: bool
) -> Iterator[OutcomeBatch]:
    """Add a stream of items, batch by batch; memory does not grow with the stream.

    While the server works on one batch the next is made and sent.

    Args:
        queue: The queue.
        batches: What to add, at most 2,000 items a batch; at a `FLUSH` all outcomes are awaited.
            Batches with items that are put off are cut into smaller ones.
        unique: The caller vouches that no ID is in the queue: skip the check. If that is wrong,
            the item is replaced and its ID is in the queue twice. In a batch with an item that is
            put off the check is made all the same: it costs nothing beside the rest.

    Raises:
        InvalidArgument: An ID is empty.
        ServerError: The server refused, or was lost. Its `acknowledged` says how many of the
            items the server had answered for; each batch in flight is wholly in or wholly out.

    Yields:
        One batch of outcomes for each call, in order, once it is acknowledged.
    """
    sent: list[NewItems] = []

    def checked() -> Iterator[NewItems | None]:
        for batch in batches:
            if isinstance(batch, Flush):
                yield None
                continue
            if b"" in batch.ids:
                raise InvalidArgument("an item's ID is empty", "give it one, or let rwq make it")
            for part in [batch] if batch.dues is None else _cut(batch):
                sent.append(part)
                yield part

    replies = _replies_of_unique(queue, checked()) if unique else _if_new(queue, checked())
    queue.progress.begin("adding")
    with Acknowledged() as acknowledged:
        for duplicates in replies:
            batch = sent.pop(0)
            if duplicates is REFUSED:
                acknowledged.skip(len(batch.ids))
                continue
            letters = "a" * len(batch.ids)
            if duplicates:
                refused = frozenset(duplicates)
                letters = "".join("d" if at in refused else "a" for at in range(len(batch.ids)))
            acknowledged.add(len(batch.ids))
            queue.progress.advance(len(batch.ids))
            yield OutcomeBatch(batch.ids, letters)


def _if_new(queue: Queue, batches: Iterable[NewItems | None]) -> Iterator[Any]:
    """Add what is not there yet; the indexes of the duplicates, or `REFUSED`."""

    def calls() -> Iterator[Sequence[object] | None]:
        for batch in batches:
            if batch is None:
                yield None
                continue
            check = "distinct" if len(set(batch.ids)) == len(batch.ids) else "any"
            yield (check, _due_words(batch), *_interleaved(batch.ids, batch.data))

    return queue.run_each("add", calls())


def _cut(batch: NewItems) -> Iterator[NewItems]:
    """A batch with items that are put off, in calls that are short all the same."""
    assert batch.dues is not None
    for start in range(0, len(batch.ids), ADD_ITEMS_LATER):
        part = slice(start, start + ADD_ITEMS_LATER)
        yield NewItems(batch.ids[part], batch.data[part], batch.dues[part])


def _due_words(batch: NewItems) -> str:
    """Until when each item is put off, as the script reads it."""
    dues = batch.dues
    if dues is None or not any(dues):
        return ""
    if dues.count(dues[0]) == len(dues):
        return _due_word(dues[0])
    return "".join(map(_due_word, dues))


def _due_word(due: Due | None) -> str:
    if due is None:
        return ";"
    return f"+{due.ms:.3f};" if due.from_now else f"{due.ms:.0f};"


def _replies_of_unique(queue: Queue, batches: Iterable[NewItems | None]) -> Iterator[Any]:
    """Add without the check what is not put off; no indexes, those of the others, or `REFUSED`."""
    puts_off = False

    def kind(batch: NewItems | None) -> bool:
        nonlocal puts_off
        puts_off = puts_off if batch is None else batch.dues is not None
        return puts_off

    for later, group in groupby(batches, kind):
        yield from (_if_new if later else _without_check)(queue, group)


def _without_check(queue: Queue, batches: Iterable[NewItems | None]) -> Iterator[Any]:
    """Add in transactions, which are cheaper than a script; no indexes, or `REFUSED`.

    A transaction does not stop at an error, so the script looks for one before: without items it
    only checks. Should somebody put another key in main's place after that, the first batch fails,
    and leaves orphans for a deep clean.
    """
    queue.run("add", "any", "")

    def transactions() -> Iterator[Sequence[Command] | None]:
        for batch in batches:
            if batch is None:
                yield None
                continue
            data_keys = [queue.keys.item_prefix + item_id for item_id in batch.ids]
            yield (
                ("MSET", *_interleaved(data_keys, batch.data)),
                ("LPUSH", queue.keys.main, *batch.ids),
            )

    for reply in queue.connection.transact_each(transactions()):
        yield REFUSED if reply is REFUSED else ()


def _interleaved(ids: Sequence[bytes], data: Sequence[bytes]) -> list[bytes]:
    """ID, data, ID, data, ..."""
    words = [*ids, *data]
    words[::2], words[1::2] = ids, data
    return words


def batched_items(items: Iterable[NewItem | Flush]) -> Iterator[NewItems | Flush]:
    """A stream of items in batches that `add_batches` takes; a `FLUSH` ends one early."""
    ids: list[bytes] = []
    data: list[bytes] = []
    dues: list[Due | None] = []
    size_bytes = 0
    for item in items:
        pauses = isinstance(item, Flush)
        if not isinstance(item, Flush):
            ids.append(item.item_id)
            data.append(item.data)
            dues.append(item.due)
            size_bytes += len(item.item_id) + len(item.data)
        if ids and (pauses or len(ids) >= ADD_ITEMS or size_bytes >= BATCH_BYTES):
            yield NewItems(ids, data, dues if any(dues) else None)
            ids, data, dues, size_bytes = [], [], [], 0
        if pauses:
            yield FLUSH
    if ids:
        yield NewItems(ids, data, dues if any(dues) else None)
