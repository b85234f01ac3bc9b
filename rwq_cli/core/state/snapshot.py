"""Snapshots of items: everything about one, with its data, at one instant."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from rwq_cli.core.batches import ids_per_call
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.report import reason_of
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Facts, Lease, State
from rwq_cli.core.state.rules import state_of

# What the server does for 500 IDs takes it about two milliseconds.
SNAPSHOT_ITEMS = 500
# Of one reply; the item that crosses it is still in it.
SNAPSHOT_BYTES = 1024 * 1024

_FIELDS = 8


class Place(StrEnum):
    """The structure that an item is in; one that is in none has no place."""

    MAIN = "main"
    PROCESSING = "processing"
    DELAYED = "delayed"
    BURIED = "buried"


class End(StrEnum):
    """The two ends of the main list."""

    NEXT = "next"
    LAST = "last"


# The letters of the script for a place in main.
_ENDS = {b"n": End.NEXT, b"l": End.LAST}


@dataclass(frozen=True, slots=True)
class ItemSnapshot:
    """Everything about one item.

    Attributes:
        item_id: The ID.
        data: The payload.
        state: Its state.
        place: The structure that it is in; None for none.
        lease: The lease, or None.
        due_ms: Due time in unix ms if it is in the delayed zset, else None. What is below a
            millisecond keeps the order of items of one time.
        buried_ms: When it was buried in unix ms if it is in the buried zset, else None; likewise.
        reason: For buried items, why; else None.
        returns: How often a cleaner brought it back; None where nobody counted.
        nearer: For items in main, the end that is nearer; None where that does not matter.
    """

    item_id: bytes
    data: bytes
    state: State
    place: Place | None
    lease: Lease | None = None
    due_ms: float | None = None
    buried_ms: float | None = None
    reason: bytes | None = None
    returns: int | None = None
    nearer: End | None = None


@dataclass(frozen=True, slots=True)
class ListRange:
    """Where IDs were seen.

    Attributes:
        place: The list; None for neither of the two.
        offset: Where the first of them stood, counted from the right end.
        span: How many entries there were from the first to the last, at most.
        ids: The IDs, in the order of the list as it leaves on the right.
    """

    place: Place | None
    offset: int
    span: int
    ids: Sequence[bytes]


@dataclass(slots=True)
class Skipped:
    """What was met and is no item.

    Attributes:
        missing: IDs without data: ghosts, or completed meanwhile.
        wrong_types: IDs whose data key, or a lease key, holds no string.
        wrong_keys: Those keys.
        stray_leases: How many leases there are without an item; counted by an export only.
    """

    missing: list[bytes] = field(default_factory=list)
    wrong_types: list[bytes] = field(default_factory=list)
    wrong_keys: list[bytes] = field(default_factory=list)
    stray_leases: int = 0


def read_snapshots(
    queue: Queue, sight: ListRange, skipped: Skipped
) -> Iterator[list[ItemSnapshot]]:
    """Read items with their data, in batches of a bounded number of bytes.

    Args:
        queue: The queue.
        sight: The IDs, and where they were seen. What has left that place by now is looked for.
        skipped: Takes what turns out to be no item.

    Yields:
        Non-empty lists, in the order of the IDs, each read at one instant.
    """
    drift = at = 0
    ids = sight.ids
    while at < len(ids):
        batch = ids[at : at + SNAPSHOT_ITEMS]
        # Those before were `at` entries of it at least.
        where = (sight.place, max(0, sight.offset + at + drift), max(0, sight.span - at))
        reply = _read(queue, where, batch, lookups=0)
        drift += int(reply[1])
        snapshots, unplaced = _developed(queue.keys, batch, reply, skipped)
        at += (len(reply) - 2) // _FIELDS
        if unplaced:
            snapshots = _completed(queue, snapshots, unplaced, skipped)
        if snapshots:
            yield snapshots


def find_snapshots(
    queue: Queue, ids: Sequence[bytes], skipped: Skipped
) -> Iterator[list[ItemSnapshot]]:
    """Like `read_snapshots`, for few IDs of which nobody knows where they are.

    Each is looked for in both lists, which costs their length.
    """
    at = 0
    while at < len(ids):
        lengths = queue.call_all([("LLEN", queue.keys.main), ("LLEN", queue.keys.processing)])
        batch = ids[at : at + min(SNAPSHOT_ITEMS, ids_per_call(sum(lengths)))]
        reply = _read(queue, (None, 0, 0), batch, lookups=len(batch))
        at += (len(reply) - 2) // _FIELDS
        snapshots, _ = _developed(queue.keys, batch, reply, skipped)
        if snapshots:
            yield snapshots


def _read(
    queue: Queue,
    where: tuple[Place | None, int, int],
    ids: Sequence[bytes],
    *,
    lookups: int,
) -> list[Any]:
    place, offset, span = where
    reply: list[Any] = queue.run(
        "snapshot", place or "", offset, span, SNAPSHOT_BYTES, lookups, *ids
    )
    return reply


# By the script's number, the key that holds another type.
_WRONG_KEYS = {2: QueueKeys.item, 3: QueueKeys.lease, 4: QueueKeys.old_lease}


def _developed(
    keys: QueueKeys, ids: Sequence[bytes], reply: Sequence[Any], skipped: Skipped
) -> tuple[list[ItemSnapshot], list[bytes]]:
    """The snapshots of a reply, and those of its IDs whose place it does not know."""
    now_ms = int(reply[0])
    snapshots, unplaced = [], []
    for index in range((len(reply) - 2) // _FIELDS):
        at = 2 + index * _FIELDS
        kind, data, ttl_ms, holder, letter, due, buried, returns = reply[at : at + _FIELDS]
        if kind == 0:
            skipped.missing.append(ids[index])
        elif kind in _WRONG_KEYS:
            skipped.wrong_types.append(ids[index])
            skipped.wrong_keys.append(_WRONG_KEYS[kind](keys, ids[index]))
        elif letter == b"?":
            unplaced.append(ids[index])
        else:
            lease = None
            if ttl_ms != -2:
                lease = Lease(holder, None if ttl_ms == -1 else ttl_ms)
            facts = Facts(
                item_id=ids[index],
                has_data=True,
                in_main=int(letter in _ENDS),
                in_processing=int(letter == b"p"),
                in_cleaning=0,
                lease=lease,
                due_ms=_whole(due),
                buried_ms=_whole(buried),
                now_ms=now_ms,
                returns=_whole(returns),
            )
            snapshot = _snapshot(facts, data, _ENDS.get(letter))
            if snapshot.place is not Place.MAIN:
                # Left over, where it waits: our cleans prune them.
                snapshot = replace(snapshot, due_ms=_time_ms(due), buried_ms=_time_ms(buried))
            snapshots.append(snapshot)
    return snapshots, unplaced


def _whole(reply: bytes) -> int | None:
    return int(float(reply)) if reply != b"" else None


def _time_ms(score: bytes) -> float | None:
    """A score as a time, whole where it can be."""
    if score == b"":
        return None
    time_ms = float(score)
    return int(time_ms) if time_ms.is_integer() else time_ms


def _snapshot(facts: Facts, data: bytes, nearer: End | None) -> ItemSnapshot:
    place = None
    if facts.in_main:
        place = Place.MAIN
    elif facts.in_processing:
        place = Place.PROCESSING
    elif facts.buried_ms is not None:
        place = Place.BURIED
    elif facts.due_ms is not None:
        place = Place.DELAYED
    reason = None
    if place is not Place.MAIN and facts.buried_ms is not None and facts.lease is not None:
        reason = reason_of(facts.lease)
    return ItemSnapshot(
        item_id=facts.item_id,
        data=data,
        state=state_of(facts),
        place=place,
        lease=facts.lease,
        reason=reason,
        returns=facts.returns,
        nearer=nearer,
    )


def _completed(
    queue: Queue,
    snapshots: list[ItemSnapshot],
    unplaced: Sequence[bytes],
    skipped: Skipped,
) -> list[ItemSnapshot]:
    """The snapshots with those of the IDs that had to be looked for, behind the others."""
    found = [snapshot for some in find_snapshots(queue, unplaced, skipped) for snapshot in some]
    return snapshots + found
