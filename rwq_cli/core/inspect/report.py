"""Reports on single IDs, and the details that listings show."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from enum import Enum
from itertools import islice
from os import urandom
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.errors import WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.lookup import look_up
from rwq_cli.core.inspect.places import Positions
from rwq_cli.core.inspect.results import (
    ResultKey,
    read_result_keys,
    result_keys_from,
    results_command,
)
from rwq_cli.core.model import PREVIEW_BYTES, Item, Lease, State
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts, whole_ms
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES


class ItemReport(NamedTuple):
    """The facts about an ID, its lease keys and its places.

    Attributes:
        facts: The facts.
        lease_keys: The lease keys that exist.
        leases: Each lease key of the right type, with its lease.
        main_places: Its places in main, counted from the right: 0 is next to be leased.
        processing_places: Its places in processing, counted from the right: 0 is the oldest entry.
    """

    facts: Facts
    lease_keys: tuple[bytes, ...] = ()
    leases: tuple[tuple[bytes, Lease], ...] = ()
    main_places: Positions = ()
    processing_places: Positions = ()

    @property
    def position(self) -> int | None:
        """Its place in main: 0 is next to be leased; None if it is not there."""
        return self.main_places[0] if self.main_places else None


def inspect_items(queue: Queue, ids: Iterable[bytes]) -> list[ItemReport]:
    """Read everything that the server stores about IDs, in order.

    A key of the wrong type, even one of the queue's lists, is reported in the facts, and counts as
    empty.

    Args:
        queue: The queue.
        ids: The IDs, a few hundred at most.
    """
    queue.connection.set_no_touch()
    wanted = list(ids)
    wrong: dict[bytes, str] = {}
    try:
        found = list(look_up(queue, wanted))
    except WrongType:
        queue, wrong = _without_wrong_structures(queue)
        found = list(look_up(queue, wanted))
    reports = []
    for facts, main, processing in found:
        keys = (queue.keys.lease(facts.item_id), queue.keys.old_lease(facts.item_id))
        leases = [
            (key, lease)
            for key, lease in zip(keys, (facts.new_lease, facts.old_lease), strict=True)
            if lease is not None
        ]
        types = {**_types(queue, facts.wrong_types), **wrong}
        reports.append(
            ItemReport(
                facts._replace(wrong_types=types) if types else facts,
                tuple(key for key, _ in leases),
                tuple((key, lease) for key, lease in leases if key not in types),
                tuple(main),
                tuple(processing),
            )
        )
    return reports


def state(queue: Queue, item_id: bytes | str) -> State:
    """The state of one ID."""
    (report,) = inspect_items(queue, [to_bytes(item_id)])
    return report.facts.state


def effective_leases(queue: Queue, ids: Iterable[bytes]) -> list[Lease | None]:
    """The effective lease of each ID, in order."""
    return [facts.lease for facts in probe(queue, ids)]


def describe(queue: Queue, reports: Iterable[ItemReport], *, data: bool = False) -> Iterator[Item]:
    """The items of reports, in order, with their idle times, sizes and previews.

    Args:
        queue: The queue.
        reports: The reports.
        data: Read all of the data.
    """
    items = [item_from(queue.name, report.facts, report.position) for report in reports]
    return with_details(queue, items, detail_of(queue, data=data))


def describe_with_results(
    queue: Queue, reports: Iterable[ItemReport], *, data: bool = False
) -> tuple[list[Item], list[ResultKey]]:
    """The items of reports, as from `describe`, and the result key of each ID.

    Both are read in one round trip, unless there are more than 500 IDs or all data is read.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    items = [item_from(queue.name, report.facts, report.position) for report in reports]
    ids = [item.item_id for item in items]
    detail = detail_of(queue, data=data)
    if detail is Detail.DATA or not 0 < len(items) <= BATCH_ITEMS:
        found = [key for batch in read_result_keys(queue, ids) for key in batch]
        return list(with_details(queue, items, detail)), found
    details = queue.script("details", *_detail_args(detail), *ids)
    reply, kept = queue.call_all([details, results_command(queue, ids)])
    return list(_detailed(items, reply, detail)), result_keys_from(ids, kept)


def wrong_structures(queue: Queue) -> dict[bytes, str]:
    """The queue's lists, sorted sets and hash that have a wrong type, with their types."""
    structures = queue.keys.structures
    types = _types(queue, structures)
    return {key: kind for key, kind in types.items() if kind not in ("none", structures[key])}


def _without_wrong_structures(queue: Queue) -> tuple[Queue, dict[bytes, str]]:
    """A handle that hides the queue's lists and sorted sets of the wrong type, and their types."""
    wrong = wrong_structures(queue)
    masked, masked.keys = copy(queue), copy(queue.keys)
    for name, key in vars(queue.keys).items():
        if key in wrong:
            setattr(masked.keys, name, queue.name + b":" + urandom(16).hex().encode())
    return masked, wrong


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


def detail_of(queue: Queue, *, data: bool = False, bare: bool = False) -> Detail:
    """How much to read: sizes and previews only if that does not reset idle times."""
    has_no_touch = queue.connection.set_no_touch()
    if data or bare:
        return Detail.DATA if data else Detail.BARE
    return Detail.PREVIEW if has_no_touch else Detail.IDLE_TIME


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
    if detail is Detail.BARE:
        yield from items
        return
    left, args = iter(items), _detail_args(detail)
    batches = in_batches([item.item_id for item in items])
    with suppress(WrongType):
        for batch, reply in queue.read_each("details", batches, *args):
            read = len(reply) // 3
            yield from _detailed(islice(left, read), reply, detail)
            while read < len(batch):
                # So much data ends a reply.
                reply = queue.run("details", *args, *batch[read:])
                read += len(reply) // 3
                yield from _detailed(islice(left, len(reply) // 3), reply, detail)
    # A structure of the wrong type keeps them from being read.
    yield from left


def _detail_args(detail: Detail) -> tuple[object, ...]:
    return detail.value, PREVIEW_BYTES, SNAPSHOT_BYTES


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
