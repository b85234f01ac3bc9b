"""Reading without changing anything: what is known of IDs, and the items of a list."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Item, Lease, State
from rwq_cli.core.state.rules import is_guard, state_of

PREVIEW_BYTES = 200
# How many items are read at once with all of their data.
ITEMS_WITH_DATA = 16
# Above this length one LPOS would hold the server too long, and the list is read in pages.
LPOS_LENGTH_MAX = 1_000_000

_NO_DATA = (State.GHOST, State.GONE, State.STRAY_LEASE)


@dataclass(frozen=True, slots=True)
class Probe:
    """What decides most states, read for many IDs in one call.

    Attributes:
        has_data: Whether the data key exists.
        lease: The lease, or None.
        wrong_type: Whether the data key holds no string.
    """

    has_data: bool
    lease: Lease | None
    wrong_type: bool = False


def probe(queue: Queue, ids: Sequence[bytes]) -> list[Probe]:
    """Whether each ID has data and a lease, in the order given."""
    probes: list[Probe] = []
    for batch in in_batches(ids):
        reply = queue.run("look", *batch)
        for kind, ttl_ms, holder in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
            lease = None if ttl_ms == -2 else Lease(holder, None if ttl_ms == -1 else ttl_ms)
            probes.append(Probe(kind > 0, lease, kind == 2))
    return probes


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of an item's data a listing reads.

    Attributes:
        sizes: Read the payload's size and first bytes.
        data: Read all of the data.
        bare: Read nothing but what decides the state, for listings that show IDs alone.
    """

    sizes: bool = True
    data: bool = False
    bare: bool = False


def with_details(queue: Queue, items: Sequence[Item], detail: Detail) -> list[Item]:
    """Add idle times, sizes, previews, data and counts of returns to items.

    The idle time is read before the data: where the server counts our reads as use, the order is
    what keeps the figure true.

    Raises:
        ServerError: The connection was lost.
    """
    if detail.bare:
        return list(items)
    full: list[Item] = []
    for batch in in_batches(items, items_max=ITEMS_WITH_DATA if detail.data else BATCH_ITEMS // 2):
        commands: list[tuple[object, ...]] = []
        for item in batch:
            key = queue.keys.item(item.item_id)
            commands.append(("OBJECT", "IDLETIME", key))
            if detail.data:
                commands.append(("GET", key))
            elif detail.sizes:
                commands.append(("STRLEN", key))
                commands.append(("GETRANGE", key, 0, PREVIEW_BYTES - 1))
        commands.append(("HMGET", queue.keys.returns, *(item.item_id for item in batch)))
        *details, returns = queue.call_all(commands, return_errors=True)
        replies = iter(details)
        counts = returns if isinstance(returns, list) else [None] * len(batch)
        for item, count in zip(batch, counts, strict=True):
            idle_s = _int_or_none(next(replies))
            data = payload_bytes = preview = None
            if detail.data:
                data = _bytes_or_none(next(replies))
                if data is not None:
                    payload_bytes, preview = len(data), data[:PREVIEW_BYTES]
            elif detail.sizes:
                payload_bytes = _int_or_none(next(replies))
                preview = _bytes_or_none(next(replies))
                # STRLEN of a missing key is 0, like that of an empty payload.
                if item.state in _NO_DATA:
                    payload_bytes = preview = None
            full.append(
                replace(
                    item,
                    idle_s=idle_s,
                    payload_bytes=payload_bytes,
                    preview=preview,
                    data=data,
                    returns=int(count) if count and count.isdigit() else None,
                )
            )
    return full


@dataclass(frozen=True, slots=True)
class ItemReport:
    """The facts about an ID, and what is shown beside them.

    Attributes:
        facts: The facts.
        position: 0 is next to be leased; None if it is not in main.
        lease_keys: The lease keys that exist.
        idle_s: Seconds since the data was last used; None where the server cannot say.
        main_places: Where it is in main, counted from the right: 0 is next to be leased.
        processing_places: Where it is in processing, counted from the right: 0 is the oldest.
        leases: Each lease key that holds a string, with the lease that it says.
    """

    facts: Facts
    position: int | None
    lease_keys: tuple[bytes, ...]
    idle_s: int | None
    main_places: tuple[int, ...] = ()
    processing_places: tuple[int, ...] = ()
    leases: tuple[tuple[bytes, Lease], ...] = ()


def facts_of(queue: Queue, ids: Iterable[bytes]) -> Iterator[ItemReport]:
    """Everything that the server knows about each ID, each at one instant.

    Args:
        queue: The queue.
        ids: The IDs.

    Yields:
        One item_report an ID, in order.
    """
    for item_id in ids:
        yield _facts_of_one(queue, item_id)


def _facts_of_one(queue: Queue, item_id: bytes) -> ItemReport:
    item, lease, old_lease = (
        queue.keys.item(item_id),
        queue.keys.lease(item_id),
        queue.keys.old_lease(item_id),
    )
    lists = (queue.keys.main, queue.keys.processing, queue.keys.cleaning)
    lengths = queue.call_all([("LLEN", key) for key in lists], return_errors=True)
    short = [isinstance(length, int) and length <= LPOS_LENGTH_MAX for length in lengths]
    typed = (
        item,
        lease,
        old_lease,
        *lists,
        queue.keys.delayed,
        queue.keys.buried,
        queue.keys.returns,
    )
    expected = ("string",) * 3 + ("list",) * 3 + ("zset",) * 2 + ("hash",)
    # Apart, because one refused command would abort the transaction, and services refuse OBJECT.
    (idle_reply,) = queue.call_all([("OBJECT", "IDLETIME", item)], return_errors=True)
    idle_s = _int_or_none(idle_reply)
    commands: list[tuple[object, ...]] = [("TIME",)]
    commands += [("TYPE", key) for key in typed]
    commands += [("PTTL", lease), ("GET", lease), ("PTTL", old_lease), ("GET", old_lease)]
    commands += [
        ("ZSCORE", queue.keys.delayed, item_id),
        ("ZSCORE", queue.keys.buried, item_id),
        ("HGET", queue.keys.returns, item_id),
        ("LLEN", queue.keys.main),
        ("LLEN", queue.keys.processing),
    ]
    commands += [
        ("LPOS", key, item_id, "COUNT", 0)
        for key, is_short in zip(lists, short, strict=True)
        if is_short
    ]
    replies = queue.call_all(commands, atomic=True, return_errors=True)
    time_reply = replies[0]
    types = [reply.decode() for reply in replies[1:10]]
    wrong = {
        key: found
        for key, found, wanted in zip(typed, types, expected, strict=True)
        if found not in ("none", wanted)
    }
    each = _leases((lease, replies[10], replies[11]), (old_lease, replies[12], replies[13]))
    due, buried, returns, main_length, processing_length = replies[14:19]
    # Counted from the right, the nearest to it first.
    places: list[tuple[int, ...]] = []
    found_in = iter(replies[19:])
    list_lengths = (main_length, processing_length, lengths[2])
    for key, is_short, length in zip(lists, short, list_lengths, strict=True):
        if is_short:
            reply = next(found_in)
            from_left = reply if isinstance(reply, list) else []
            places.append(tuple(int(length) - 1 - index for index in reversed(from_left)))
        elif key not in wrong:
            places.append(tuple(reversed(_places_in_pages(queue, key, item_id))))
        else:
            places.append(())
    position = places[0][0] if places[0] else None
    facts = Facts(
        item_id=item_id,
        has_data=types[0] != "none",
        in_main=len(places[0]),
        in_processing=len(places[1]),
        in_cleaning=len(places[2]),
        lease=effective_lease(lease for _, lease in each),
        due_ms=_int_or_none(due),
        buried_ms=_int_or_none(buried),
        now_ms=int(time_reply[0]) * 1000 + int(time_reply[1]) // 1000,
        returns=_int_or_none(returns),
        wrong_types=wrong,
    )
    keys_there = tuple(
        key for key, kind in zip((lease, old_lease), types[1:3], strict=True) if kind != "none"
    )
    return ItemReport(facts, position, keys_there, idle_s, places[0], places[1], each)


def _places_in_pages(queue: Queue, key: bytes, item_id: bytes) -> list[int]:
    """Where an ID is in a very long list, counted from the right; furthest first."""
    from rwq_cli.core.inspect.cursor import walk_list

    places: list[int] = []
    passed = 0
    for page in walk_list(queue, key, newest_first=False):
        places += [passed + index for index, entry in enumerate(page) if entry == item_id]
        passed += len(page)
    places.reverse()
    return places


def _leases(*seen: tuple[bytes, object, object]) -> tuple[tuple[bytes, Lease], ...]:
    """Of the keys of both generations, with time left and holder, the leases that they say."""
    return tuple(
        (key, Lease(holder, None if ttl_ms == -1 else ttl_ms))
        for key, ttl_ms, holder in seen
        if isinstance(holder, bytes) and isinstance(ttl_ms, int) and ttl_ms != -2
    )


def effective_lease(leases: Iterable[Lease]) -> Lease | None:
    """The lease that speaks where there are several; None for none.

    A session's speaks before a guard of ours, which is nobody's, whichever ends later. Of two of a
    kind the later ending one speaks.
    """

    def rank(lease: Lease) -> tuple[bool, float]:
        return not is_guard(lease), float("inf") if lease.ttl_ms is None else lease.ttl_ms

    return max(leases, key=rank, default=None)


def _int_or_none(reply: object) -> int | None:
    if isinstance(reply, float | bytes):
        return int(float(reply))
    return reply if isinstance(reply, int) else None


def _bytes_or_none(reply: object) -> bytes | None:
    return reply if isinstance(reply, bytes) else None


def seen_in_processing(queue: Queue, ids: Sequence[bytes]) -> list[Facts]:
    """The facts about IDs of processing, with their entries among what is delayed or buried.

    Without these a guard, behind which an old entry here means nothing, looks like a lease.
    """
    facts: list[Facts] = []
    for batch in in_batches(ids):
        seen = probe(queue, batch)
        time, due, buried = queue.call_all(
            [
                ("TIME",),
                ("ZMSCORE", queue.keys.delayed, *batch),
                ("ZMSCORE", queue.keys.buried, *batch),
            ]
        )
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        facts += [
            replace(
                seen_in_list(item_id, look, processing=1),
                due_ms=_int_or_none(due_ms),
                buried_ms=_int_or_none(buried_ms),
                now_ms=now_ms,
            )
            for item_id, look, due_ms, buried_ms in zip(batch, seen, due, buried, strict=True)
        ]
    return facts


def seen_in_list(item_id: bytes, seen: Probe, *, main: int = 0, processing: int = 0) -> Facts:
    """The facts that a probe at an ID of a list gives; a duplicate elsewhere stays unseen."""
    return Facts(
        item_id=item_id,
        has_data=seen.has_data,
        in_main=main,
        in_processing=processing,
        in_cleaning=0,
        lease=seen.lease,
        due_ms=None,
        buried_ms=None,
        now_ms=0,
        wrong_types={item_id: "no string"} if seen.wrong_type else {},
    )


def reason_of(lease: Lease) -> bytes | None:
    """Why an item was buried, as its guard says it; None where the lease is no such guard."""
    if not lease.holder.startswith(BURIED_GUARD):
        return None
    return lease.holder.removeprefix(BURIED_GUARD)


def item_from(queue: bytes, facts: Facts, position: int | None) -> Item:
    """An item as a listing shows it, before its details are read."""
    reason = None
    if facts.buried_ms is not None and facts.lease is not None:
        reason = reason_of(facts.lease)
    return Item(
        queue=queue,
        item_id=facts.item_id,
        state=state_of(facts),
        position=position,
        lease=facts.lease,
        due_ms=facts.due_ms,
        buried_ms=facts.buried_ms,
        reason=reason,
        returns=facts.returns,
    )
