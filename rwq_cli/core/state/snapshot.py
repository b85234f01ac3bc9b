"""Snapshots of items: everything about an item, including its data, at one instant."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import TIME_MS_MAX, Lease, State
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import Located
from rwq_cli.core.state.probe import parse_lease, parse_returns, parse_wrong_types
from rwq_cli.core.state.rules import Facts

# The maximum size of the data in one reply; the item that reaches it is still included.
SNAPSHOT_BYTES = 1024 * 1024

_FIELDS = 10
_PLAIN_STATES = {b"processing": State.ABANDONED, b"none": State.ORPHANED}


class Place(StrEnum):
    """The structure that an item is in."""

    MAIN = "main"
    PROCESSING = "processing"
    DELAYED = "delayed"
    BURIED = "buried"


class End(StrEnum):
    """The two ends of the main list."""

    NEXT = "next"
    LAST = "last"


class ItemSnapshot(NamedTuple):
    """Everything about one item."""

    item_id: bytes
    data: bytes
    state: State
    # None for an item in no structure.
    place: Place | None
    # The effective lease.
    lease: Lease | None = None
    # Its scores, unix ms, if it is not waiting. The fraction keeps the order of one due time.
    due_ms: float | None = None
    buried_ms: float | None = None
    # Why it is buried.
    reason: bytes | None = None
    # None for never.
    returns: int | None = None
    # In main, how many are ahead, and which end is nearer.
    position: int | None = None
    nearer: End | None = None


@dataclass(slots=True)
class Skipped:
    """IDs without a snapshot."""

    # Without data: ghosts, or items that were completed since.
    missing: list[bytes] = field(default_factory=list)
    # Whose data key or lease key has the wrong type; and those keys.
    wrong_types: list[bytes] = field(default_factory=list)
    wrong_keys: list[bytes] = field(default_factory=list)
    # How many leases have no item; counted only by an export.
    stray_leases: int = 0
    # No longer where the caller saw them.
    elsewhere: list[bytes] = field(default_factory=list)


def read_snapshots(
    queue: Queue, calls: Iterable[Located], skipped: Skipped
) -> Iterator[tuple[Located, list[ItemSnapshot]]]:
    """Read items with their data, sending calls ahead of their replies.

    Yields for each call its IDs that were read, with their items in the same order. If they have
    too much data for one reply, the rest comes apart.
    """

    def asked(call: Located) -> dict[str, Any]:
        return {"bytes_max": SNAPSHOT_BYTES, **call.args()}

    each = ((c, script_words("snapshot", c.ids, **asked(c))) for c in calls if c.ids)
    for call, reply in queue.run_each("snapshot", each, reads_only=True):
        while reply is not REFUSED:
            count = len(reply) // _FIELDS
            yield call.part(0, count), list(_snapshots(queue, call.ids, reply, skipped))
            call = call.part(count)
            if not call.ids:
                break
            reply = queue.run("snapshot", *call.ids, **asked(call))


def _snapshots(
    queue: Queue, ids: Sequence[bytes], reply: Sequence[Any], skipped: Skipped
) -> Iterator[ItemSnapshot]:
    now_ms, length = int(reply[0]), int(reply[1])
    for item_id, at in zip(ids, range(2, len(reply), _FIELDS), strict=False):
        kind, data, new, new_ms, old, old_ms, where, due, buried, returns = reply[at : at + _FIELDS]
        in_main = isinstance(where, int)
        if kind != b"string" or new_ms == -3 or old_ms == -3:
            wrong = parse_wrong_types(queue.keys, item_id, kind, new_ms, old_ms)
            (skipped.wrong_types if wrong else skipped.missing).append(item_id)
            skipped.wrong_keys += wrong
            continue
        if where == b"elsewhere":
            skipped.elsewhere.append(item_id)
            continue
        place = Place.MAIN if in_main else Place.PROCESSING if where == b"processing" else None
        position, nearer = None, None
        if in_main:
            position, nearer = where, End.NEXT if 2 * where < length else End.LAST
        count = parse_returns(returns)
        if new_ms == old_ms == -2 and not due and not buried:
            # As almost all are: working out their facts would take half of the time.
            state = State.WAITING if in_main else _PLAIN_STATES[where]
            nothing = (None, None, None, None)
            yield ItemSnapshot(item_id, data, state, place, *nothing, count, position, nearer)
            continue
        facts = Facts(
            item_id,
            True,
            int(in_main),
            int(where == b"processing"),
            new_lease=parse_lease(new, new_ms),
            old_lease=parse_lease(old, old_ms),
            due_ms=_time_ms(due),
            buried_ms=_time_ms(buried),
            now_ms=now_ms,
        )
        schedule: tuple[float | None, float | None, bytes | None] = None, None, None
        # A waiting item's entries in the sorted sets are stale; cleans prune them.
        if not in_main:
            schedule = facts.due_ms, facts.buried_ms, facts.reason
            if place is None and facts.has_schedule_entry:
                place = Place.DELAYED if facts.buried_ms is None else Place.BURIED
        known = (item_id, data, facts.state, place, facts.lease)
        yield ItemSnapshot(*known, *schedule, count, position, nearer)


def _time_ms(score: bytes) -> float | None:
    """A score as a time, as an int if it is whole."""
    if score == b"":
        return None
    time_ms = min(max(float(score), -TIME_MS_MAX), TIME_MS_MAX)
    return int(time_ms) if time_ms == int(time_ms) else time_ms
