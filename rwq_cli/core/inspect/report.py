"""Reports on single IDs, and the details that listings show."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS
from rwq_cli.core.errors import PermissionDenied, WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.lookup import Positions, look_up
from rwq_cli.core.inspect.results import (
    ResultKey,
    read_result_keys,
    result_keys_from,
    results_command,
)
from rwq_cli.core.model import PREVIEW_BYTES, Item, Lease, State
from rwq_cli.core.state.probe import probe, read_parts
from rwq_cli.core.state.rules import Facts, whole_ms
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES


class ItemReport(NamedTuple):
    """The facts about an ID, its lease keys and its places."""

    facts: Facts
    # The lease keys that exist; and those of the right type, each with its lease.
    lease_keys: tuple[bytes, ...] = ()
    leases: tuple[tuple[bytes, Lease], ...] = ()
    # Counted from the right: 0 is next to be leased, or the oldest entry.
    main_places: Positions = ()
    processing_places: Positions = ()

    @property
    def position(self) -> int | None:
        """Its place in main: 0 is next to be leased; None if it is not there."""
        return self.main_places[0] if self.main_places else None


def inspect_items(queue: Queue, ids: Iterable[bytes]) -> list[ItemReport]:
    """Read everything that the server stores about IDs, in order.

    A key of an item that has the wrong type is reported in its facts, and counts as empty.
    """
    queue.connection.set_no_touch()
    found = list(look_up(queue, list(ids)))
    # The scripts only say of a lease that it is not a string.
    types = _types(queue, (key for facts, *_ in found for key in facts.wrong_types))
    reports = []
    for facts, *places in found:
        keys = (queue.keys.lease(facts.item_id), queue.keys.old_lease(facts.item_id))
        pairs = zip(keys, (facts.new_lease, facts.old_lease), strict=True)
        leases = {key: lease for key, lease in pairs if lease is not None}
        own = {key: types[key] for key in facts.wrong_types}
        readable = tuple((key, lease) for key, lease in leases.items() if key not in own)
        facts = facts._replace(wrong_types=own) if own else facts
        reports.append(ItemReport(facts, tuple(leases), readable, *map(tuple, places)))
    return reports


class Forecast(NamedTuple):
    """How many places an item moves up per second, and in how many seconds its turn comes at that
    rate; None if it did not move up."""

    rate_per_s: float
    turn_in_s: float | None


def forecast(
    queue: Queue, reports: Sequence[ItemReport], *, sample_s: float
) -> list[Forecast | None]:
    """Compare the places of items with those after a while; None if one is not waiting both times.

    The server does not store how fast a queue is processed, so a forecast holds only for the
    moment. The rate counts the entries that leave the list ahead of an item, by a lease or
    otherwise, minus those that are pushed in front of it.
    """
    clock = queue.clock
    began_s = clock.monotonic()
    waiting = {report.facts.item_id for report in reports if report.position is not None}
    if not waiting:
        return [None] * len(reports)
    clock.sleep(sample_s)
    again = {report.facts.item_id: report.position for report in inspect_items(queue, waiting)}
    # Reading the places takes time, too.
    passed_s = max(clock.monotonic() - began_s, 1e-3)

    def of(report: ItemReport) -> Forecast | None:
        first, second = report.position, again.get(report.facts.item_id)
        if first is None or second is None:
            return None
        rate_per_s = max(0.0, (first - second) / passed_s)
        return Forecast(rate_per_s, second / rate_per_s if rate_per_s else None)

    return [of(report) for report in reports]


def state(queue: Queue, item_id: bytes | str) -> State:
    """The state of one ID."""
    (report,) = inspect_items(queue, [to_bytes(item_id)])
    return report.facts.state


def effective_leases(queue: Queue, ids: Iterable[bytes]) -> list[Lease | None]:
    """The effective lease of each ID, in order."""
    return [facts.lease for facts in probe(queue, ids)]


def describe(
    queue: Queue, reports: Iterable[ItemReport], *, data: bool = False, sizes: bool = False
) -> tuple[list[Item], list[ResultKey] | None]:
    """The items of reports, in order, with their idle times, sizes and previews, or all data; and
    the result key of each ID, None if this user may not read them.

    `sizes` reads sizes and previews even if that resets idle times, which are read before. Unless
    there are many IDs or all data is read, it takes one round trip.
    """
    items = [item_from(queue.name, report.facts, report.position) for report in reports]
    ids = [item.item_id for item in items]
    detail = detail_of(queue, data=data, sizes=sizes)
    kept: list[ResultKey] | None = None
    with suppress(PermissionDenied):
        if detail is not Detail.DATA and 0 < len(items) <= BATCH_ITEMS:
            details = queue.script("details", *ids, **_detail_args(detail))
            reply, found = queue.call_all([details, results_command(queue, ids)])
            return list(_detailed(items, reply, detail)), result_keys_from(ids, found)
        kept = [key for batch in read_result_keys(queue, ids) for key in batch]
    return list(with_details(queue, items, detail)), kept


def wrong_structures(queue: Queue) -> dict[bytes, str]:
    """The queue's lists, sorted sets and hash that have a wrong type, with their types."""
    structures = queue.keys.structures
    types = _types(queue, structures)
    return {key: kind for key, kind in types.items() if kind not in ("none", structures[key])}


def _types(queue: Queue, keys: Iterable[bytes]) -> dict[bytes, str]:
    wanted = list(keys)
    types = queue.call_all([("TYPE", key) for key in wanted])
    return {key: kind.decode() for key, kind in zip(wanted, types, strict=True)}


class Detail(Enum):
    """How much a listing reads of an item, in addition to its facts."""

    BARE = "bare"
    IDLE_TIME = "nothing"
    PREVIEW = "preview"
    DATA = "data"


def detail_of(
    queue: Queue, *, data: bool = False, bare: bool = False, sizes: bool = False
) -> Detail:
    """How much to read: sizes and previews if asked for, or if that does not reset idle times."""
    has_no_touch = queue.connection.set_no_touch()
    if data or bare:
        return Detail.DATA if data else Detail.BARE
    return Detail.PREVIEW if sizes or has_no_touch else Detail.IDLE_TIME


def item_from(queue: bytes, facts: Facts, position: int | None = None) -> Item:
    """An item as a listing shows it, before its details are read."""
    return Item(
        queue=queue,
        item_id=facts.item_id,
        state=facts.state,
        position=position,
        lease=facts.lease,
        due_ms=whole_ms(facts.due_ms),
        buried_ms=whole_ms(facts.buried_ms),
        reason=facts.reason,
        returns=facts.returns,
    )


def with_details(queue: Queue, items: Sequence[Item], detail: Detail) -> Iterator[Item]:
    """Add idle times, sizes, previews and data to items.

    The idle time is read before the data, so that it is right even if reading the data resets it.
    """
    left = iter(items)
    if detail is not Detail.BARE:
        ids = [item.item_id for item in items]
        # A structure of the wrong type keeps them from being read.
        with suppress(WrongType):
            for read, reply in read_parts(queue, "details", ids, 3, **_detail_args(detail)):
                yield from _detailed(islice(left, len(read)), reply, detail)
    yield from left


def _detail_args(detail: Detail) -> dict[str, Any]:
    return {"what": detail.value, "preview_bytes": PREVIEW_BYTES, "bytes_max": SNAPSHOT_BYTES}


def _detailed(items: Iterable[Item], reply: Sequence[Any], detail: Detail) -> Iterator[Item]:
    """The items with a reply of the script, in which None is what was not read."""
    for at, item in enumerate(items):
        idle_s, size, data = reply[3 * at : 3 * at + 3]
        # STRLEN of a missing key is 0, like that of an empty payload.
        has_data = item.state.has_data
        yield item._replace(
            idle_s=idle_s,
            payload_bytes=size if has_data else None,
            preview=data[:PREVIEW_BYTES] if has_data and data is not None else None,
            data=data if detail is Detail.DATA else None,
        )
