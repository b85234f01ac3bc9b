"""A walk over a whole queue, for what no single list can tell: orphans, ghosts, duplicates."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from rwq_cli.core.batches import in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import glance
from rwq_cli.core.paging import walk_list, walk_processing

_SCAN_COUNT = 1000

_DATA, _MAIN, _PROCESSING, _SCHEDULED = 1, 2, 4, 8
_LISTED = _MAIN | _PROCESSING | _SCHEDULED
_TWICE = 16

# Suffixes of the keys that make a queue, by which a queue called `Q:item` or `Q:item:x` betrays
# itself among what looks like the data keys of Q.
_STRUCTURES = (b"queue", b"processing", b"cleaning", b"delayed", b"buried", b"returns")
_MEMBERS = (b"item:", b"lease:", b"leased_by_session:", b"result:")


@dataclass(slots=True)
class Survey:
    """What a walk found. IDs are in the order in which they were met.

    Attributes:
        orphaned: Items in no list or zset, without a lease.
        unlisted: Items in no list or zset, with a lease that ends.
        held: Items in no list or zset, with a lease that does not end.
        main_ghosts: IDs in main without data.
        processing_ghosts: IDs in processing without data.
        scheduled_ghosts: IDs in the delayed or buried zset without data, with that zset's name.
        duplicated: Items in main more than once, or in main and in processing.
        stale_cleaning: IDs in the list of a 0.1 cleaner that are gone, or in another list.
        stale_returns: IDs with a count of returns that have no data.
        items: How many data keys there are.
    """

    orphaned: list[bytes] = field(default_factory=list)
    unlisted: list[bytes] = field(default_factory=list)
    held: list[bytes] = field(default_factory=list)
    main_ghosts: list[bytes] = field(default_factory=list)
    processing_ghosts: list[bytes] = field(default_factory=list)
    scheduled_ghosts: list[tuple[bytes, str]] = field(default_factory=list)
    duplicated: list[bytes] = field(default_factory=list)
    stale_cleaning: list[bytes] = field(default_factory=list)
    stale_returns: list[bytes] = field(default_factory=list)
    items: int = 0


def survey(
    connection: Connection,
    keys: QueueKeys,
    others: Callable[[list[bytes]], object] | None = None,
) -> Survey:
    """Walk over the data keys, both lists and the zsets.

    The order is what keeps live work from looking broken: the data keys first, then main, then
    processing, in the direction in which items travel. An item that is added, leased or completed
    meanwhile is met at one of the stations, or is gone. What still slips through is what the
    second look of a clean is for.

    Of each ID a number of 64 bits is kept. If two IDs of a million share one (about once in
    twenty million walks), an orphan can look listed; Python salts the hash anew in each process,
    so the next walk finds it.

    Args:
        connection: The server.
        keys: The queue.
        others: Takes pages of all other keys under the queue's prefix, met on the way.

    Raises:
        ServerError: The server refused, or was lost.
    """
    found = Survey()
    marks: dict[int, int] = {}
    nested = _scan_data(connection, keys, marks, others)
    found.items = len(marks)
    suspects = list(_walk_lists(connection, keys, marks, found))
    _sort_ghosts(connection, keys, suspects, found)
    _read_own_structures(connection, keys, marks, found)
    if any(not mark & _LISTED for mark in marks.values()):
        _name_unlisted(connection, keys, marks, nested, found)
    return found


def scan_ids(
    connection: Connection,
    keys: QueueKeys,
    others: Callable[[list[bytes]], object] | None = None,
) -> Iterator[list[bytes]]:
    """The IDs of all data keys, in pages; some may be met twice, as SCAN says.

    `others` takes pages of all other keys under the queue's prefix; they may come twice, too.
    """
    prefix, prefix_length = keys.item_prefix, len(keys.item_prefix)
    pattern = keys.item_pattern if others is None else keys.pattern
    cursor: object = 0
    while True:
        cursor, page = connection.call("SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT)
        if others is not None and (rest := [key for key in page if not key.startswith(prefix)]):
            others(rest)
            page = [key for key in page if key.startswith(prefix)]
        if page:
            yield [key[prefix_length:] for key in page]
        if int(cursor) == 0:  # type: ignore[call-overload]
            return


def listed_ids(
    connection: Connection, keys: QueueKeys, candidates: Iterable[bytes]
) -> frozenset[bytes]:
    """Which of the candidates are in main, processing or a zset, read in pages.

    Main is read before processing, so that an item leased meanwhile is met in one of them.
    """
    sought = frozenset(candidates)
    met: set[bytes] = set()
    for page in chain(
        walk_list(connection, keys.main, newest_first=True), walk_processing(connection, keys)
    ):
        met.update(sought.intersection(page))
    for _, page in _zset_members(connection, keys):
        met.update(sought.intersection(page))
    return frozenset(met)


def _scan_data(
    connection: Connection,
    keys: QueueKeys,
    marks: dict[int, int],
    others: Callable[[list[bytes]], object] | None,
) -> list[bytes]:
    suspects: list[bytes] = []
    for page in scan_ids(connection, keys, others):
        for item_id in page:
            marks[hash(item_id)] = _DATA
            if item_id.endswith(_STRUCTURES):
                suspects.append(item_id)
    return _nested_queues(connection, keys, suspects)


def _nested_queues(connection: Connection, keys: QueueKeys, suspects: list[bytes]) -> list[bytes]:
    """Prefixes of IDs that are really the keys of queues whose names begin with `Q:item`."""
    prefixes = set()
    types = connection.call_all([("TYPE", keys.item(suspect)) for suspect in suspects])
    for suspect, kind in zip(suspects, types, strict=True):
        if kind in (b"list", b"zset", b"hash"):
            head, _, tail = suspect.rpartition(b":")
            if tail in _STRUCTURES:
                prefixes.add(head + b":" if head else b"")
    return sorted(prefixes)


def _belongs_elsewhere(item_id: bytes, nested: list[bytes]) -> bool:
    return any(
        item_id.startswith(tuple(prefix + member for member in _MEMBERS))
        or item_id in tuple(prefix + structure for structure in _STRUCTURES)
        for prefix in nested
    )


def _walk_lists(
    connection: Connection, keys: QueueKeys, marks: dict[int, int], found: Survey
) -> Iterator[tuple[bytes, int]]:
    """Mark what is listed; yield what is listed without data, and where."""
    walks = (
        (walk_list(connection, keys.main, newest_first=True), _MAIN),
        (walk_processing(connection, keys), _PROCESSING),
    )
    for walk, here in walks:
        for page in walk:
            for item_id in page:
                number = hash(item_id)
                mark = marks.get(number, 0)
                if not mark & _DATA:
                    yield item_id, here
                elif mark & _MAIN and not mark & _TWICE:
                    found.duplicated.append(item_id)
                    mark |= _TWICE
                marks[number] = mark | here


def _sort_ghosts(
    connection: Connection,
    keys: QueueKeys,
    suspects: list[tuple[bytes, int]],
    found: Survey,
) -> None:
    seen = glance(connection, keys, [item_id for item_id, _ in suspects])
    met: Counter[bytes] = Counter()
    for (item_id, here), look in zip(suspects, seen, strict=True):
        met[item_id] += 1
        if look.has_data:
            # It was added after the data keys were walked.
            if met[item_id] == 2:
                found.duplicated.append(item_id)
        elif here == _MAIN:
            found.main_ghosts.append(item_id)
        else:
            found.processing_ghosts.append(item_id)


def _zset_members(connection: Connection, keys: QueueKeys) -> Iterator[tuple[str, list[bytes]]]:
    for name, key in (("delayed", keys.delayed), ("buried", keys.buried)):
        cursor: object = 0
        while True:
            cursor, members = connection.call("ZSCAN", key, cursor, "COUNT", _SCAN_COUNT)
            # redis-py pairs the scores with the members; a bare client gives one flat list.
            page = [entry[0] if isinstance(entry, tuple) else entry for entry in members]
            if page:
                yield name, page
            if int(cursor) == 0:  # type: ignore[call-overload]
                break


def _read_own_structures(
    connection: Connection, keys: QueueKeys, marks: dict[int, int], found: Survey
) -> None:
    for name, page in _zset_members(connection, keys):
        for item_id, look in zip(page, glance(connection, keys, page), strict=True):
            if not look.has_data:
                found.scheduled_ghosts.append((item_id, name))
            number = hash(item_id)
            marks[number] = marks.get(number, 0) | _SCHEDULED
    for page in walk_list(connection, keys.cleaning, newest_first=True):
        for item_id, look in zip(page, glance(connection, keys, page), strict=True):
            listed = marks.get(hash(item_id), 0) & _LISTED
            if not look.has_data or listed:
                found.stale_cleaning.append(item_id)
    cursor: object = 0
    while True:
        cursor, fields = connection.call("HSCAN", keys.returns, cursor, "COUNT", _SCAN_COUNT)
        page = list(fields)
        for item_id, look in zip(page, glance(connection, keys, page), strict=True):
            if not look.has_data:
                found.stale_returns.append(item_id)
        if int(cursor) == 0:  # type: ignore[call-overload]
            break


def _name_unlisted(
    connection: Connection,
    keys: QueueKeys,
    marks: dict[int, int],
    nested: list[bytes],
    found: Survey,
) -> None:
    """Walk the data keys again, for the IDs whose numbers were met in no list."""
    for page in scan_ids(connection, keys):
        unlisted = []
        for item_id in page:
            number = hash(item_id)
            # An ID that SCAN gives twice is named once.
            if marks.get(number, _LISTED) == _DATA and not _belongs_elsewhere(item_id, nested):
                marks[number] |= _TWICE
                unlisted.append(item_id)
        for batch in in_batches(unlisted):
            for item_id, look in zip(batch, glance(connection, keys, batch), strict=True):
                if look.has_data and not look.wrong_type:
                    if look.lease is None:
                        found.orphaned.append(item_id)
                    else:
                        (found.unlisted if look.lease.ends else found.held).append(item_id)
