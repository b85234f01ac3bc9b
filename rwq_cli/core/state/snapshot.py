"""Snapshots of items: everything about an item, including its data, at one instant."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import TIME_MS_MAX, Lease, State
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.probe import parse_lease, parse_returns, parse_wrong_types
from rwq_cli.core.state.rules import Facts

# One call takes the server about two milliseconds.
SNAPSHOT_ITEMS = 500
# The maximum size of the data in one reply; the item that reaches it is still included.
SNAPSHOT_BYTES = 1024 * 1024

_FIELDS = 10


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
    """Everything about one item.

    Attributes:
        item_id: The ID.
        data: The payload.
        state: Its state.
        place: The structure that it is in; None if there is none.
        lease: The effective lease, or None.
        due_ms: Due time in unix ms if it is in the delayed zset and not waiting, else None. The
            fraction keeps the order of items with the same due time.
        buried_ms: Time of burial in unix ms if it is in the buried zset and not waiting, else
            None.
        reason: For buried items, why; else None.
        returns: How often a clean returned it, or an attempt failed; None for never.
        position: For items in main, how many are ahead: 0 is next to be leased; else None.
        nearer: For items in main, which end is nearer; else None.
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
    """IDs without a snapshot.

    Attributes:
        missing: IDs without data: ghosts, or items that were completed since.
        wrong_types: IDs whose data key or lease key has the wrong type.
        wrong_keys: Those keys.
        stray_leases: How many leases have no item; counted only by an export.
        elsewhere: IDs that are no longer where the caller saw them.
    """

    missing: list[bytes] = field(default_factory=list)
    wrong_types: list[bytes] = field(default_factory=list)
    wrong_keys: list[bytes] = field(default_factory=list)
    stray_leases: int = 0
    elsewhere: list[bytes] = field(default_factory=list)


def read_snapshots(
    queue: Queue, calls: Iterable[Located], skipped: Skipped
) -> Iterator[tuple[Located, list[ItemSnapshot]]]:
    """Read items with their data, sending calls ahead of their replies.

    Args:
        queue: The queue.
        calls: The IDs, and where they were seen.
        skipped: Collects the IDs without a snapshot.

    Yields:
        For each call its IDs that were read, with their items in the same order. If they have too
        much data for one reply, the rest comes apart.
    """
    sent: deque[Located] = deque()

    def words() -> Iterator[Sequence[object]]:
        for call in calls:
            if call.ids:
                sent.append(call)
                yield _words(call)

    for reply in queue.run_each("snapshot", words(), reads_only=True):
        call = sent.popleft()
        while reply is not REFUSED:
            count = len(reply) // _FIELDS
            yield (
                call._replace(ids=call.ids[:count], places=call.places[:count]),
                list(_snapshots(queue, call.ids, reply, skipped)),
            )
            call = call.after(count)
            if not call.ids:
                break
            reply = queue.run("snapshot", *call.ids, bytes_max=SNAPSHOT_BYTES, **call.args())


def _words(call: Located) -> Sequence[object]:
    return script_words("snapshot", call.ids, bytes_max=SNAPSHOT_BYTES, **call.args())


def _snapshots(
    queue: Queue,
    ids: Sequence[bytes],
    reply: Sequence[Any],
    skipped: Skipped,
) -> Iterator[ItemSnapshot]:
    now_ms, length = int(reply[0]), int(reply[1])
    for item_id, at in zip(ids, range(2, len(reply), _FIELDS), strict=False):
        kind, data, new, new_ms, old, old_ms, where, due, buried, returns = reply[at : at + _FIELDS]
        if kind != b"string" or new_ms == -3 or old_ms == -3:
            wrong = parse_wrong_types(queue.keys, item_id, kind, new_ms, old_ms)
            (skipped.wrong_types if wrong else skipped.missing).append(item_id)
            skipped.wrong_keys += wrong
        elif where == b"elsewhere":
            skipped.elsewhere.append(item_id)
        elif new_ms == old_ms == -2 and not due and not buried:
            yield _snapshot(item_id, data, _plain_state(where), None, where, length, returns)
        else:
            facts = Facts(
                item_id,
                True,
                int(isinstance(where, int)),
                int(where == b"processing"),
                new_lease=parse_lease(new, new_ms),
                old_lease=parse_lease(old, old_ms),
                due_ms=_time_ms(due),
                buried_ms=_time_ms(buried),
                now_ms=now_ms,
            )
            known = facts.state, facts.lease, where, length, returns
            yield _snapshot(item_id, data, *known, facts.due_ms, facts.buried_ms, facts.reason)


def _plain_state(where: int | bytes) -> State:
    """The state of an item that has no lease and is not scheduled."""
    return _state_in_list(isinstance(where, int), where == b"processing")


@cache
def _state_in_list(in_main: bool, in_processing: bool) -> State:
    return Facts(b"", True, int(in_main), int(in_processing)).state


def _time_ms(score: bytes) -> float | None:
    """A score as a time, as an int if it is whole."""
    if score == b"":
        return None
    time_ms = min(max(float(score), -TIME_MS_MAX), TIME_MS_MAX)
    return int(time_ms) if time_ms == int(time_ms) else time_ms


def _snapshot(
    item_id: bytes,
    data: bytes,
    state: State,
    lease: Lease | None,
    where: int | bytes,
    length: int,
    returns: bytes,
    due_ms: float | None = None,
    buried_ms: float | None = None,
    reason: bytes | None = None,
) -> ItemSnapshot:
    if isinstance(where, int):
        # A waiting item's entries in the sorted sets are stale; cleans prune them.
        return ItemSnapshot(
            item_id,
            data,
            state,
            Place.MAIN,
            lease,
            returns=parse_returns(returns),
            position=where,
            nearer=End.NEXT if 2 * where < length else End.LAST,
        )
    place = None
    if where == b"processing":
        place = Place.PROCESSING
    elif buried_ms is not None:
        place = Place.BURIED
    elif due_ms is not None:
        place = Place.DELAYED
    return ItemSnapshot(
        item_id, data, state, place, lease, due_ms, buried_ms, reason, parse_returns(returns)
    )
