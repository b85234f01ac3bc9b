"""Taking items, and what the holder of a lease may do with it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_BYTES, BATCH_ITEMS, Pause, in_batches
from rwq_cli.core.clock import Clock
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import PREVIEW_BYTES
from rwq_cli.core.model import Item, Lease, OutcomeBatch, State
from rwq_cli.core.outcomes import act_on_ids, outcome_batch
from rwq_cli.core.scripts import queue_args, queue_keys

# A wait is cut into slices, so that what falls due on the clock alone is noticed.
_WAIT_SLICE_S = 1.0


class LeasedBatch(NamedTuple):
    """The items that one call leased.

    Attributes:
        ids: Their IDs, next first.
        data: Their payloads, in the same order.
    """

    ids: Sequence[bytes]
    data: Sequence[bytes]


def lease_batches(
    connection: Connection,
    keys: QueueKeys,
    *,
    holder: bytes,
    lease_ms: int,
    count: int,
    wait_s: float,
    clock: Clock,
) -> Iterator[LeasedBatch]:
    """Lease up to `count` items.

    Waiting pops nothing: BLMOVE from the right end of main to the right end of main blocks until
    there is an item and puts it back where it was, in one step. Only then the atomic lease runs.

    Args:
        connection: The server.
        keys: The queue.
        holder: What to write into the leases.
        lease_ms: How long they last, milliseconds.
        count: How many items at most.
        wait_s: Seconds to wait for the first item; 0 not at all, infinity until there is one.
        clock: Measures the waiting.

    Raises:
        ServerError: The server refused, or was lost. A call whose reply was lost may have leased
            items; they return by a clean when that lease has ended.

    Yields:
        What each call takes; nothing if there was nothing.
    """
    deadline_s = clock.monotonic() + wait_s
    taken = 0
    # A few more entries than items are wanted, for the ghosts among them.
    entries = count + 32
    while taken < count:
        reply = connection.run(
            "lease",
            queue_keys(keys),
            (
                *queue_args(keys),
                holder,
                lease_ms,
                min(BATCH_ITEMS, count - taken),
                BATCH_BYTES,
                min(BATCH_ITEMS, entries),
            ),
        )
        entries = BATCH_ITEMS
        ghosts, ids, data = reply[0], reply[1::2], reply[2::2]
        if ids:
            taken += len(ids)
            yield LeasedBatch(ids, data)
        if ids or ghosts:
            continue
        left_s = deadline_s - clock.monotonic()
        if taken or left_s <= 0:
            return
        connection.call(
            "BLMOVE", keys.main, keys.main, "RIGHT", "RIGHT", max(0.01, min(_WAIT_SLICE_S, left_s))
        )


class Leased(Iterator[Item]):
    """Leased items, one by one by iteration, or in the batches in which they were taken.

    Args:
        queue: The queue's name.
        lease: The lease that each has.
        batches: The batches; reading them does the leasing.
    """

    def __init__(self, queue: bytes, lease: Lease, batches: Iterator[LeasedBatch]) -> None:
        self.batches = batches
        self._flat = (
            Item(
                queue=queue,
                item_id=item_id,
                state=State.LEASED,
                payload_bytes=len(data),
                data=data,
                preview=data[:PREVIEW_BYTES],
                lease=lease,
            )
            for batch in batches
            for item_id, data in zip(batch.ids, batch.data, strict=True)
        )

    def __next__(self) -> Item:
        return next(self._flat)


def complete_items(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause], *, owner: bytes | None
) -> Iterator[OutcomeBatch]:
    """Complete items wherever they are; of all completes of an item, ever, one wins.

    Args:
        connection: The server.
        keys: The queue.
        ids: The IDs; read in batches.
        owner: Only where this holder still has the lease; None for any.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Yields:
        For each ID `COMPLETED`, `MISSING` or `NOT_OWNER`, as the server acknowledges it.
    """
    return act_on_ids(connection, keys, "complete", (owner or b"",), ids)


def release_items(
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    own_holder: bytes,
    force: bool,
    front: bool,
) -> Iterator[OutcomeBatch]:
    """Put items back into the main list now.

    Args:
        connection: The server.
        keys: The queue.
        ids: The IDs; read in batches.
        own_holder: Leases of this holder may be ended without force.
        force: End leases that others hold, too.
        front: Make them the next to be leased, in this order, instead of the last.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Yields:
        For each ID `RELEASED`, `ALREADY_WAITING`, `NOT_OWNER` or `MISSING`.
    """
    args = (own_holder, "1" if force else "0", "1" if front else "0")
    return act_on_ids(connection, keys, "release", args, ids, last_first=front)


def touch_items(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause], *, lease_ms: int
) -> Iterator[OutcomeBatch]:
    """Give live leases a new expiry.

    Args:
        connection: The server.
        keys: The queue.
        ids: The IDs; read in batches.
        lease_ms: The new time left, milliseconds.

    Raises:
        ServerError: The server refused, or was lost.

    Yields:
        For each ID `TOUCHED`, `NOT_LEASED` or `MISSING`.
    """
    for batch in in_batches(ids):
        reply = connection.run("touch", queue_keys(keys), (*queue_args(keys), lease_ms, *batch))
        yield outcome_batch(batch, reply)
