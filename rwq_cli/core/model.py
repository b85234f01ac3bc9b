"""What the core takes and returns: frozen dataclasses; bytes stay bytes, fields say their unit."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple


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


# One letter for each state, in which scripts reply; made into a Lua table by `core/lua`.
STATE_CODES = dict(zip(State, "wlhaoudtbDgsGW", strict=True))


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that exists.

    Attributes:
        holder: The value of the lease key: who holds it.
        ttl_ms: Milliseconds until it ends; None means that it has no expiry.
    """

    holder: bytes
    ttl_ms: int | None

    @property
    def ends(self) -> bool:
        """Whether the lease ends by itself."""
        return self.ttl_ms is not None


class Due(NamedTuple):
    """Until when something is put off, by the server's clock. What is past means at once.

    Attributes:
        ms: Milliseconds, or for a time unix ms, of which it is the whole ones that count.
        from_now: Whether they count from the instant at which the server does it.
    """

    ms: float
    from_now: bool


class NewItem(NamedTuple):
    """An item to add.

    Attributes:
        item_id: Its ID; any bytes but the empty string.
        data: Its payload.
        due: Until when it is put off; None for not at all.
    """

    item_id: bytes
    data: bytes
    due: Due | None = None


class NewItems(NamedTuple):
    """Items to add in one call.

    Attributes:
        ids: Their IDs.
        data: Their payloads, in the same order.
        dues: Until when each is put off, in the same order; None where none of them is.
        random_ids: The IDs were made for these items: no item ever had one of them.
    """

    ids: list[bytes]
    data: list[bytes]
    dues: "list[Due | None] | None" = None
    random_ids: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item as a listing shows it.

    Attributes:
        queue: The queue's name.
        item_id: The ID.
        state: Its state when it was read.
        payload_bytes: Size of the data; None where it was not read, or there is none.
        data: All of the data where it was asked for, else None.
        preview: The first bytes of the data; None where they were not read.
        position: 0 is next to be leased; None if it is not waiting.
        idle_s: Seconds since the data key was last used, which for a waiting item is about its
            age; None where the server cannot say.
        lease: The lease, or None.
        due_ms: For delayed items, when they are due, unix ms; else None.
        buried_ms: For buried items, when that was, unix ms; else None.
        reason: For buried items, why; else None.
        returns: How often a cleaner returned it; None if unknown.
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


class Status(StrEnum):
    """The outcome for one ID of a batch."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    COMPLETED = "completed"
    TOUCHED = "touched"
    RELEASED = "released"
    ALREADY_WAITING = "already-waiting"
    MISSING = "missing"
    NOT_OWNER = "not-owner"
    NOT_LEASED = "not-leased"
    IMPORTED = "imported"
    ALREADY_THERE = "already-there"
    SKIPPED = "skipped"
    REPLACED = "replaced"
    CONFLICT = "conflict"
    REMOVED = "removed"
    MOVED = "moved"
    CHANGED = "changed"
    WRONG_TYPE = "wrong-type"
    DELAYED = "delayed"
    BURIED = "buried"
    ALREADY_BURIED = "already-buried"
    KICKED = "kicked"
    NOT_BURIED = "not-buried"
    PROMOTED = "promoted"
    RETURNED = "returned"
    DROPPED = "dropped"
    PRUNED = "pruned"
    GUARDED = "guarded"
    IMPORTED_BEFORE = "imported-before"
    # Perhaps in transit between two commands of its worker or producer: it is checked again after
    # the grace period. No operation of the core reports it.
    IN_TRANSIT = "in-transit"
    # Not where the caller saw it: it has to be looked for again. No operation of the core reports
    # it.
    ELSEWHERE = "elsewhere"


# One letter for each status, in which scripts reply and batches are kept. Made into a Lua table by
# `core/lua`; nothing else knows the letters.
STATUS_CODES = dict(zip(Status, "adctrwmonihspfxvgylbekuPRDUGIq-", strict=True))
_STATUS_OF_CODE = {code: status for status, code in STATUS_CODES.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one operation did to one ID.

    Attributes:
        item_id: The ID.
        status: What became of it.
        holder: For `NOT_OWNER`, who holds the lease; else None.
    """

    item_id: bytes
    status: Status
    holder: bytes | None = None


class OutcomeBatch:
    """The outcomes for the IDs of one call, kept as compactly as the server replied.

    Args:
        ids: The IDs.
        codes: One code of `STATUS_CODES` for each ID.
        holders: Who holds the lease, for each `NOT_OWNER` in order.
    """

    __slots__ = ("_codes", "_holders", "ids")

    def __init__(self, ids: Sequence[bytes], codes: str, holders: Sequence[bytes] = ()) -> None:
        self.ids = ids
        self._codes = codes
        self._holders = holders

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> "OutcomeBatch":
        """A batch of these outcomes."""
        known = list(outcomes)
        return cls(
            [outcome.item_id for outcome in known],
            "".join(STATUS_CODES[outcome.status] for outcome in known),
            [outcome.holder or b"" for outcome in known if outcome.status is Status.NOT_OWNER],
        )

    @classmethod
    def all_of(cls, ids: Sequence[bytes], status: Status) -> "OutcomeBatch":
        """A batch in which all IDs have one status."""
        return cls(ids, STATUS_CODES[status] * len(ids))

    @classmethod
    def from_reply(cls, ids: Sequence[bytes], reply: Sequence[Any]) -> "OutcomeBatch":
        """A batch of a script's reply: the codes, then the holders."""
        return cls(ids, reply[0].decode("ascii"), reply[1:])

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Outcome]:
        holders = iter(self._holders)
        for item_id, code in zip(self.ids, self._codes, strict=True):
            status = _STATUS_OF_CODE[code]
            holder = (next(holders, b"") or None) if status is Status.NOT_OWNER else None
            yield Outcome(item_id, status, holder)

    @property
    def statuses(self) -> Iterator[Status]:
        """The statuses, in the order of the IDs."""
        return map(_STATUS_OF_CODE.__getitem__, self._codes)

    def only(self, wanted: Set[bytes]) -> "OutcomeBatch":
        """The outcomes of those IDs alone."""
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
        """How many IDs have which status."""
        return {_STATUS_OF_CODE[code]: number for code, number in Counter(self._codes).items()}


class Outcomes(Iterator[Outcome]):
    """Outcomes, one by one by iteration, or in the batches in which they were acknowledged.

    Args:
        batches: The batches; reading them does the work.
    """

    def __init__(self, batches: Iterator[OutcomeBatch]) -> None:
        self.batches = batches
        self._flat = chain.from_iterable(batches)

    def __next__(self) -> Outcome:
        return next(self._flat)


class Repair(StrEnum):
    """What a clean did to one ID."""

    RETURNED = "returned"
    DROPPED = "dropped"
    PROMOTED = "promoted"
    PRUNED = "pruned"
    BURIED = "buried"


@dataclass(frozen=True, slots=True)
class CleanAction:
    """One thing that a clean did, or in a dry run would do.

    Attributes:
        item_id: The ID.
        action: What was done.
        state: The state that both looks saw, and so the reason.
        where: The list or zset that it concerned: `main`, `processing`, `cleaning`, `delayed`,
            `buried` or `returns`; None for an item that was in none.
    """

    item_id: bytes
    action: Repair
    state: State
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many items a queue has, by state. None is unknown: only a deep look counts it.

    Attributes:
        queue: The queue's name.
        waiting: Length of the main list.
        processing: Length of the processing list: leased and abandoned, and ghosts.
        delayed: Entries of the delayed sorted set, due ones included. Unless only lengths were
            read, an item in processing that is leased or abandoned is counted there alone, and not
            in `delayed`, `due` or `buried`.
        buried: Entries of the buried sorted set.
        returned: Items that a clean returned at least once; without a deep look also those that a
            worker completed since the last clean.
        leased: Items in processing with a lease that ends; None if only lengths were read. A
            duplicated item is counted here, too, unless by a deep look.
        held: Items with a lease that never ends and is no guard; None if only lengths were read.
        abandoned: Items in processing without a lease, likewise; None if only lengths were read.
        due: Entries of the delayed sorted set that are due; None if only lengths were read.
        orphaned: Items in no list or sorted set without a lease; None without a deep look.
        unlisted: Items in no list or sorted set with a lease that ends; None without a deep look.
        duplicated: Items that are in the lists more than once; None without a deep look.
        ghosts: IDs in a list or sorted set that have no data; None without a deep look.
        stray_leases: IDs with a lease that have no data and are in no list or sorted set; None
            without a deep look.
        wrong_types: Keys of items and leases that hold another type than the protocol says; such
            an item is counted where it is listed, too. None without a deep look.
        returns: How often cleans returned those items, all together; None without a deep look.
        results: Results that are kept of completed items; None without a deep look.
        oldest_waiting_s: About how long the next item has waited, seconds; None if there is none,
            or if the server cannot say.
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
