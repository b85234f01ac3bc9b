"""Adding items: `lua/ops/add.lua`, or transactions for IDs that the caller knows to be new; to one
queue, or to several, each to the one that its ID picks.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from rwq_cli.core.batches import BUDGET, Acknowledged, Flush, in_doubt
from rwq_cli.core.clock import LATEST_MS, checked_s
from rwq_cli.core.errors import InvalidArgument, PermissionDenied, ServerError, WrongType, text_of
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.lua import items_max
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.commands import REFUSED, Command, Transaction

if TYPE_CHECKING:
    from datetime import datetime

# What a delayed item takes the server, as a multiple of another: three more keys, and an entry in a
# sorted set.
_DELAYED_COST = 3
_SHOWN_BY = "rwq ls --tail shows what was added last"
_EMPTY_ID = "an item's ID is empty", "give it one, or let rwq generate it"


class Due(NamedTuple):
    """When a delayed item is due, by the server's clock. A time in the past means at once.

    Attributes:
        ms: The delay in milliseconds, or the due time in whole unix ms.
        from_now: Whether `ms` is a delay, which starts when the server adds the item.
    """

    ms: float
    from_now: bool

    @classmethod
    def after(cls, delay_s: float) -> "Due":
        """Due this many seconds after the server adds the item."""
        return cls(checked_s("a delay", max(delay_s, 0.0)) * 1000, from_now=True)

    @classmethod
    def at(cls, when: "datetime | float") -> "Due":
        """Due at this time: an aware datetime, or Unix seconds."""
        if not isinstance(when, (int, float)):
            if when.tzinfo is None:
                raise InvalidArgument("the time has no time zone", "give an aware datetime")
            when = when.timestamp()
        if not abs(when) <= LATEST_MS / 1000:
            raise InvalidArgument("a time after the year 2199", "give an earlier one")
        return cls(round(when * 1000), from_now=False)


class NewItem(NamedTuple):
    """An item to add.

    Attributes:
        item_id: Its ID; any bytes but the empty string.
        data: Its payload.
        due: When it is due; None if it is not delayed.
    """

    item_id: bytes
    data: bytes
    due: Due | None = None


class NewItems(NamedTuple):
    """Items to add in one call, as columns; `random_ids`: no other item ever had one of the IDs."""

    ids: list[bytes]
    data: list[bytes]
    dues: "list[Due | None] | None" = None
    random_ids: bool = False

    def parts(self) -> "Iterator[NewItems]":
        """The same items in parts of one call each."""
        count = items_max("add") // (1 if self.dues is None else _DELAYED_COST)
        for start in range(0, len(self.ids), count):
            part = slice(start, start + count)
            dues = self.dues and self.dues[part]
            yield NewItems(self.ids[part], self.data[part], dues, self.random_ids)


def add(
    queue: Queue,
    data: bytes | str,
    item_id: bytes | str | None = None,
    *,
    delay_s: float | None = None,
    at: "datetime | float | None" = None,
) -> bool:
    """Add one item; see `WorkQueue.add`."""
    if delay_s is not None and at is not None:
        raise InvalidArgument.both("a delay", "a time")
    due = None if delay_s is None else Due.after(delay_s)
    due = due if at is None else Due.at(at)
    new_id = uuid4().hex.encode() if item_id is None else to_bytes(item_id, "an ID")
    if not new_id:
        raise InvalidArgument(*_EMPTY_ID)
    new_data = to_bytes(data, "data")
    queue.keys.check_new()
    with in_doubt(lambda: 1, _SHOWN_BY):
        if item_id is None and due is None and _may_transact(queue):
            _add_new(queue, new_id, new_data)
            return True
        kind = "random" if item_id is None else "distinct"
        delays = _dues_arg(due and [due])
        refused = queue.run("add", new_id, new_data, ids_are=kind, delays=delays)
    if refused and refused[0] < 0:
        name = text_of(new_id)
        raise WrongType(f"the data key or a lease key of {name} has the wrong type")
    return not refused


def _may_transact(queue: Queue) -> bool:
    """Return whether transactions are used: not where the user may not begin one, for whom the
    commands of the others would run without it, and not while a slot may move."""
    shared = queue.connection.shared
    if shared.may_transact is None and not queue.connection.is_cluster:
        try:
            queue.call_all([Transaction([("EXISTS", queue.keys.main)])])
            shared.may_transact = True
        except PermissionDenied:
            shared.may_transact = False
    return shared.may_transact is True


def _add_new(queue: Queue, new_id: bytes, data: bytes) -> None:
    """Add an item whose ID nothing else has: a script would take nearly twice as long."""
    data_key = queue.keys.item(new_id)
    ((_, pushed),) = queue.call_all(
        [Transaction([("SET", data_key, data), ("LPUSH", queue.keys.main, new_id)])]
    )
    if isinstance(pushed, Exception):
        # A transaction does not stop at an error: main has another type.
        queue.call("DEL", data_key)
        raise WrongType.of(queue.keys.main)


def add_batches(
    queue: Queue,
    batches: Iterable[NewItems | Flush],
    *,
    unique: bool = False,
    dry_run: bool = False,
) -> Outcomes:
    """Add a stream of items, batch by batch; see `WorkQueue.add_many`.

    At a `FLUSH` all outcomes are awaited. A `unique` batch with a delayed item is checked anyway,
    which costs little there.

    Items that need no duplicate check and have generated IDs are added by transactions: to pass
    data through a script costs twice as much as to store it. A transaction does not stop at an
    error, so the script, called without items, checks for errors first. If main is replaced by a
    key of another type after that, the first batch fails, and leaves orphans for a deep clean. A
    user who may not begin a transaction is found by one that reads: the commands of the others
    would run without it.
    """
    queue.keys.check_new()
    return Outcomes(_Addition(queue, unique, dry_run).outcomes(batches))


class _Addition:
    """Adds one stream of items; see `add_batches`."""

    def __init__(self, queue: Queue, unique: bool, dry_run: bool) -> None:
        self._queue, self._unique, self._dry_run = queue, unique, dry_run
        # What was sent, and whether by a transaction.
        self._sent: deque[tuple[NewItems, bool]] = deque()
        # In a dry run, the IDs of all earlier batches: the server does not know them.
        self._earlier_ids: set[bytes] = set()

    def outcomes(self, batches: Iterable[NewItems | Flush]) -> Iterator[OutcomeBatch]:
        queue, sent = self._queue, self._sent
        queue.progress.begin("adding")
        with (
            Acknowledged() as acknowledged,
            in_doubt(lambda: sum(len(batch.ids) for batch, _ in sent), _SHOWN_BY),
        ):
            if self._unique and not self._dry_run:
                check = queue.script("add", ids_are="any", delays="", reads_only=True)
                queue.call_all([check, Transaction([("EXISTS", queue.keys.main)])])
            for reply in queue.connection.stream(self._requests(batches)):
                batch, is_transaction = sent.popleft()
                if reply is REFUSED:
                    acknowledged.skip(len(batch.ids))
                    continue
                acknowledged.add(len(batch.ids))
                queue.progress.advance(len(batch.ids))
                yield self._outcomes_of(batch, () if is_transaction else reply)

    def _requests(self, batches: Iterable[NewItems | Flush]) -> Iterator[Command | None]:
        for batch in batches:
            if isinstance(batch, Flush):
                yield None
                continue
            if b"" in batch.ids:
                raise InvalidArgument(*_EMPTY_ID)
            for part in batch.parts():
                is_new = self._unique and part.dues is None
                is_transaction = is_new and part.random_ids and not self._dry_run
                self._sent.append((part, is_transaction))
                yield self._transaction(part) if is_transaction else self._script(part, is_new)

    def _transaction(self, items: NewItems) -> Command:
        keys = self._queue.keys
        data_keys = [keys.item_prefix + item_id for item_id in items.ids]
        data = ("MSET", *chain.from_iterable(zip(data_keys, items.data, strict=True)))
        return Transaction((data, ("LPUSH", keys.main, *items.ids)))

    def _script(self, items: NewItems, is_new: bool) -> Command:
        # The script forgets leftovers of earlier items, and leaves keys of the wrong type.
        kind = "distinct" if len(set(items.ids)) == len(items.ids) else "any"
        kind = "random" if items.random_ids else "new" if is_new else kind
        words = chain.from_iterable(zip(items.ids, items.data, strict=True))
        delays = _dues_arg(items.dues)
        return self._queue.script("add", *words, dry_run=self._dry_run, ids_are=kind, delays=delays)

    def _outcomes_of(self, items: NewItems, refused: Iterable[int]) -> OutcomeBatch:
        """The outcomes; `refused` has the places of duplicates, from 1, and of the wrong type, as
        negative numbers."""
        codes = [Status.ADDED.code] * len(items.ids)
        if self._earlier_ids and (not self._unique or items.dues is not None):
            for index, item_id in enumerate(items.ids):
                if item_id in self._earlier_ids:
                    codes[index] = Status.DUPLICATE.code
        for place in refused:
            status = Status.DUPLICATE if place > 0 else Status.WRONG_TYPE
            codes[abs(place) - 1] = status.code
        if self._dry_run:
            self._earlier_ids.update(items.ids)
        return OutcomeBatch(items.ids, "".join(codes))


def _dues_arg(dues: Sequence[Due | None] | None) -> str:
    """The script argument for the due times: one for all items, if they are equal."""
    if dues is None or not any(dues):
        return ""
    distinct = dues[:1] if dues.count(dues[0]) == len(dues) else dues
    return "".join(
        ";" if due is None else f"+{due.ms:.3f};" if due.from_now else f"{due.ms:.0f};"
        for due in distinct
    )


class BatchBuilder:
    """Collects items into batches for `add_batches`."""

    def __init__(self) -> None:
        self.items_max = items_max("add")
        self._clear()

    def _clear(self) -> None:
        self._ids: list[bytes] = []
        self._data: list[bytes] = []
        self._dues: list[Due | None] = []
        self._room_bytes = BUDGET.bytes

    def add(self, item_id: bytes, data: bytes, due: Due | None) -> bool:
        """Add an item; returns whether the batch is full now."""
        self._ids.append(item_id)
        self._data.append(data)
        self._dues.append(due)
        self._room_bytes -= len(item_id) + len(data)
        return len(self._ids) == self.items_max or self._room_bytes <= 0

    def take(self) -> Iterator[NewItems]:
        """Yield the batch, if it has items, and begin the next one."""
        if self._ids:
            items = NewItems(self._ids, self._data, self._dues if any(self._dues) else None)
            self._clear()
            yield items


def batched_items(items: Iterable[NewItem | Flush]) -> Iterator[NewItems | Flush]:
    """Split a stream of items into batches for `add_batches`; a `FLUSH` ends a batch early."""
    batch = BatchBuilder()
    for item in items:
        if isinstance(item, Flush):
            yield from batch.take()
            yield item
        elif not (
            isinstance(item, NewItem)
            and isinstance(item.item_id, bytes)
            and isinstance(item.data, bytes)
        ):
            words = ", ".join(type(word).__name__ for word in item if word is not None)
            raise TypeError(f"NewItem(item_id, data), both bytes, is wanted, not {words}")
        elif batch.add(*item):
            yield from batch.take()
    yield from batch.take()


# Items that are read before they are spread, so that a call has about its budget of one queue.
_SPREAD_ITEMS = 20_000


def picker(names: Iterable[bytes]) -> Callable[[bytes], bytes]:
    """Picks the queue of an ID by a rule that never changes: the one with the greatest 8-byte
    BLAKE2b hash of its name, a zero byte and the ID.

    So if a queue is added, only items that pick it change their queue; and if one is removed, only
    its own items do.
    """
    # Sorted: of two equal hashes, which do not happen, the first counts.
    once = sorted(set(names))
    return lambda item_id: max(
        once, key=lambda name: blake2b(b"%b\0%b" % (name, item_id), digest_size=8).digest()
    )


def add_spread(
    queues: Sequence[Queue],
    batches: Iterable[NewItems | Flush],
    *,
    unique: bool = False,
    dry_run: bool = False,
) -> Iterator[tuple[bytes, OutcomeBatch]]:
    """Add a stream of items, each to the queue that its ID picks; see `add_batches`.

    An item that is added twice goes to the same queue, where it is a duplicate. Up to 20,000 items
    are read at once, and added queue by queue; at a `FLUSH` all are awaited. Yields the name of
    each call's queue with its outcomes. `ServerError.acknowledged` is the number of items, counted
    from the first, with an acknowledged outcome; of the others, those that were yielded have one.
    """
    by_name = {queue.name: queue for queue in queues}
    pick = picker(by_name)
    done = 0
    count = min(_SPREAD_ITEMS, items_max("add") * len(by_name))

    def effort(batch: NewItems) -> int:
        return max(sum(map(len, batch.data)), BUDGET.bytes * len(batch.ids) // count)

    # A dry run notices an ID that is repeated within one call only.
    chunks = (
        iter([[batch for batch in batches if not isinstance(batch, Flush)]])
        if dry_run
        else BUDGET.split(batches, effort)
    )
    for chunk in chunks:
        are_random = all(batch.random_ids for batch in chunk)
        parts: defaultdict[bytes, BatchBuilder] = defaultdict(BatchBuilder)
        for batch in chunk:
            for item in zip(batch.ids, batch.data, batch.dues or repeat(None), strict=False):
                parts[pick(item[0])].add(*item)
        try:
            for name, part in parts.items():
                items = (batch._replace(random_ids=are_random) for batch in part.take())
                added = add_batches(by_name[name], items, unique=unique, dry_run=dry_run)
                yield from ((name, outcomes) for outcomes in added.batches)
        except ServerError as error:
            error.acknowledged, error.acknowledged_after = done, ()
            raise
        done += sum(len(batch.ids) for batch in chunk)
