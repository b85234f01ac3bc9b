"""Reading the facts about many IDs whose places in the lists are known; and snapshots of items."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import DIGITS_MAX, TIME_MS_MAX, Lease, State
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import Located
from rwq_cli.core.state.rules import Facts

# How many fields `lua/ops/look_up.lua` returns for each ID, without its places.
FACT_FIELDS = 9
_STATE_OF_CODE = {state.code: state for state in State}


def probe(
    queue: Queue,
    ids: Iterable[bytes],
    *,
    in_main: int = 0,
    in_processing: int = 0,
    digests: bool = False,
    counts: Callable[[bytes], tuple[int, int, int]] | None = None,
) -> Iterator[Facts]:
    """Read the facts about IDs, in order, in batches, each at one instant; the caller knows how
    often each is in main and in processing, or with `counts`, in all three lists."""
    known = in_main, in_processing, 0
    for batch, reply in queue.read_each("look_up", ids, scan_max=None, digests_too=digests):
        now_ms = int(reply[0])
        for item_id, at in zip(batch, range(1, len(reply), FACT_FIELDS), strict=True):
            fields = reply[at : at + FACT_FIELDS]
            in_lists = counts(item_id) if counts else known
            yield parse_facts(queue.keys, item_id, fields, now_ms, *in_lists)


def parse_facts(
    keys: QueueKeys,
    item_id: bytes,
    fields: Sequence[Any],
    now_ms: int,
    in_main: int,
    in_processing: int,
    in_cleaning: int = 0,
) -> Facts:
    """The facts from the fields of this ID in a reply of `lua/ops/look_up.lua`."""
    kind, new, new_ms, old, old_ms, due, buried, returned, *digest = fields
    returns = parse_returns(returned)
    wrong: dict[bytes, str] = {}
    if kind not in (b"none", b"string"):
        wrong[keys.item(item_id)] = kind.decode()
    if -3 in (new_ms, old_ms):
        leases = ((keys.lease(item_id), new_ms), (keys.old_lease(item_id), old_ms))
        wrong.update((key, "not a string") for key, left_ms in leases if left_ms == -3)
    return Facts(
        item_id,
        kind != b"none",
        in_main,
        in_processing,
        in_cleaning,
        parse_lease(new, new_ms),
        parse_lease(old, old_ms),
        float(due) if due else None,
        float(buried) if buried else None,
        now_ms,
        returns,
        wrong,
        returned is not None and returns is None,
        *digest,
    )


def states(
    queue: Queue,
    ids: Sequence[bytes],
    *,
    in_main: int = 0,
    in_processing: int = 0,
    unsure: list[bytes] | None = None,
) -> list[State]:
    """Read the states of IDs, in order; like `probe`, but the server computes the states. `unsure`
    gets those of the IDs that have an unsure schedule: see `Facts`."""
    known = {"in_main": in_main, "in_processing": in_processing, "digests_too": False}
    found = list[State]()
    for _, reply in queue.read_each("states", ids, **known):
        found += states_from(reply)
        if unsure is not None:
            unsure += reply[2:]
    return found


def states_from(reply: Sequence[bytes]) -> list[State]:
    return list(map(_STATE_OF_CODE.__getitem__, reply[0].decode("ascii")))


def parse_lease(value: bytes, left_ms: int) -> Lease | None:
    """A lease from what `lease_reply` of `lua/lib/facts.lua` gives."""
    return None if left_ms == -2 else Lease(value, left_ms if left_ms >= 0 else None)


def parse_returns(value: bytes | None) -> int | None:
    """A count of returns; None if there is none, or if it is not a valid number."""
    return int(value) if value and value.isdigit() and len(value) <= DIGITS_MAX else None


def existing(queue: Queue, ids: Iterable[bytes]) -> list[bytes]:
    """Those of the IDs that have data, in order: often none or all, which one command tells."""
    parts = list(in_batches(list(ids)))
    found: list[bytes] = []
    counts = queue.call_all([("EXISTS", *map(queue.keys.item, part)) for part in parts])
    for part, count in zip(parts, counts, strict=True):
        if 0 < count < len(part):
            exist = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in part])
            part = [item_id for item_id, there in zip(part, exist, strict=True) if there]
        found += part if count else ()
    return found


def read_parts(
    queue: Queue, script: str, ids: Iterable[bytes], fields: int, **args: Any
) -> Iterator[tuple[Sequence[bytes], Sequence[Any]]]:
    """Run a script that returns so many fields for each ID, and may end early, after much data.
    Yields the IDs of each reply with it; none is left out."""
    for batch, reply in queue.read_each(script, ids, **args):
        while True:
            read = len(reply) // fields
            yield batch[:read], reply
            batch = batch[read:]
            if not batch:
                break
            reply = queue.run(script, *batch, **args)


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
    each = ((part, script_words("snapshot", part.ids, **part.args())) for part in parts)
    for call, reply in queue.run_each("snapshot", each, reads_only=True):
        while reply is not REFUSED:
            count = len(reply) // _FIELDS
            yield call.part(0, count), list(_snapshots(queue, call.ids, reply, skipped))
            call = call.part(count)
            if not call.ids:
                break
            reply = queue.run("snapshot", *call.ids, **call.args())


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
            known = (None, None, None, None, parse_returns(returned))
            yield ItemSnapshot(item_id, data, state, place, *known, position, nearer)
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
            known_so = (item_id, data, facts.state, place, facts.lease)
            yield ItemSnapshot(*known_so, *schedule, facts.returns, position, nearer)


def _time_ms(score: float | None) -> float | None:
    """A score as a time, as an int if it is whole."""
    if score is None:
        return None
    time_ms = min(max(score, -TIME_MS_MAX), TIME_MS_MAX)
    return int(time_ms) if time_ms == int(time_ms) else time_ms
