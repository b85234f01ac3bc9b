"""Adding items to several queues, each to the one that its ID picks.

An item that is added twice goes to the same queue, where it is a duplicate. An ID picks the queue
with the greatest hash of both names (rendezvous hashing): if a queue is added to the list, only
items that pick it change their queue, and if one is removed from the list, only its own items do.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_BYTES, Flush, in_batches
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.add import ADD_ITEMS, NewItems, add_batches
from rwq_cli.core.model import OutcomeBatch

# Items that are read before they are added, so that a call has about `ADD_ITEMS` of one queue.
_READ_ITEMS = 20_000


class Picker:
    """Picks the queue of an ID by a rule that never changes: the one with the greatest 8-byte
    BLAKE2b hash of its name, a zero byte and the ID."""

    def __init__(self, names: Iterable[bytes]) -> None:
        # Sorted: of two equal hashes, which do not happen, the first counts.
        self._begun = {n: blake2b(n + b"\0", digest_size=8) for n in sorted(set(names))}

    def pick(self, item_id: bytes) -> bytes:
        """The name of the queue for this ID."""

        def digest(name: bytes) -> bytes:
            hashed = self._begun[name].copy()
            hashed.update(item_id)
            return hashed.digest()

        return max(self._begun, key=digest)


class SpreadBatch(NamedTuple):
    """The outcomes of one call, and the name of its queue."""

    queue: bytes
    outcomes: OutcomeBatch


def add_spread(
    queues: Sequence[Queue],
    batches: Iterable[NewItems | Flush],
    *,
    unique: bool = False,
    dry_run: bool = False,
) -> Iterator[SpreadBatch]:
    """Add a stream of items, each to the queue that its ID picks; see `add_batches`.

    Up to 20,000 items are read at once, and added queue by queue; at a `FLUSH` all are awaited.
    `ServerError.acknowledged` is the number of items, counted from the first, with an acknowledged
    outcome; of the others, those that were yielded have one.
    """
    by_name = {queue.name: queue for queue in queues}
    picker = Picker(by_name)
    done = 0
    items_max = min(_READ_ITEMS, ADD_ITEMS * len(by_name))

    def effort(batch: NewItems) -> int:
        return max(sum(map(len, batch.data)), BATCH_BYTES * len(batch.ids) // items_max)

    # A dry run notices an ID that is repeated within one call only.
    chunks = (
        iter([[batch for batch in batches if not isinstance(batch, Flush)]])
        if dry_run
        else in_batches(batches, size_max=BATCH_BYTES, size_of=effort)
    )
    for chunk in chunks:
        parts = _parts(chunk, picker)
        try:
            for name, items in parts.items():
                for outcomes in add_batches(
                    by_name[name], [items], unique=unique, dry_run=dry_run
                ).batches:
                    yield SpreadBatch(name, outcomes)
        except ServerError as error:
            error.acknowledged, error.acknowledged_after = done, ()
            raise
        done += sum(len(batch.ids) for batch in chunk)


def _parts(chunk: Sequence[NewItems], picker: Picker) -> dict[bytes, NewItems]:
    """The items of each queue, in their order."""
    are_random = all(batch.random_ids for batch in chunk)
    has_dues = any(batch.dues is not None for batch in chunk)
    parts: dict[bytes, NewItems] = {}
    for batch in chunk:
        for at, item_id in enumerate(batch.ids):
            name = picker.pick(item_id)
            if (part := parts.get(name)) is None:
                part = parts[name] = NewItems([], [], [] if has_dues else None, are_random)
            part.ids.append(item_id)
            part.data.append(batch.data[at])
            if part.dues is not None:
                part.dues.append(None if batch.dues is None else batch.dues[at])
    return parts
