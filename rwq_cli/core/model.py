"""The types that the core takes and returns. Bytes stay bytes; field names give their units."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from rwq_cli.core.clock import unix_ms

if TYPE_CHECKING:
    from datetime import datetime

T = TypeVar("T")


class State(StrEnum):
    """The states of an ID, as the protocol names them. `state.rules` maps facts to them."""

    WAITING = "waiting"
    LEASED = "leased"
    HELD = "held"
    ABANDONED = "abandoned"
    ORPHANED = "orphaned"
    UNLISTED = "unlisted"
    DELAYED = "delayed"
    DUE = "due"
    BURIED = "buried"
    DUPLICATED = "duplicated"
    GHOST = "ghost"
    STRAY_LEASE = "stray-lease"
    GONE = "gone"
    WRONG_TYPE = "wrong-type"

    @property
    def has_data(self) -> bool:
        """Whether there is data under the ID; also true of keys of the wrong type."""
        return self not in _WITHOUT_DATA

    @property
    def is_item(self) -> bool:
        """Whether it is the state of an item: of data under readable keys."""
        return self.has_data and self is not State.WRONG_TYPE

    @property
    def is_leased(self) -> bool:
        """Whether the item has a lease that is not a guard."""
        return self in _LEASED

    @property
    def is_scheduled(self) -> bool:
        """Whether the item is delayed, due or buried."""
        return self in _SCHEDULED

    @property
    def is_broken(self) -> bool:
        """Whether the doctor reports every item in this state as an error or a warning."""
        return self in _BROKEN

    @property
    def may_be_in_transit(self) -> bool:
        """Whether a healthy item looks so between two commands of its worker or producer.

        Only a second look, a grace period later, tells the two apart.
        """
        return self in _IN_TRANSIT


_WITHOUT_DATA = frozenset({State.GHOST, State.STRAY_LEASE, State.GONE})
_LEASED = frozenset({State.LEASED, State.HELD, State.UNLISTED})
_SCHEDULED = frozenset({State.DELAYED, State.DUE, State.BURIED})
_IN_TRANSIT = frozenset(
    {State.ABANDONED, State.ORPHANED, State.UNLISTED, State.DUPLICATED, State.GHOST}
)
_BROKEN = _IN_TRANSIT | {State.HELD, State.WRONG_TYPE}

# The codes of states in the replies of scripts; `core/lua` makes a Lua table of them.
STATE_CODES = dict(zip(State, "wlhaoudtbDgsGW", strict=True))


class Lease(NamedTuple):
    """A lease that exists.

    Attributes:
        holder: The value of the lease key: who holds it.
        ttl_ms: Milliseconds until it ends; None for no expiry.
    """

    holder: bytes
    ttl_ms: int | None

    @property
    def ends(self) -> bool:
        """Whether the lease has an expiry."""
        return self.ttl_ms is not None


# Larger scores are not times: they may be infinite, or not exact to the millisecond.
TIME_MS_MAX = 2**53
# Numbers in hashes, the times of results and counts of returns, have this many digits at most: Lua
# counts exactly up to 2^53.
DIGITS_MAX = 15
# How much of the data `Item.preview` holds.
PREVIEW_BYTES = 200


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
    """Items to add in one call.

    Attributes:
        ids: Their IDs.
        data: Their payloads, in the same order.
        dues: When each is due, in the same order; None if none is delayed.
        random_ids: Whether the IDs were generated for these items, so no other item had one.
    """

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


class Item(NamedTuple):
    """An item as a listing shows it.

    Attributes:
        queue: The queue's name.
        item_id: The ID.
        state: Its state when it was read.
        payload_bytes: Size of the data; None if it was not read, or the item has no data.
        data: All of the data if requested, else None.
        preview: The first bytes of the data; None if they were not read.
        position: 0 is next to be leased; None if it is not waiting.
        idle_s: Seconds since the data key was last used, which for a waiting item is about its
            age; None if the server cannot tell.
        lease: The lease, or None.
        due_ms: For delayed items, when they are due, unix ms; else None.
        buried_ms: For buried items, when they were buried, unix ms; else None.
        reason: For buried items, why; else None.
        returns: How often a clean returned it, or an attempt failed; None if unknown.
    """

    queue: bytes
    item_id: bytes
    state: State
    payload_bytes: int | None = None
    data: bytes | None = None
    preview: bytes | None = None
    position: int | None = None
    idle_s: int | None = None
    lease: Lease | None = None
    due_ms: int | None = None
    buried_ms: int | None = None
    reason: bytes | None = None
    returns: int | None = None

    @property
    def due_at(self) -> "datetime | None":
        """When a delayed item is due; None for others."""
        return _time_of(self.due_ms)

    @property
    def buried_at(self) -> "datetime | None":
        """When a buried item was buried; None for others."""
        return _time_of(self.buried_ms)


def _time_of(unix_ms: int | None) -> "datetime | None":
    from datetime import UTC, datetime

    return None if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, tz=UTC)


class Status(StrEnum):
    """What an operation did to one ID, or why it did nothing.

    Attributes:
        code: Its letter in the replies of scripts and in batches; `core/lua` makes a Lua table of
            them.
        infinitive: What a dry run says that it would do; empty if it would do nothing.
        meaning: What it means, for the reference; empty if no command shows it.
    """

    code: str
    infinitive: str
    meaning: str

    def __new__(cls, word: str, code: str, infinitive: str = "", meaning: str = "") -> "Status":
        """The status with this word."""
        status = str.__new__(cls, word)
        status._value_ = word
        status.code, status.infinitive, status.meaning = code, infinitive, meaning
        return status

    ADDED = "added", "a", "add", "it was added"
    DUPLICATE = "duplicate", "d", "", "its ID exists; counted as `duplicates`"
    COMPLETED = "completed", "c", "complete", "it was completed by this call"
    TOUCHED = "touched", "t", "touch", "its lease has a new expiry"
    RELEASED = "released", "r", "release", "it waits again"
    ALREADY_WAITING = "already-waiting", "w", "", "it waits already"
    MISSING = "missing", "m", "", "there is no such item"
    NOT_OWNER = "not-owner", "o", "", "another session has leased it"
    NOT_LEASED = "not-leased", "n", "", "nobody holds it"
    IMPORTED = "imported", "i", "import", "it was imported"
    ALREADY_THERE = "already-there", "h", "", "it exists already, with the same data"
    SKIPPED = "skipped", "s", "skip", "its ID exists with other data, and that was kept"
    REPLACED = "replaced", "p", "replace", "it replaces the item that had its ID"
    CONFLICT = (
        "conflict",
        "f",
        "",
        "its ID exists with other data, or in the other queue; `conflicts` of `import` and `undo`",
    )
    REMOVED = "removed", "x", "remove", "it was removed"
    MOVED = "moved", "v", "move", "it is in the other queue"
    CHANGED = "changed", "g", "", "it is no longer what was chosen"
    WRONG_TYPE = "wrong-type", "y", "", "one of its keys has the wrong type"
    DELAYED = "delayed", "l", "delay", "it is delayed"
    BURIED = "buried", "b", "bury", "it is buried"
    ALREADY_BURIED = "already-buried", "e", "", "it is buried already"
    KICKED = "kicked", "k", "kick", "it waits again"
    NOT_BURIED = "not-buried", "u", "", "it is not buried"
    PROMOTED = "promoted", "P", "promote", "it was due, and waits again"
    RETURNED = "returned", "R", "return", "its worker had died, and it waits again"
    DROPPED = "dropped", "D", "drop", "an entry without data, or a surplus one, was dropped"
    PRUNED = (
        "pruned",
        "U",
        "prune",
        "a stale entry was removed: its item is gone, or is in another state",
    )
    GUARDED = "guarded", "G"
    IMPORTED_BEFORE = (
        "imported-before",
        "I",
        "",
        "it was imported by an earlier run that was interrupted",
    )
    SET = "set", "S", "set", "its data was replaced"
    UNCHANGED = "unchanged", "N", "", "it already had this data"
    # Perhaps in transit between two commands of its worker or producer: it is checked again after
    # the grace period. Internal to the core.
    IN_TRANSIT = "in-transit", "q"
    # Not where the caller saw it, so it is looked up again. Internal to the core.
    ELSEWHERE = "elsewhere", "-"


STATUS_CODES = {status: status.code for status in Status}
_STATUS_OF_CODE = {status.code: status for status in Status}


class Outcome(NamedTuple):
    """An ID and its status after an operation.

    Attributes:
        item_id: The ID.
        status: Its status.
        holder: For `NOT_OWNER`, who holds the lease; else None.
        state: For `PRUNED`, the state of the item; else None.
    """

    item_id: bytes
    status: Status
    holder: bytes | None = None
    state: State | None = None


class OutcomeBatch:
    """The outcomes of one call, stored as compactly as the server replied.

    Args:
        ids: The IDs.
        codes: One code of `STATUS_CODES` for each ID.
        details: Who holds the lease, for each `NOT_OWNER`, and the state, for each `PRUNED`, in
            order.
    """

    __slots__ = ("_codes", "_details", "ids")

    def __init__(self, ids: Sequence[bytes], codes: str, details: Sequence[bytes] = ()) -> None:
        self.ids = ids
        self._codes = codes
        self._details = details

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> "OutcomeBatch":
        """A batch of these outcomes."""
        known = list(outcomes)
        return cls(
            [outcome.item_id for outcome in known],
            "".join(STATUS_CODES[outcome.status] for outcome in known),
            [
                outcome.state.encode() if outcome.state else outcome.holder or b""
                for outcome in known
                if outcome.status in (Status.NOT_OWNER, Status.PRUNED)
            ],
        )

    @classmethod
    def all_of(cls, ids: Sequence[bytes], status: Status) -> "OutcomeBatch":
        """A batch in which all IDs have the same status."""
        return cls(ids, STATUS_CODES[status] * len(ids))

    @classmethod
    def from_reply(cls, ids: Sequence[bytes], reply: Sequence[Any]) -> "OutcomeBatch":
        """A batch from a script's reply: the codes, then the details."""
        return cls(ids, reply[0].decode("ascii"), reply[1:])

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Outcome]:
        details = iter(self._details)
        for item_id, code in zip(self.ids, self._codes, strict=True):
            status = _STATUS_OF_CODE[code]
            if status is Status.NOT_OWNER:
                yield Outcome(item_id, status, holder=next(details, b"") or None)
            elif status is Status.PRUNED:
                yield Outcome(item_id, status, state=State(next(details).decode()))
            else:
                yield Outcome(item_id, status)

    @property
    def statuses(self) -> Iterator[Status]:
        """The statuses, in the order of the IDs."""
        return map(_STATUS_OF_CODE.__getitem__, self._codes)

    def only(self, wanted: Set[bytes]) -> "OutcomeBatch":
        """The outcomes of these IDs only."""
        if wanted >= set(self.ids):
            return self
        return OutcomeBatch.of(outcome for outcome in self if outcome.item_id in wanted)

    def located(self) -> "OutcomeBatch":
        """The outcomes without `ELSEWHERE`."""
        if STATUS_CODES[Status.ELSEWHERE] not in self._codes:
            return self
        return OutcomeBatch.of(o for o in self if o.status is not Status.ELSEWHERE)

    def ids_with(self, *statuses: Status) -> list[bytes]:
        """The IDs that have one of these statuses, in order."""
        codes = {STATUS_CODES[status] for status in statuses}
        if codes.issuperset(self._codes):
            return list(self.ids)
        if codes.isdisjoint(self._codes):
            return []
        pairs = zip(self.ids, self._codes, strict=True)
        return [item_id for item_id, code in pairs if code in codes]

    def count(self, *statuses: Status) -> int:
        """How many IDs have one of these statuses."""
        return sum(self._codes.count(STATUS_CODES[status]) for status in statuses)

    def counts(self) -> dict[Status, int]:
        """How many IDs have each status."""
        return {_STATUS_OF_CODE[code]: number for code, number in Counter(self._codes).items()}


class Batched(Iterator[T], Generic[T]):
    """Results, one by one by iteration, or in the batches in which they were acknowledged.

    Args:
        batches: The batches; reading them does the work.
    """

    def __init__(self, batches: Iterator[Iterable[T]]) -> None:
        self.batches = batches
        self._flat = chain.from_iterable(batches)

    def __next__(self) -> T:
        return next(self._flat)


class Outcomes(Batched[Outcome]):
    """The outcomes of an operation."""

    batches: Iterator[OutcomeBatch]


class Repair(StrEnum):
    """What a clean did to one ID."""

    RETURNED = "returned"
    DROPPED = "dropped"
    PROMOTED = "promoted"
    PRUNED = "pruned"
    BURIED = "buried"


class CleanAction(NamedTuple):
    """One repair that a clean did, or in a dry run would do.

    Attributes:
        item_id: The ID.
        action: The repair.
        state: The state that both looks saw, which is the reason; of a pruned entry, the state of
            its item.
        where: The structure that was changed: `main`, `processing`, `cleaning`, `delayed`,
            `buried` or `returns`; None for an item that was in none.
    """

    item_id: bytes
    action: Repair
    state: State
    where: str | None = None


class CleanBatch:
    """The actions of one call of a clean.

    Args:
        outcomes: What it did to each ID. An ID that was pruned has its state there.
        state: The state of the other IDs.
        where: The structure that was changed, as in `CleanAction`.
        dropped: The state of the IDs that were dropped, if it is another one.
    """

    __slots__ = ("_dropped", "_outcomes", "_state", "_where")

    def __init__(
        self,
        outcomes: OutcomeBatch,
        state: State,
        where: str | None,
        *,
        dropped: State | None = None,
    ) -> None:
        self._outcomes = outcomes
        self._state = state
        self._where = where
        self._dropped = dropped or state

    @property
    def ids(self) -> Sequence[bytes]:
        """The IDs."""
        return self._outcomes.ids

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[CleanAction]:
        for outcome in self._outcomes:
            state = self._dropped if outcome.status is Status.DROPPED else self._state
            action = Repair(outcome.status.value)
            yield CleanAction(outcome.item_id, action, outcome.state or state, self._where)

    def counts(self) -> dict[Repair, int]:
        """How often each repair was done."""
        return {Repair(status.value): n for status, n in self._outcomes.counts().items()}


class CleanActions(Batched[CleanAction]):
    """The actions of a clean."""

    batches: Iterator[CleanBatch]


class Counts(NamedTuple):
    """How many items a queue has, by state.

    A field is None if it was not counted: some need more than lengths, some a deep count.

    Attributes:
        queue: The queue's name.
        waiting: Length of the main list.
        processing: Length of the processing list: leased and abandoned items, and ghosts.
        delayed: Entries of the delayed sorted set, including due ones. Unless only lengths were
            read, a leased or abandoned item in processing is counted only there, and not in
            `delayed`, `due` or `buried`.
        buried: Entries of the buried sorted set.
        returned: Items that were returned at least once; without a deep count, this includes
            those that a worker completed since the last clean.
        leased: Items in processing with a lease that ends; None if only lengths were read. Without
            a deep count, this includes duplicated items.
        held: Items with a lease without expiry that is not a guard; None if only lengths were read.
        abandoned: Items in processing without a lease; None if processing was not read. Without a
            deep count, this includes duplicated items.
        due: Entries of the delayed sorted set that are due; None if only lengths were read.
        orphaned: Items in no list or sorted set without a lease; None without a deep count.
        unlisted: Items in no list or sorted set with a lease that ends; None without a deep count.
        duplicated: Items that are in the lists more than once; None without a deep count.
        ghosts: IDs in a list or sorted set that have no data; None without a deep count.
        stray_leases: IDs with a lease that have no data and are in no list or sorted set; None
            without a deep count.
        wrong_types: Item and lease keys of the wrong type; such an item is also counted where it is
            listed. None without a deep count.
        returns: How often those items were returned in total; None without a deep count.
        results: Results of completed items; None without a deep count.
        oldest_waiting_s: About how long the next item has waited, seconds; None if there is none,
            or if the server cannot tell.
        lease_soonest_ms: The shortest time left of all leases, milliseconds; None without leases.
        lease_latest_ms: The longest, milliseconds; None without leases that end.
        payload_sampled: How many payload sizes were sampled; 0 if none could be.
        payload_min_bytes: The smallest payload of the sample.
        payload_median_bytes: The median of the sample.
        payload_max_bytes: The largest of the sample.
    """

    queue: bytes
    waiting: int
    processing: int
    delayed: int
    buried: int
    returned: int = 0
    leased: int | None = None
    held: int | None = None
    abandoned: int | None = None
    due: int | None = None
    orphaned: int | None = None
    unlisted: int | None = None
    duplicated: int | None = None
    ghosts: int | None = None
    stray_leases: int | None = None
    wrong_types: int | None = None
    returns: int | None = None
    results: int | None = None
    oldest_waiting_s: int | None = None
    lease_soonest_ms: int | None = None
    lease_latest_ms: int | None = None
    payload_sampled: int = 0
    payload_min_bytes: int | None = None
    payload_median_bytes: int | None = None
    payload_max_bytes: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        lengths = (self.waiting, self.processing, self.delayed, self.buried, self.returned)
        return not (any(lengths) or self.orphaned or self.results)
