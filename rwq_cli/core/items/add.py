"""Adding items: `lua/ops/add.lua`, or transactions for IDs that the caller knows to be new."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from rwq_cli.core.batches import BATCH_BYTES, Acknowledged, Flush, in_doubt
from rwq_cli.core.clock import unix_ms
from rwq_cli.core.errors import InvalidArgument, WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.commands import REFUSED, Command, Transaction

if TYPE_CHECKING:
    from datetime import datetime

# One call takes the server about a millisecond.
ADD_ITEMS = 500
# For delayed items, each with three new keys and an entry in a sorted set.
ADD_ITEMS_LATER = 150
_SHOWN_BY = "rwq ls --tail shows what was added last"


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
        return cls(delay_s * 1000, from_now=True)

    @classmethod
    def at(cls, when: "datetime | float") -> "Due":
        """Due at this time: an aware datetime, or unix seconds."""
        return cls(unix_ms(when), from_now=False)


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

    def split(self, items_max: int) -> "Iterator[NewItems]":
        """The same items in parts, each with at most this many."""
        if len(self.ids) <= items_max:
            yield self
            return
        for start in range(0, len(self.ids), items_max):
            part = slice(start, start + items_max)
            dues = None if self.dues is None else self.dues[part]
            yield NewItems(self.ids[part], self.data[part], dues, self.random_ids)


def add(
    queue: Queue,
    data: bytes | str,
    item_id: bytes | str | None = None,
    *,
    delay_s: float | None = None,
    at_ms: int | None = None,
) -> bool:
    """Add one item; see `WorkQueue.add`. The due time `at_ms` is in unix ms."""
    due = None
    if delay_s is not None and at_ms is not None:
        raise InvalidArgument.both("a delay", "a time")
    if delay_s is not None:
        due = Due(delay_s * 1000, from_now=True)
    elif at_ms is not None:
        due = Due(at_ms, from_now=False)
    new_id = uuid4().hex.encode() if item_id is None else to_bytes(item_id)
    (outcome,) = add_many(queue, [NewItem(new_id, to_bytes(data), due)])
    if outcome.status is Status.WRONG_TYPE:
        name = outcome.item_id.decode("utf-8", "backslashreplace")
        raise WrongType(f"the data key or a lease key of {name} has the wrong type")
    return outcome.status is Status.ADDED


def add_many(
    queue: Queue,
    items: Iterable[NewItem | Flush],
    *,
    unique: bool = False,
    dry_run: bool = False,
) -> Outcomes:
    """Add a stream of items; see `add_batches`."""
    return add_batches(queue, batched_items(items), unique=unique, dry_run=dry_run)


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
    """
    queue.keys.check_new()
    return Outcomes(_outcomes(queue, batches, unique, dry_run))


def _outcomes(
    queue: Queue, batches: Iterable[NewItems | Flush], unique: bool, dry_run: bool
) -> Iterator[OutcomeBatch]:
    seen: set[bytes] = set()
    queue.progress.begin("adding")
    with Acknowledged() as acknowledged:
        for batch, reply in _replies(queue, batches, unique, dry_run):
            if reply is REFUSED:
                acknowledged.skip(len(batch.ids))
                continue
            is_checked = not unique or batch.dues is not None
            acknowledged.add(len(batch.ids))
            queue.progress.advance(len(batch.ids))
            yield _outcomes_of(batch.ids, reply, seen if is_checked else frozenset())
            if dry_run:
                # They were not added, so the server does not know them when they are repeated.
                seen.update(batch.ids)


def _outcomes_of(
    ids: Sequence[bytes], not_added: Sequence[int], repeated: Set[bytes]
) -> OutcomeBatch:
    """The outcomes of a batch, from the reply of the script, and IDs that repeat others."""
    found = {abs(at) - 1: Status.DUPLICATE if at > 0 else Status.WRONG_TYPE for at in not_added}
    for at, item_id in enumerate(ids if repeated else ()):
        if item_id in repeated:
            found.setdefault(at, Status.DUPLICATE)
    if not found:
        return OutcomeBatch.all_of(ids, Status.ADDED)
    return OutcomeBatch.of(
        Outcome(item_id, found.get(at, Status.ADDED)) for at, item_id in enumerate(ids)
    )


def _replies(
    queue: Queue, batches: Iterable[NewItems | Flush], unique: bool, dry_run: bool
) -> Iterator[tuple[NewItems, Any]]:
    """Add batches, each with the reply of the script, or `REFUSED`.

    What needs no duplicate check and has generated IDs goes by transactions: to pass data through a
    script costs twice as much as to store it. One does not stop at an error, so the script, called
    without items, checks for errors first. If main is replaced by a key of another type after that,
    the first batch fails, and leaves orphans for a deep clean. A user who may not begin a
    transaction is found by one that reads: the commands of the others would run without it.
    """
    sent: deque[NewItems] = deque()
    if unique and not dry_run:
        check = queue.script("add", known="any", delays="", reads_only=True)
        queue.call_all([check, Transaction([("EXISTS", queue.keys.main)])])

    def requests() -> Iterator[Command | None]:
        for batch in batches:
            if isinstance(batch, Flush):
                yield None
                continue
            if b"" in batch.ids:
                hint = "give it one, or let rwq generate it"
                raise InvalidArgument("an item's ID is empty", hint)
            for part in batch.split(ADD_ITEMS if batch.dues is None else ADD_ITEMS_LATER):
                sent.append(part)
                yield _request(queue, part, unique, dry_run)

    with in_doubt(lambda: sum(len(batch.ids) for batch in sent), _SHOWN_BY):
        for reply in queue.connection.stream(requests()):
            batch = sent.popleft()
            yield (
                batch,
                () if _is_unchecked(batch, unique, dry_run) and reply is not REFUSED else reply,
            )


def _is_unchecked(batch: NewItems, unique: bool, dry_run: bool) -> bool:
    return unique and not dry_run and batch.random_ids and batch.dues is None


def _request(queue: Queue, batch: NewItems, unique: bool, dry_run: bool) -> Command:
    if _is_unchecked(batch, unique, dry_run):
        data_keys = [queue.keys.item_prefix + item_id for item_id in batch.ids]
        data = ("MSET", *_interleaved(data_keys, batch.data))
        return Transaction((data, ("LPUSH", queue.keys.main, *batch.ids)))
    # The script forgets leftovers of earlier items, and leaves keys of the wrong type alone.
    known = "distinct" if len(set(batch.ids)) == len(batch.ids) else "any"
    if batch.random_ids:
        known = "random"
    elif unique and batch.dues is None:
        known = "new"
    rest, delays = _interleaved(batch.ids, batch.data), _dues_arg(batch.dues)
    return queue.script("add", *rest, dry_run=dry_run, known=known, delays=delays)


def _dues_arg(dues: Sequence[Due | None] | None) -> str:
    """The script argument for the due times: one for all items, if they are equal."""
    if dues is None or not any(dues):
        return ""
    some = dues[:1] if dues.count(dues[0]) == len(dues) else dues
    return "".join(
        ";" if due is None else f"+{due.ms:.3f};" if due.from_now else f"{due.ms:.0f};"
        for due in some
    )


def _interleaved(ids: Sequence[bytes], data: Sequence[bytes]) -> list[bytes]:
    """ID, data, ID, data, ..."""
    pairs = [*ids, *data]
    pairs[::2], pairs[1::2] = ids, data
    return pairs


class BatchBuilder:
    """Collects items into batches for `add_batches`."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._ids: list[bytes] = []
        self._data: list[bytes] = []
        self._dues: list[Due | None] = []
        self._room_bytes = BATCH_BYTES

    def add(self, item_id: bytes, data: bytes, due: Due | None) -> bool:
        """Add an item; returns whether the batch is full now."""
        self._ids.append(item_id)
        self._data.append(data)
        self._dues.append(due)
        self._room_bytes -= len(item_id) + len(data)
        return len(self._ids) == ADD_ITEMS or self._room_bytes <= 0

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
        elif batch.add(*item):
            yield from batch.take()
    yield from batch.take()
