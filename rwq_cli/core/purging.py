"""Taking away a whole queue: every item, and every key that is left then."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from rwq_cli.core.all_results import ResultCount, drop_results
from rwq_cli.core.batches import in_batches
from rwq_cli.core.cleaning import prune, prune_cleaning_by_pages
from rwq_cli.core.connection import Connection
from rwq_cli.core.errors import PermissionDenied, ServerError
from rwq_cli.core.exporting import Export
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import glance
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.nested import member_ids, nested_names, owners_of, without_anothers
from rwq_cli.core.paging import PAGE_SIZE, lengths_of
from rwq_cli.core.pictures import Place
from rwq_cli.core.results import read_results
from rwq_cli.core.scripts import queue_args, queue_keys
from rwq_cli.core.survey import listed_ids
from rwq_cli.core.taking import Ledger, Taking


@dataclass(slots=True)
class Remains:
    """What is left under the names of results.

    Attributes:
        others: How many keys there are no results of ours.
        is_unknown: Whether this user may not touch results, so that all of them stay.
    """

    others: int = 0
    is_unknown: bool = False


def purge(
    connection: Connection,
    keys: QueueKeys,
    ledger: Ledger,
    *,
    grace_s: float,
    sleep: Callable[[float], None],
    remains: Remains | None = None,
) -> Iterator[OutcomeBatch]:
    """Remove all items that are in the queue now, and then what belongs to no item.

    What a live producer adds meanwhile stays, as healthy items: main is taken no further than to
    the newest entry that it has now, and what is in no list only if it is in none a grace period
    later, because it may be between two commands of its producer. Items that workers hold go with
    their leases. Keys of queues that are named like ours are left alone.

    Args:
        connection: The server.
        keys: The queue.
        ledger: Where the items, and the results that are kept of others, are written down first.
        grace_s: Seconds between the two looks at what is in no list.
        sleep: Waits for so many seconds.
        remains: Takes what of results is left.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many were removed.

    Yields:
        Outcomes of the items: removed, changed (by somebody else meanwhile, and so left), or of a
        wrong type.
    """
    acknowledged = 0
    connection.meter.begin("removing", lengths_of(connection, keys.main, keys.processing))
    try:
        for batch in _items(connection, keys, ledger, grace_s, sleep):
            # A ghost was no item.
            told = [at for at, letter in enumerate(batch.letters) if letter != "m"]
            if told:
                outcomes = OutcomeBatch(
                    [batch.ids[at] for at in told], "".join(batch.letters[at] for at in told)
                )
                acknowledged += outcomes.letters.count("x")
                connection.meter.advance(len(outcomes))
                yield outcomes
        _take_results(connection, keys, ledger, grace_s, sleep, remains or Remains())
        _sweep(connection, keys, grace_s, sleep)
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def would_purge(connection: Connection, keys: QueueKeys) -> Iterator[OutcomeBatch]:
    """What `purge` would remove, found out by reading it.

    Raises:
        ServerError: The server refused, or was lost.
    """
    export = Export(connection, keys)
    for batch in export.batches():
        yield OutcomeBatch([picture.item_id for picture in batch], "x" * len(batch))
    if wrong := export.left_out.wrong_types:
        yield OutcomeBatch(wrong, "y" * len(wrong))


def count_items(connection: Connection, keys: QueueKeys) -> int:
    """How many items there are, whatever state they are in.

    Raises:
        ServerError: The server refused, or was lost.
    """
    connection.meter.begin("counting the items")
    names = nested_names(connection, keys)
    pages = member_ids(connection, keys, (keys.item_prefix,), names)
    return len({hash(item_id) for page in pages for item_id in page})


def _items(
    connection: Connection,
    keys: QueueKeys,
    ledger: Ledger,
    grace_s: float,
    sleep: Callable[[float], None],
) -> Iterator[OutcomeBatch]:
    taking = Taking(connection, keys, ledger)
    newest, waiting = connection.call_all(
        [("LINDEX", keys.main, 0), ("LLEN", keys.main)], atomic=True
    )
    if waiting:
        # Of an ID that waits twice the one in front must not end the walk.
        if connection.call("LPOS", keys.main, newest, "RANK", 2) is not None:
            newest = None
        yield from taking.take_listed(Place.MAIN, last=newest, entries_max=waiting)
    if in_processing := connection.call("LLEN", keys.processing):
        yield from taking.take_listed(Place.PROCESSING, entries_max=in_processing)
    for key in (keys.delayed, keys.buried):
        for page in _members_of(connection, key):
            yield from taking.take_unlisted(page)
    connection.meter.begin("looking for what is in no list")
    names = nested_names(connection, keys)
    pages = member_ids(connection, keys, (keys.item_prefix,), names)
    left = _unlisted(connection, keys, {item_id: None for page in pages for item_id in page})
    if left:
        sleep(grace_s)
        prefixes = (keys.item_prefix, keys.lease_prefix, keys.old_lease_prefix)
        for batch in in_batches(_unlisted(connection, keys, left)):
            own = without_anothers(connection, keys, batch, prefixes)
            yield from taking.take_unlisted(own)


def _unlisted(connection: Connection, keys: QueueKeys, ids: Collection[bytes]) -> list[bytes]:
    if not ids:
        return []
    listed = listed_ids(connection, keys, ids)
    return [item_id for item_id in ids if item_id not in listed]


def _members_of(connection: Connection, key: bytes) -> Iterator[list[bytes]]:
    """The members of a zset, in pages, while they are removed from it."""
    passed: set[bytes] = set()
    start = 0
    while page := connection.call("ZRANGE", key, start, start + PAGE_SIZE - 1):
        fresh = [member for member in page if member not in passed]
        if fresh:
            passed.update(fresh)
            yield fresh
        else:
            # All that is here was tried before, and stays.
            start += len(page)


def _own(
    connection: Connection,
    keys: QueueKeys,
    prefixes: tuple[bytes, ...],
    grace_s: float,
    sleep: Callable[[float], None],
) -> Iterator[list[bytes]]:
    """The IDs in our keys with these prefixes.

    What may be another queue's comes only if that queue has no structure a grace period later
    either: its first item may be between two commands of its producer.
    """
    doubtful: dict[bytes, None] = {}
    for page in member_ids(connection, keys, prefixes, nested_names(connection, keys)):
        ids = dict.fromkeys(page)
        for item_id in page:
            if owners_of(keys, item_id, prefixes):
                doubtful[item_id] = None
                ids.pop(item_id, None)
        yield list(ids)
    if ours := without_anothers(connection, keys, doubtful, prefixes):
        sleep(grace_s)
        for batch in in_batches(ours):
            yield without_anothers(connection, keys, batch, prefixes)


def _take_results(
    connection: Connection,
    keys: QueueKeys,
    ledger: Ledger,
    grace_s: float,
    sleep: Callable[[float], None],
    remains: Remains,
) -> None:
    """Delete the results of items that are gone; what is no result of ours stays."""
    connection.meter.begin("removing results")
    count = ResultCount(connection, keys)
    for ids in _own(connection, keys, (keys.result_prefix,), grace_s, sleep):
        try:
            count.meet(ids)
        except PermissionDenied:
            remains.is_unknown = True
            return
        looks = glance(connection, keys, ids)
        gone = [item_id for item_id, look in zip(ids, looks, strict=True) if not look.has_data]
        for results in read_results(connection, keys, gone):
            ledger.write_results(results)
            drop_results(connection, keys, results)
            connection.meter.advance(len(results))
    remains.others = count.others


def _sweep(
    connection: Connection, keys: QueueKeys, grace_s: float, sleep: Callable[[float], None]
) -> None:
    """Delete what is left and belongs to no item."""
    prefixes = (keys.lease_prefix, keys.old_lease_prefix)

    def sweep(ids: Collection[bytes]) -> None:
        if ids:
            words = (*queue_args(keys), *ids)
            connection.run("sweep", queue_keys(keys), words)

    for ids in _own(connection, keys, prefixes, grace_s, sleep):
        sweep(ids)
    for which, key in (("delayed", keys.delayed), ("buried", keys.buried)):
        for page in _members_of(connection, key):
            prune(connection, keys, which, page)
    cursor: object = 0
    while True:
        cursor, fields = connection.call("HSCAN", keys.returns, cursor, "COUNT", PAGE_SIZE)
        if fields:
            prune(connection, keys, "returns", list(fields))
        if int(cursor) == 0:  # type: ignore[call-overload]
            break

    def without_data(page: list[bytes]) -> list[bytes]:
        looks = glance(connection, keys, page)
        return [item_id for item_id, look in zip(page, looks, strict=True) if not look.has_data]

    connection.meter.begin("reading cleaning", lengths_of(connection, keys.cleaning))
    for _ in prune_cleaning_by_pages(connection, keys, without_data):
        connection.meter.advance(1)
