"""Remover items, and what the holder of a lease may do with it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_BYTES, BATCH_ITEMS, Flush, in_batches
from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import OutOfMemory, PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of
from rwq_cli.core.inspect.report import PREVIEW_BYTES
from rwq_cli.core.items.bulk import LeasePolicy, act_on_ids, outcome_batch
from rwq_cli.core.items.promote import promote
from rwq_cli.core.items.result_options import ResultOptions, result_args
from rwq_cli.core.model import Item, Lease, OutcomeBatch, State
from rwq_cli.core.server.connection import REFUSED
from rwq_cli.core.server.push_waiter import PushWaiter

# Two new keys an item: while the server makes room in its table of keys, each costs it up to
# fifteen microseconds instead of two.
LEASE_ITEMS = 250
# A wait is cut into slices, so that what falls due on the clock alone is noticed.
_WAIT_SLICE_S = 1.0
# What a reply says before the items.
_HEAD = 4


class LeasedBatch(NamedTuple):
    """The items that one call leased.

    Attributes:
        ids: Their IDs, next first.
        data: Their payloads, in the same order; empty strings where they were not asked for.
        returns: How often a clean brought each back, in the same order; empty where nobody counted.
        queue: The name of their queue.
    """

    ids: Sequence[bytes]
    data: Sequence[bytes]
    returns: Sequence[bytes | None]
    queue: bytes


def _batch(queue: Queue, reply: Sequence[Any]) -> LeasedBatch:
    return LeasedBatch(reply[_HEAD::2], reply[_HEAD + 1 :: 2], reply[_HEAD - 1], queue.name)


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What to lease, and as whom.

    Attributes:
        count: How many items at most.
        holder: What to write into the leases.
        lease_ms: How long they last, milliseconds.
        data: Return the payloads.
    """

    count: int
    holder: bytes
    lease_ms: int
    data: bool = True

    def args(self, items: int, entries: int) -> tuple[object, ...]:
        """The arguments of one call for so many items, which looks at so many entries of main."""
        limits = (min(LEASE_ITEMS, items), BATCH_BYTES, min(LEASE_ITEMS, entries))
        wants_data = "1" if self.data else "0"
        return (self.holder, self.lease_ms, *limits, wants_data)


def lease_batches(
    queues: Sequence[Queue],
    order: LeaseRequest,
    *,
    wait_s: float,
    clock: Clock,
    shuffle: Callable[[list[Queue]], object] | None = None,
) -> Iterator[LeasedBatch]:
    """Lease items of the first queue that has any.

    Of many, the next calls are sent while the server works on one.

    What is due is promoted first. Waiting pops nothing, see `core.server.push_waiter`: it lasts
    until there is an item in any of the queues, until the next delayed item is due, or a second.
    Only then the atomic lease runs, on one queue after the other.

    Args:
        queues: The queues, the one to be preferred first; none of them twice.
        order: What to lease.
        wait_s: Seconds to wait for the first item; 0 not at all, infinity until there is one.
        clock: Measures the waiting.
        shuffle: Changes the order of the queues, before each attempt; None leaves it as it is.

    Raises:
        ServerError: The server refused, or was lost. A call whose reply was lost may have leased
            items; they return by a clean when that lease has ended.

    Yields:
        What each call takes, all of one queue; nothing if there was nothing.
    """
    deadline_s = clock.monotonic() + wait_s
    # A few more entries than items are wanted, for the ghosts among them.
    entries = order.count + 32
    connection, lists = queues[0].connection, [queue.keys.main for queue in queues]
    with connection.deadline(wait_s), PushWaiter(connection, lists) as waiter:
        while True:
            turn = list(queues)
            if shuffle is not None:
                shuffle(turn)
            first = _lease_from_first(turn, order, entries)
            if first.batch is not None:
                break
            entries = LEASE_ITEMS
            left_s = deadline_s - clock.monotonic()
            if left_s <= 0:
                return
            waiter.wait(max(0.001, min(_WAIT_SLICE_S, left_s, first.due_in_s)))
    # Whatever becomes of the rest: what is leased is told.
    yield first.batch
    if first.more_due:
        # It is for others as much as for us, and somebody who may do it will come.
        with suppress(PermissionDenied, OutOfMemory):
            deque(promote(first.queue), maxlen=0)
    yield from _lease_the_rest(first.queue, order, order.count - len(first.batch.ids))


class _First(NamedTuple):
    """What came of one turn over the queues.

    Attributes:
        queue: The queue that had something, or the last one.
        batch: What was leased of it; None for nothing anywhere.
        more_due: Whether more than the call could promote is due there.
        due_in_s: Where there was nothing, in how many seconds the next delayed item of any of them
            is due.
    """

    queue: Queue
    batch: LeasedBatch | None
    more_due: bool
    due_in_s: float


def _lease_from_first(queues: Iterable[Queue], order: LeaseRequest, entries: int) -> _First:
    """Try the queues in turn."""
    due_in_s = float("inf")
    for queue in queues:
        looked_at = entries
        while True:
            args = order.args(order.count, looked_at)
            reply = queue.run("lease", *args)
            looked_at = LEASE_ITEMS
            ghosts, more_due, due_in_ms = reply[:3]
            batch = _batch(queue, reply)
            if batch.ids:
                return _First(queue, batch, bool(more_due), 0.0)
            promoted = sum(len(call.ids) for call in promote(queue)) if more_due else 0
            if not (ghosts or promoted):
                break
        if due_in_ms >= 0:
            due_in_s = min(due_in_s, due_in_ms / 1000)
    return _First(queue, None, False, due_in_s)


def _lease_the_rest(queue: Queue, order: LeaseRequest, count: int) -> Iterator[LeasedBatch]:
    """Lease up to `count` more, until there is nothing, with calls sent ahead of the replies.

    All calls on their way together never ask for more than is still wanted.
    """
    asked: deque[int] = deque()
    dry, wanted = False, count
    if count > 0:
        waiting = lengths_of(queue, queue.keys.main)
        queue.progress.begin("leasing", lambda: min(wanted, waiting()))

    def calls() -> Iterator[Sequence[object]]:
        while not dry and (items := min(LEASE_ITEMS, count - sum(asked))) > 0:
            asked.append(items)
            yield order.args(items, LEASE_ITEMS)

    while count > 0 and not dry:
        for reply in queue.run_each("lease", calls()):
            asked.popleft()
            if reply is REFUSED:
                continue
            ghosts, ids = reply[0], reply[_HEAD::2]
            count -= len(ids)
            queue.progress.advance(len(ids))
            dry = dry or not (ids or ghosts)
            if ids:
                yield _batch(queue, reply)


class Leased(Iterator[Item]):
    """Leased items, one by one by iteration, or in the batches in which they were taken.

    Args:
        lease: The lease that each has.
        batches: The batches; reading them does the leasing.
    """

    def __init__(self, lease: Lease, batches: Iterator[LeasedBatch]) -> None:
        self.batches = batches
        self._flat = (
            leased_item(batch.queue, item_id, data, lease, count_of(count))
            for batch in batches
            for item_id, data, count in zip(
                batch.ids, batch.data, batch.returns or repeat(None, len(batch.ids)), strict=True
            )
        )

    def __next__(self) -> Item:
        return next(self._flat)


def count_of(digits: bytes | None) -> int | None:
    """How often a clean brought an item back, as the server told it; None where nobody counted."""
    return int(digits) if digits and digits.isdigit() else None


def leased_item(
    queue: bytes, item_id: bytes, data: bytes, lease: Lease, returns: int | None = None
) -> Item:
    """An item that was just leased."""
    return Item(
        queue=queue,
        item_id=item_id,
        state=State.LEASED,
        payload_bytes=len(data),
        data=data,
        preview=data[:PREVIEW_BYTES],
        lease=lease,
        returns=returns,
    )


def complete_items(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    owner: bytes | None,
    result_options: ResultOptions | None = None,
) -> Iterator[OutcomeBatch]:
    """Complete items wherever they are; of all completes of an item, ever, one wins.

    The outcome is kept in the same step, of what this call completes and of nothing else. Where
    none is kept, one that was left by an earlier item of the same ID goes.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        owner: Only where this holder still has the lease; None for any.
        result_options: The outcome to keep of each; None for none.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.
            Where an outcome is to be kept, a key of another type in its place is a refusal, too.

    Yields:
        For each ID `COMPLETED`, `MISSING` or `NOT_OWNER`, as the server acknowledges it.
    """
    return act_on_ids(
        queue,
        "complete",
        (owner or b"", *result_args(result_options)),
        ids,
        waiting_script="complete_waiting",
        parked_first=True,
        items_max=BATCH_ITEMS if result_options is None else result_options.items_max,
    )


def release_items(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    lease_policy: LeasePolicy,
    *,
    front: bool,
) -> Iterator[OutcomeBatch]:
    """Put items back into the main list now; a guard of a delayed or buried item needs no force.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        lease_policy: Whose leases may be ended.
        front: Make them the next to be leased, in this order, instead of the last.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Yields:
        For each ID `RELEASED`, `ALREADY_WAITING`, `NOT_OWNER` or `MISSING`.
    """
    args = (*lease_policy.args(), "1" if front else "0")
    return act_on_ids(queue, "release", args, ids, last_first=front, parked_first=True)


def touch_items(
    queue: Queue, ids: Iterable[bytes | Flush], *, lease_ms: int
) -> Iterator[OutcomeBatch]:
    """Give live leases a new expiry.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        lease_ms: The new time left, milliseconds.

    Yields:
        For each ID `TOUCHED`, `NOT_LEASED` or `MISSING`.
    """
    queue.progress.begin("touching")
    for batch in in_batches(ids):
        queue.progress.advance(len(batch))
        reply = queue.run("touch", lease_ms, *batch)
        yield outcome_batch(batch, reply)
