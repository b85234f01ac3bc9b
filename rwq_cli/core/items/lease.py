"""Leasing the next items: `lua/ops/lease.lua`; or items by their IDs: `lease_by_id.lua`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from itertools import chain, repeat
from math import inf
from typing import Any, NamedTuple

from rwq_cli.core.batches import in_doubt
from rwq_cli.core.clock import LEASE_S, lease_time_ms
from rwq_cli.core.handle import Queue, distinct_queues, to_bytes
from rwq_cli.core.inspect.cursor import lengths_of
from rwq_cli.core.inspect.lookup import with_details
from rwq_cli.core.inspect.places import read_items, rounds
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.lua import items_max
from rwq_cli.core.model import PREVIEW_BYTES, Batched, Item, Lease, State, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.reads import parse_lease, parse_returns
from rwq_cli.core.state.snapshots import Skipped

# Entries that a call examines in addition to the wanted items, in case one is a ghost.
_SPARE_ENTRIES = 1
# A wait is cut into slices, so that a delayed item that becomes due is noticed.
_WAIT_SLICE_S = 1.0

Shuffle = Callable[[list[Queue]], object]


@dataclass(slots=True)
class LeasedBatch:
    """The items that one call leased, next first; without a lease, as in a dry run, they wait."""

    queue: Queue
    lease: Lease | None
    ids: Sequence[bytes]
    # Empty strings if the payloads were not requested.
    data: Sequence[bytes]
    # Empty if none was ever returned.
    returns: Sequence[int | None]
    # How many entries of main the call examined; how many due ones it promoted, or -1 if there are
    # some that only `promote` can judge; if it leased nothing, when the next one is due; whether it
    # has completed the item that was `done`.
    examined: int = 0
    promoted: int = 0
    due_in_s: float = inf
    has_completed: bool = False

    @classmethod
    def of(cls, queue: Queue, reply: Sequence[Any], lease: Lease | None = None) -> "LeasedBatch":
        """The batch in a reply of `lua/ops/lease.lua`."""
        examined, promoted, due_in_ms, returned, completed, *items = reply
        due_in_s = due_in_ms / 1000 if due_in_ms >= 0 else inf
        returns = list(map(parse_returns, returned))
        columns = items[::2], items[1::2], returns
        return cls(queue, lease, *columns, examined, promoted, due_in_s, completed == 1)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Item]:
        name, state = self.queue.name, State.WAITING if self.lease is None else State.LEASED
        counts = self.returns or repeat(None, len(self.ids))
        for item_id, data, count in zip(self.ids, self.data, counts, strict=True):
            read = len(data), data, data[:PREVIEW_BYTES]
            yield Item(name, item_id, state, *read, lease=self.lease, returns=count)


class Leased(Batched[Item]):
    """The items that were leased; in a dry run, those that would be, one by one."""

    batches: Iterator[LeasedBatch]


class LeaseRequest(NamedTuple):
    """How many items to lease at most, and how; with their payloads or without."""

    items_max: int
    holder: bytes
    lease_ms: int
    data: bool = True

    def args(self, items: int, entries: int | None = None, *, skipped: int = 0) -> dict[str, Any]:
        """The arguments of one call; `skipped` are entries that a dry run has examined."""
        most = items_max("lease")
        return {
            "holder": self.holder,
            "lease_ms": self.lease_ms,
            "count_max": min(most, items),
            "entries_max": most if entries is None else min(most, entries),
            "wants_data": self.data,
            "skip": skipped,
        }


def lease_from(
    queues: Sequence[Queue],
    count: int,
    *,
    lease_s: float = LEASE_S,
    wait_s: float = 0.0,
    data: bool = True,
    shuffle: Shuffle | None = None,
    before_waiting: Callable[[], object] | None = None,
    dry_run: bool = False,
) -> Leased:
    """Lease up to `count` items of the first queue that has any, waiting only for the first item.

    Some of the items that are due are promoted first. Waiting pops nothing: it ends when a queue
    has an item, when the next delayed item is due, or after a second, and the atomic script runs
    on one queue after the other. All leases have the holder of the first queue. `shuffle` changes
    the order of preference before each attempt; `before_waiting` is called once.
    """
    distinct = distinct_queues(queues)
    first = distinct[0]
    request = LeaseRequest(count, first.holder, lease_time_ms(lease_s), data)
    if dry_run:
        first.connection.set_no_touch()
        return Leased(_leasable(distinct, request, shuffle))

    def batches() -> Iterator[LeasedBatch]:
        # Imports redis, which `rwq lease --help` does not need.
        from rwq_cli.core.server.push_waiter import PushWaiter

        clock, notify = first.clock, before_waiting
        deadline_s = clock.monotonic() + wait_s
        waiting = [queue.within(wait_s) for queue in distinct]
        lists = {queue.keys.main: queue.connection for queue in waiting}
        with closing(PushWaiter(lists)) as waiter:
            was_woken = False
            while True:
                turn = list(waiting)
                if shuffle is not None:
                    shuffle(turn)
                with _hint_at_lost_leases():
                    batch = lease_from_first(turn, request)
                if batch.ids:
                    break
                remaining_s = deadline_s - clock.monotonic()
                if remaining_s <= 0:
                    return
                if notify is not None:
                    notify()
                    notify = None
                slice_s = max(0.001, min(_WAIT_SLICE_S, remaining_s, batch.due_in_s))
                was_woken = waiter.wait(slice_s, was_fruitless=was_woken)
        # The deadline is only that of the wait.
        batch.queue = next(queue for queue in distinct if queue.name == batch.queue.name)
        # Yielded before the rest is leased, so that it is reported even if that fails.
        yield batch
        if batch.promoted < 0:
            deque(promote(batch.queue), maxlen=0)
        with _hint_at_lost_leases():
            yield from _lease_more(batch.queue, request, count - len(batch))

    return Leased(batches())


def _hint_at_lost_leases() -> AbstractContextManager[None]:
    # How many it may have leased is not known.
    return in_doubt(lambda: 0, "items may now be leased to this session: see rwq leases --mine")


def first_lease(queue: Queue, request: LeaseRequest, *done: bytes) -> Command:
    """The first call of `lease_from_first` for one queue, which examines few entries, so that it is
    short. `done` may be the ID of an item and the holder of its lease: to be completed, if it is as
    most are."""
    args = request.args(request.items_max, request.items_max + _SPARE_ENTRIES)
    return queue.script("lease", *done, **args)


def lease_from_first(queues: list[Queue], request: LeaseRequest) -> LeasedBatch:
    """Try the queues in turn; if none has items, the batch tells when the next of any is due."""
    due_in_s = inf
    for queue in queues:
        call, promotes = first_lease(queue, request), True
        while True:
            (reply,) = queue.call_all([call])
            batch = LeasedBatch.of(queue, reply, Lease(request.holder, request.lease_ms))
            if batch.ids:
                return batch
            if batch.promoted < 0 and promotes:
                deque(promote(queue), maxlen=0)
                promotes = False
            elif not batch.examined and batch.promoted <= 0:
                break
            # Only ghosts and stale entries so far.
            call = queue.script("lease", **request.args(request.items_max))
        batch.due_in_s = due_in_s = min(due_in_s, batch.due_in_s)
    return batch


def _lease_more(queue: Queue, request: LeaseRequest, count: int) -> Iterator[LeasedBatch]:
    """Lease up to `count` more, until the queue is empty, sending calls ahead of the replies: all
    outstanding ones together never request more items than are still wanted."""
    if count > 0:
        waiting, wanted = lengths_of(queue, queue.keys.main), count
        queue.progress.begin("leasing", lambda: min(wanted, waiting()))
    requested, is_empty = deque[int](), False

    def calls() -> Iterator[tuple[Sequence[bytes], Command]]:
        while not is_empty and (items := min(items_max("lease"), count - sum(requested))) > 0:
            requested.append(items)
            # How many are in doubt after a lost reply is not known.
            yield (), queue.script("lease", **request.args(items))

    while count > 0 and not is_empty:
        for _, reply in queue.run_each(calls()):
            requested.popleft()
            batch = LeasedBatch.of(queue, reply, Lease(request.holder, request.lease_ms))
            count -= len(batch)
            queue.progress.advance(len(batch))
            is_empty = is_empty or not (batch.examined or batch.promoted > 0)
            if batch.ids:
                yield batch


def _leasable(
    queues: list[Queue], request: LeaseRequest, shuffle: Shuffle | None
) -> Iterator[Iterable[Item]]:
    """The items that would be leased, for a dry run."""

    def waiting(queue: Queue) -> Iterator[Item]:
        skipped, batch = 0, None
        while batch is None or batch.examined:
            args = request.args(request.items_max, skipped=skipped)
            batch = LeasedBatch.of(queue, queue.run("lease", **args, dry_run=True))
            skipped += batch.examined
            yield from batch

    def promoted(queue: Queue) -> Iterator[Item]:
        for batch in promote(queue, dry_run=True):
            ids = batch.ids_with(Status.PROMOTED)
            parts = read_items(queue, ids, Skipped())
            items = {item.item_id: item for part in parts for item in part}
            for item in filter(None, map(items.get, ids)):
                data = item.data if request.data else b""
                yield from LeasedBatch(queue, None, [item.item_id], [data], [item.returns])

    if shuffle is not None:
        shuffle(queues)
    # A lease would drop the second entry of an ID.
    seen: set[bytes] = set()
    for queue in queues:
        for item in chain(waiting(queue), promoted(queue)):
            if item.item_id not in seen:
                seen.add(item.item_id)
                yield [item]
                if len(seen) == request.items_max:
                    return
        if seen:
            return


def lease_ids(
    queue: Queue,
    ids: Iterable[bytes | str],
    *,
    lease_s: float = LEASE_S,
    data: bool = True,
    dry_run: bool = False,
) -> Iterator[tuple[Item, bool]]:
    """Lease these items, a few, which may wait anywhere in the queue, or be delayed, due or buried.

    An item that somebody holds is left alone. So is an abandoned or orphaned item: it is not
    waiting, and needs a clean or a release. Yields for each distinct ID the item with its new
    lease, or waiting in a dry run; if it was not leased, with the state that prevented it and the
    current lease. The second value says whether it was.
    """
    lease = Lease(queue.holder, lease_time_ms(lease_s))
    for item_id in dict.fromkeys(map(to_bytes, ids)):
        args = {"holder": lease.holder, "lease_ms": lease.ttl_ms, "wants_data": data, "id": item_id}
        with _hint_at_lost_leases():
            calls = rounds(queue, {item_id: None})
            replies = (queue.run("lease_by_id", dry_run=dry_run, **c.args(), **args) for c in calls)
            reply = next(filter(None, replies))
        is_leased, state, position, holder, left_ms, payload, returned = reply
        returns = parse_returns(returned)
        item = Item(queue.name, item_id, State(state.decode()), returns=returns)
        if not is_leased:
            item = item._replace(lease=parse_lease(holder, left_ms))
        elif dry_run:
            item = item._replace(position=position if position >= 0 else None)
            (item,) = with_details(queue, [item], "data")
        else:
            (item,) = LeasedBatch(queue, lease, [item_id], [payload], [returns])
        yield item, bool(is_leased)
