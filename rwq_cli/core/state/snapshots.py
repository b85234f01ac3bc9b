"""Snapshots: items with their data, places and leases, each read at one instant."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.model import TIME_MS_MAX, Lease, State
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.reads import parse_facts, parse_returns

_FIELDS = 10
_PLAIN_STATES = {b"processing": State.ABANDONED, b"none": State.ORPHANED}


class Place(StrEnum):
    MAIN = "main"
    PROCESSING = "processing"
    DELAYED = "delayed"
    BURIED = "buried"


class End(StrEnum):
    NEXT = "next"
    LAST = "last"


class ItemSnapshot(NamedTuple):
    item_id: bytes
    data: bytes
    state: State
    # None for an item in no structure.
    place: Place | None
    lease: Lease | None = None
    # Its scores, unix ms, if it is not waiting. The fraction keeps the order of one due time.
    due_ms: float | None = None
    buried_ms: float | None = None
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
    """Read items with their data, sending calls ahead of their replies: for each call its IDs that
    were read, with their items in order. If they have too much data for one reply, the rest comes
    apart."""
    budget = queue.budget("snapshot")
    parts = (part for call in calls if call.ids for part in call.within(budget))
    requests = (
        (part, queue.script("snapshot", *part.ids, bytes_max=budget.bytes, **part.args()))
        for part in parts
    )
    for call, reply in queue.run_each(requests, reads_only=True):
        while True:
            count = len(reply) // _FIELDS
            yield call.part(0, count), list(_snapshots(queue, call.ids, reply, skipped))
            call = call.part(count)
            if not call.ids:
                break
            reply = queue.run("snapshot", *call.ids, bytes_max=budget.bytes, **call.args())


def _snapshots(
    queue: Queue, ids: Sequence[bytes], reply: Sequence[Any], skipped: Skipped
) -> Iterator[ItemSnapshot]:
    now_ms, length = int(reply[0]), int(reply[1])
    for item_id, at in zip(ids, range(2, len(reply), _FIELDS), strict=False):
        kind, data, new, new_ms, old, old_ms, where, due, buried, returned = reply[
            at : at + _FIELDS
        ]
        in_main, in_processing = isinstance(where, int), where == b"processing"
        place = Place.MAIN if in_main else Place.PROCESSING if in_processing else None
        position, nearer = None, None
        if in_main:
            position, nearer = where, End.NEXT if 2 * where < length else End.LAST
        is_there = kind == b"string" and where != b"elsewhere"
        if is_there and new_ms == old_ms == -2 and not due and not buried:
            # As almost all are: working out their facts would take half of the time.
            state = State.WAITING if in_main else _PLAIN_STATES[where]
            unset = (None, None, None, None)
            returns = parse_returns(returned)
            yield ItemSnapshot(item_id, data, state, place, *unset, returns, position, nearer)
            continue
        fields = kind, new, new_ms, old, old_ms, due, buried, returned
        facts = parse_facts(queue.keys, item_id, fields, now_ms, in_main, in_processing)
        if facts.wrong_types:
            skipped.wrong_types.append(item_id)
            skipped.wrong_keys += facts.wrong_types
        elif not is_there:
            (skipped.elsewhere if facts.has_data else skipped.missing).append(item_id)
        else:
            schedule: tuple[float | None, float | None, bytes | None] = None, None, None
            # A waiting item's entries in the sorted sets are stale; cleans prune them.
            if not in_main:
                schedule = _time_ms(facts.due_ms), _time_ms(facts.buried_ms), facts.reason
                if place is None and facts.has_schedule_entry:
                    place = Place.DELAYED if facts.buried_ms is None else Place.BURIED
            item_fields = (item_id, data, facts.state, place, facts.lease)
            yield ItemSnapshot(*item_fields, *schedule, facts.returns, position, nearer)


def _time_ms(score: float | None) -> float | None:
    """A score as a time, as an int if it is whole."""
    if score is None:
        return None
    time_ms = min(max(score, -TIME_MS_MAX), TIME_MS_MAX)
    return int(time_ms) if time_ms == int(time_ms) else time_ms
