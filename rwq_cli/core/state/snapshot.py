"""Snapshots of items: everything about one, with its data, at one instant."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, State
from rwq_cli.core.state.places import ListRange
from rwq_cli.core.state.probe import lease_from, returns_from, wrong_types_from
from rwq_cli.core.state.rules import Facts, guard_kind

# One call takes the server about two milliseconds.
SNAPSHOT_ITEMS = 500
# Of one reply; the item that crosses it is still in it.
SNAPSHOT_BYTES = 1024 * 1024
# Larger scores are no times of ours, and files hold none: those that wait for ever still do.
TIME_MS_MAX = 2**53

_FIELDS = 10


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


@dataclass(frozen=True, slots=True)
class ItemSnapshot:
    """Everything about one item.

    Attributes:
        item_id: The ID.
        data: The payload.
        state: Its state.
        place: The structure that it is in; None for none.
        lease: The effective lease, or None.
        due_ms: Due time in unix ms if it is in the delayed zset and does not wait, else None. What
            is below a millisecond keeps the order of items of one time.
        buried_ms: When it was buried in unix ms, likewise.
        reason: For buried items, why; else None.
        returns: How often a clean returned it; None if none did.
        position: For items in main, how many are before them: 0 is next to be leased; else None.
        nearer: For items in main, the end that is nearer; else None.
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
    position: int | None = None
    nearer: End | None = None


@dataclass(slots=True)
class Skipped:
    """IDs of which no snapshot could be made.

    Attributes:
        missing: IDs without data: ghosts, or completed meanwhile.
        wrong_types: IDs whose data key, or a lease key, holds no string.
        wrong_keys: Those keys.
        stray_leases: How many leases there are without an item; counted by an export only.
        elsewhere: IDs that are not where the caller saw them any more.
    """

    missing: list[bytes] = field(default_factory=list)
    wrong_types: list[bytes] = field(default_factory=list)
    wrong_keys: list[bytes] = field(default_factory=list)
    stray_leases: int = 0
    elsewhere: list[bytes] = field(default_factory=list)


def read_snapshots(
    queue: Queue,
    seen: ListRange,
    skipped: Skipped,
    mark: bytes = b"",
) -> Iterator[list[ItemSnapshot]]:
    """Read items with their data, in batches of a bounded number of bytes.

    Args:
        queue: The queue.
        seen: The IDs, and where they were seen.
        skipped: Takes the IDs of which there is no snapshot.
        mark: The mark under which the caller has claimed IDs; b"" for none.

    Yields:
        Non-empty lists, in the order of the IDs, each read at one instant.
    """
    at = 0
    while at < len(seen.ids):
        batch = seen.ids[at : at + SNAPSHOT_ITEMS]
        reply = queue.run("snapshot", *seen.args(mark), SNAPSHOT_BYTES, *batch)
        snapshots = list(_snapshots(queue, batch, reply, skipped))
        at += len(reply) // _FIELDS
        if snapshots:
            yield snapshots


def _snapshots(
    queue: Queue,
    ids: Sequence[bytes],
    reply: Sequence[Any],
    skipped: Skipped,
) -> Iterator[ItemSnapshot]:
    now_ms, length = int(reply[0]), int(reply[1])
    for index, item_id in enumerate(ids[: len(reply) // _FIELDS]):
        at = 2 + index * _FIELDS
        kind, data, new, new_ms, old, old_ms, where, due, buried, returns = reply[at : at + _FIELDS]
        wrong = wrong_types_from(queue.keys, item_id, kind, new_ms, old_ms)
        if wrong:
            skipped.wrong_types.append(item_id)
            skipped.wrong_keys += wrong
        elif kind == b"none":
            skipped.missing.append(item_id)
        elif where == b"elsewhere":
            skipped.elsewhere.append(item_id)
        else:
            position = where if isinstance(where, int) else None
            facts = Facts(
                item_id,
                True,
                in_main=int(position is not None),
                in_processing=int(where == b"processing"),
                new_lease=lease_from(new, new_ms),
                old_lease=lease_from(old, old_ms),
                due_ms=_time_ms(due),
                buried_ms=_time_ms(buried),
                now_ms=now_ms,
                returns=returns_from(returns),
            )
            yield _snapshot(facts, data, position, length)


def _time_ms(score: bytes) -> float | None:
    """A score as a time, whole if it is."""
    if score == b"":
        return None
    time_ms = min(max(float(score), -TIME_MS_MAX), TIME_MS_MAX)
    return int(time_ms) if time_ms == int(time_ms) else time_ms


def _snapshot(facts: Facts, data: bytes, position: int | None, length: int) -> ItemSnapshot:
    lease, waits = facts.lease, bool(facts.in_main)
    # Entries of an item that waits are left over. Our cleans prune them.
    due_ms, buried_ms = (None, None) if waits else (facts.due_ms, facts.buried_ms)
    places = (
        (Place.MAIN, waits),
        (Place.PROCESSING, facts.in_processing),
        (Place.BURIED, buried_ms is not None),
        (Place.DELAYED, due_ms is not None),
    )
    nearer = None
    if position is not None:
        nearer = End.NEXT if 2 * position < length else End.LAST
    reason = None
    if buried_ms is not None and lease is not None and guard_kind(lease) == BURIED_GUARD:
        reason = lease.holder.removeprefix(BURIED_GUARD)
    return ItemSnapshot(
        item_id=facts.item_id,
        data=data,
        state=facts.state,
        place=next((place for place, is_there in places if is_there), None),
        lease=lease,
        due_ms=due_ms,
        buried_ms=buried_ms,
        reason=reason,
        returns=facts.returns,
        position=position,
        nearer=nearer,
    )
