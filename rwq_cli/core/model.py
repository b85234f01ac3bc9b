"""The types that the core takes and returns. Bytes stay bytes; field names give their units."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from rwq_cli.core.health import ServerStatus

if TYPE_CHECKING:
    from datetime import datetime

T = TypeVar("T")


class State(StrEnum):
    """The states of an ID, as the protocol names them. `state.rules` maps facts to them."""

    # Its letter in the replies of scripts.
    code: str
    # There is data under the ID; also true of keys of the wrong type.
    has_data: bool
    # It is the state of an item: of data under readable keys.
    is_item: bool
    # The item has a lease that is not a guard; it is delayed, due or buried.
    is_leased: bool
    is_scheduled: bool
    # A healthy item looks so between two commands of its worker or producer. Only a second look, a
    # grace period later, tells the two apart.
    may_be_in_transit: bool
    # The doctor reports every item in this state as an error or a warning.
    is_broken: bool

    def __new__(cls, word: str, code: str = "", *kinds: str) -> "State":
        state = str.__new__(cls, word)
        state._value_, state.code = word, code
        state.has_data = "empty" not in kinds
        state.is_item = state.has_data and word != "wrong-type"
        state.is_leased, state.is_scheduled = "leased" in kinds, "scheduled" in kinds
        state.may_be_in_transit = "transit" in kinds
        state.is_broken = state.may_be_in_transit or "broken" in kinds
        return state

    WAITING = "waiting", "w"
    LEASED = "leased", "l", "leased"
    HELD = "held", "h", "leased", "broken"
    ABANDONED = "abandoned", "a", "transit"
    ORPHANED = "orphaned", "o", "transit"
    UNLISTED = "unlisted", "u", "leased", "transit"
    DELAYED = "delayed", "d", "scheduled"
    DUE = "due", "t", "scheduled"
    BURIED = "buried", "b", "scheduled"
    DUPLICATED = "duplicated", "D", "transit"
    GHOST = "ghost", "g", "transit", "empty"
    STRAY_LEASE = "stray-lease", "s", "empty"
    GONE = "gone", "G", "empty"
    WRONG_TYPE = "wrong-type", "W", "broken"


class Lease(NamedTuple):
    """A lease that exists: who holds it, and in how many milliseconds it ends, None for never."""

    holder: bytes
    ttl_ms: int | None

    @property
    def ends(self) -> bool:
        return self.ttl_ms is not None


# Larger scores are not times: they may be infinite, or not exact to the millisecond.
TIME_MS_MAX = 2**53
# Numbers in hashes have at most as many: Lua counts exactly up to 2^53.
DIGITS_MAX = 15
# How much of the data `Item.preview` holds.
PREVIEW_BYTES = 200


class Item(NamedTuple):
    """An item as it was when it was read; None for what was not read or does not apply.

    Attributes:
        payload_bytes: The size of the data.
        data: All of it, if requested.
        preview: Its first bytes.
        position: 0 is next to be leased.
        idle_s: Seconds since the data key was last used, which for a waiting item is about its
            age; None if the server cannot tell.
        due_ms: When a delayed item is due, unix ms.
        buried_ms: When it was buried, unix ms.
        reason: Why it is buried.
        returns: How often a clean returned it, or an attempt failed.
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
        return _time_of(self.due_ms)

    @property
    def buried_at(self) -> "datetime | None":
        return _time_of(self.buried_ms)


def _time_of(unix_ms: int | None) -> "datetime | None":
    from datetime import UTC, datetime

    return None if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, tz=UTC)


class Status(StrEnum):
    """What an operation did to one ID, or why it did nothing."""

    # Its letter in the replies of scripts and in batches.
    code: str
    # What a dry run says that it would do; empty if it would do nothing.
    infinitive: str
    # For the reference; empty if no command shows it.
    meaning: str

    def __new__(cls, word: str, code: str, infinitive: str = "", meaning: str = "") -> "Status":
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
    CONFLICT = "conflict", "f", "", "its ID has other data or another queue; counted as `conflicts`"
    REMOVED = "removed", "x", "remove", "it was removed"
    MOVED = "moved", "v", "move", "it is in the other queue"
    FINISHED = "finished", "F", "finish", "an interrupted `mv` had begun to move it"
    CHANGED = "changed", "g", "", "it is no longer what was chosen"
    WRONG_TYPE = "wrong-type", "y", "", "one of its keys has the wrong type"
    DELAYED = "delayed", "l", "delay", "it is delayed"
    BURIED = "buried", "b", "bury", "it is buried"
    ALREADY_BURIED = "already-buried", "e", "", "it is buried already"
    REASON_REPLACED = (
        *("reason-replaced", "E", "replace the reason of"),
        "it was buried already, and has the new reason",
    )
    KICKED = "kicked", "k", "kick", "it waits again"
    NOT_BURIED = "not-buried", "u", "", "it is not buried"
    MOVING = "moving", "M", "", "it is being moved here; the same `mv` finishes that"
    PROMOTED = "promoted", "P", "promote", "it was due, and waits again"
    RETURNED = "returned", "R", "return", "its worker had died, and it waits again"
    DROPPED = "dropped", "D", "drop", "an entry without data, or a surplus one, was dropped"
    PRUNED = "pruned", "U", "prune", "an entry was removed whose item is gone or is elsewhere"
    GUARDED = "guarded", "G"
    IMPORTED_BEFORE = "imported-before", "I", "", "an interrupted run had imported it"
    SET = "set", "S", "set", "its data was replaced"
    UNCHANGED = "unchanged", "N", "", "it already had this data"
    # Perhaps between two commands of its worker: it is checked again. Internal to the core.
    IN_TRANSIT = "in-transit", "q"
    # Not where the caller saw it, so it is looked up again. Internal to the core.
    ELSEWHERE = "elsewhere", "-"


_STATUS_OF_CODE = {status.code: status for status in Status}


class Outcome(NamedTuple):
    """An ID and its status after an operation.

    For `NOT_OWNER` it has the holder of the lease, for `PRUNED` the state of the item.
    """

    item_id: bytes
    status: Status
    holder: bytes | None = None
    state: State | None = None


class OutcomeBatch:
    """The outcomes of one call, as compactly as the server replied: a letter for each ID.

    `details` has, in order, who holds the lease of each `NOT_OWNER` and the state of each `PRUNED`.
    """

    __slots__ = ("_codes", "_details", "ids")

    def __init__(self, ids: Sequence[bytes], codes: str, details: Sequence[bytes] = ()) -> None:
        self.ids = ids
        self._codes = codes
        self._details = details

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> "OutcomeBatch":
        listed = list(outcomes)
        details = [
            outcome.state.encode() if outcome.state else outcome.holder or b""
            for outcome in listed
            if outcome.status in (Status.NOT_OWNER, Status.PRUNED)
        ]
        codes = "".join(outcome.status.code for outcome in listed)
        return cls([outcome.item_id for outcome in listed], codes, details)

    @classmethod
    def all_of(cls, ids: Sequence[bytes], status: Status) -> "OutcomeBatch":
        return cls(ids, status.code * len(ids))

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

    def only(self, wanted: Set[bytes]) -> "OutcomeBatch":
        if wanted >= set(self.ids):
            return self
        return OutcomeBatch.of(outcome for outcome in self if outcome.item_id in wanted)

    def without(self, status: Status) -> "OutcomeBatch":
        if status.code not in self._codes:
            return self
        return OutcomeBatch.of(outcome for outcome in self if outcome.status is not status)

    def ids_with(self, *statuses: Status) -> list[bytes]:
        """The IDs that have one of these statuses, in order."""
        codes = {status.code for status in statuses}
        if codes.issuperset(self._codes):
            return list(self.ids)
        if codes.isdisjoint(self._codes):
            return []
        pairs = zip(self.ids, self._codes, strict=True)
        return [item_id for item_id, code in pairs if code in codes]

    def count(self, *statuses: Status) -> int:
        return sum(self._codes.count(status.code) for status in statuses)

    def counts(self) -> dict[Status, int]:
        return {_STATUS_OF_CODE[code]: number for code, number in Counter(self._codes).items()}


class Batched(Iterator[T], Generic[T]):
    """Results, one by one, or in `batches` as they were acknowledged: reading does the work."""

    def __init__(self, batches: Iterator[Iterable[T]]) -> None:
        self.batches = batches
        self._flat = chain.from_iterable(batches)

    def __next__(self) -> T:
        return next(self._flat)


class Outcomes(Batched[Outcome]):
    """The outcomes of an operation."""

    batches: Iterator[OutcomeBatch]


class Counts(NamedTuple):
    """How many items a queue has, by state; None where it was not counted.

    The lengths alone give the first five. A deep count counts duplicated items once more, and in
    `leased` or `abandoned`.

    Attributes:
        waiting: Length of the main list.
        processing: Length of the processing list: leased and abandoned items, and ghosts.
        delayed: Entries of the delayed sorted set, due ones too. Unless only lengths were read, an
            item in processing is counted only there, and not in `delayed`, `due` or `buried`.
        buried: Entries of the buried sorted set.
        returned: Items that were returned at least once; without a deep count, this includes
            those that a worker completed since the last clean.
        leased: Items in processing with a lease that ends; `abandoned` are those without a lease.
        held: Items with a lease without expiry that is not a guard.
        orphaned: Items in no list or sorted set without a lease. This and the next six need a deep
            count.
        unlisted: Items in no list or sorted set with a lease that ends.
        duplicated: Items that are in the lists more than once.
        ghosts: IDs in a list or sorted set that have no data.
        stray_leases: IDs with a lease that have no data and are in no list or sorted set.
        wrong_types: Item and lease keys of the wrong type; such an item also counts where it is.
        returns: How often items were returned in total.
        results: Results of completed items. Deep, too.
        oldest_waiting_s: About how long the next item has waited, seconds; None if there is none,
            or if the server cannot tell.
        lease_soonest_ms: The shortest time left of all leases, milliseconds; None without leases
            that end. `lease_latest_ms` is the longest.
        payload_sampled: How many payload sizes were sampled; 0 if none could be. The next three are
            the smallest, the median and the largest of them.
        is_least: Whether `abandoned` may be more: the time was over before all were counted.
        server: The status of the server; None if only lengths were read.
        last_clean_ms: The minute of the last entry that a cleaning process wrote, unix ms; None
            without one.
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
    is_least: bool = False
    server: ServerStatus | None = None
    last_clean_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        lengths = (self.waiting, self.processing, self.delayed, self.buried, self.returned)
        return not (any(lengths) or self.orphaned or self.results)


# The events that are about all items.
MISSED, FLUSHED = "missed", "flushed"


class Event(NamedTuple):
    """Something that happened to an item.

    Attributes:
        queue: The queue's name.
        item_id: The ID; None if it is about all items.
        event: What happened, such as `leased`, or `added and completed`; `MISSED` for a number of
            events that were not looked at, `FLUSHED` if all keys were deleted.
        at_ms: When the server said so, by this machine's clock, unix ms.
        before: The state before; None if it was not seen.
        after: The state after.
        holder: Who holds the lease, or held it before.
        leased_s: For how long it was leased when it ended, if the beginning was seen; seconds.
        reason: Why it was buried.
        missed: How many events were not looked at.
        is_usual: Whether the event changes nothing but a lease's end, or data.
    """

    queue: bytes
    item_id: bytes | None
    event: str
    at_ms: int
    before: State | None = None
    after: State | None = None
    holder: bytes | None = None
    leased_s: float | None = None
    reason: bytes | None = None
    missed: int = 0
    is_usual: bool = False
