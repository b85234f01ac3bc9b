"""Taking items, and what the holder of a lease may do with it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_BYTES, BATCH_ITEMS, Pause, in_batches
from rwq_cli.core.clock import Clock
from rwq_cli.core.connection import REFUSED, Connection
from rwq_cli.core.keeping import Keeping, keeping_args
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import PREVIEW_BYTES
from rwq_cli.core.model import Item, Lease, OutcomeBatch, State
from rwq_cli.core.outcomes import act_on_ids, outcome_batch
from rwq_cli.core.paging import lengths_of
from rwq_cli.core.promotion import promote
from rwq_cli.core.scripts import queue_args, queue_keys

# Two new keys an item: while the server makes room in its table of keys, each costs it up to
# fifteen microseconds instead of two.
LEASE_ITEMS = 250
# A wait is cut into slices, so that what falls due on the clock alone is noticed.
_WAIT_SLICE_S = 1.0
# What a reply says before the items.
_HEAD = 3


class LeasedBatch(NamedTuple):
    """The items that one call leased.

    Attributes:
        ids: Their IDs, next first.
        data: Their payloads, in the same order; empty strings where they were not asked for.
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
    data: bool = True,
) -> Iterator[LeasedBatch]:
    """Lease up to `count` items.

    Of many, the next calls are sent while the server works on one.

    What is due is promoted first. Waiting pops nothing: BLMOVE from the right end of main to the
    right end of main blocks until there is an item and puts it back where it was, in one step, or
    until the next delayed item is due. Only then the atomic lease runs.

    Args:
        connection: The server.
        keys: The queue.
        holder: What to write into the leases.
        lease_ms: How long they last, milliseconds.
        count: How many items at most.
        wait_s: Seconds to wait for the first item; 0 not at all, infinity until there is one.
        clock: Measures the waiting.
        data: Return the payloads.

    Raises:
        ServerError: The server refused, or was lost. A call whose reply was lost may have leased
            items; they return by a clean when that lease has ended.

    Yields:
        What each call takes; nothing if there was nothing.
    """
    deadline_s = clock.monotonic() + wait_s

    def args(items: int, entries: int) -> tuple[object, ...]:
        wants_data = "1" if data else "0"
        limits = (min(LEASE_ITEMS, items), BATCH_BYTES, min(LEASE_ITEMS, entries))
        return (*queue_args(keys), holder, lease_ms, *limits, wants_data)

    # A few more entries than items are wanted, for the ghosts among them.
    entries = count + 32
    while True:
        reply = connection.run("lease", queue_keys(keys), args(count, entries))
        entries = LEASE_ITEMS
        ghosts, more_due, due_in_ms = reply[:_HEAD]
        batch = LeasedBatch(reply[_HEAD::2], reply[_HEAD + 1 :: 2])
        promoted = sum(len(call.ids) for call in promote(connection, keys)) if more_due else 0
        if batch.ids:
            yield batch
            break
        if ghosts or promoted:
            continue
        left_s = deadline_s - clock.monotonic()
        if left_s <= 0:
            return
        slice_s = min(_WAIT_SLICE_S, left_s)
        if due_in_ms >= 0:
            slice_s = min(slice_s, due_in_ms / 1000)
        connection.call("BLMOVE", keys.main, keys.main, "RIGHT", "RIGHT", max(0.001, slice_s))
    yield from _lease_the_rest(connection, keys, args, count - len(batch.ids))


def _lease_the_rest(
    connection: Connection,
    keys: QueueKeys,
    args: Callable[[int, int], Sequence[object]],
    count: int,
) -> Iterator[LeasedBatch]:
    """Lease up to `count` more, until there is nothing, with calls sent ahead of the replies.

    All calls on their way together never ask for more than is still wanted.
    """
    asked: deque[int] = deque()
    dry, wanted = False, count
    if count > 0:
        waiting = lengths_of(connection, keys.main)
        connection.meter.begin("leasing", lambda: min(wanted, waiting()))

    def calls() -> Iterator[Sequence[object]]:
        while not dry and (items := min(LEASE_ITEMS, count - sum(asked))) > 0:
            asked.append(items)
            yield args(items, LEASE_ITEMS)

    while count > 0 and not dry:
        for reply in connection.run_each("lease", queue_keys(keys), calls()):
            asked.popleft()
            if reply is REFUSED:
                continue
            ghosts, ids = reply[0], reply[_HEAD::2]
            count -= len(ids)
            connection.meter.advance(len(ids))
            dry = dry or not (ids or ghosts)
            if ids:
                yield LeasedBatch(ids, reply[_HEAD + 1 :: 2])


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
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    owner: bytes | None,
    keeping: Keeping | None = None,
) -> Iterator[OutcomeBatch]:
    """Complete items wherever they are; of all completes of an item, ever, one wins.

    The outcome is kept in the same step, of what this call completes and of nothing else. Where
    none is kept, one that was left by an earlier item of the same ID goes.

    Args:
        connection: The server.
        keys: The queue.
        ids: The IDs; read in batches.
        owner: Only where this holder still has the lease; None for any.
        keeping: The outcome to keep of each; None for none.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.
            Where an outcome is to be kept, a key of another type in its place is a refusal, too.

    Yields:
        For each ID `COMPLETED`, `MISSING` or `NOT_OWNER`, as the server acknowledges it.
    """
    return act_on_ids(
        connection,
        keys,
        "complete",
        (owner or b"", *keeping_args(keeping)),
        ids,
        waiting_script="complete_waiting",
        ids_max=BATCH_ITEMS if keeping is None else keeping.items_max,
    )


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
    connection.meter.begin("touching")
    for batch in in_batches(ids):
        connection.meter.advance(len(batch))
        reply = connection.run("touch", queue_keys(keys), (*queue_args(keys), lease_ms, *batch))
        yield outcome_batch(batch, reply)
