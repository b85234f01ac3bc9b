"""Remover away a whole queue: every item, and every key that is left then."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import PAGE_SIZE, lengths_of
from rwq_cli.core.inspect.nested_queues import (
    exclude_nested_queues,
    member_ids,
    nested_names,
    owners_of,
)
from rwq_cli.core.inspect.report import probe
from rwq_cli.core.inspect.survey import listed_ids
from rwq_cli.core.items.all_results import ResultCount, drop_results
from rwq_cli.core.items.exporting import Export
from rwq_cli.core.items.remove import Journal, Remover
from rwq_cli.core.items.results import read_results
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.repair.clean import prune, prune_cleaning_by_pages
from rwq_cli.core.state.snapshot import Place


@dataclass(slots=True)
class Leftovers:
    """What is left under the names of results.

    Attributes:
        others: How many keys there are no results of ours.
        is_unknown: Whether this user may not touch results, so that all of them stay.
    """

    others: int = 0
    is_unknown: bool = False


def purge(
    queue: Queue,
    journal: Journal,
    *,
    grace_s: float,
    sleep: Callable[[float], None],
    leftovers: Leftovers | None = None,
) -> Iterator[OutcomeBatch]:
    """Remove all items that are in the queue now, and then what belongs to no item.

    What a live producer adds meanwhile stays, as healthy items: main is taken no further than to
    the newest entry that it has now, and what is in no list only if it is in none a grace period
    later, because it may be between two commands of its producer. Items that workers hold go with
    their leases. Keys of queues that are named like ours are left alone.

    Args:
        queue: The queue.
        journal: Where the items, and the results that are kept of others, are written down first.
        grace_s: Seconds between the two looks at what is in no list.
        sleep: Waits for so many seconds.
        leftovers: Takes what of results is left.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many were removed.

    Yields:
        Outcomes of the items: removed, changed (by somebody else meanwhile, and so left), or of a
        wrong type.
    """
    acknowledged = 0
    queue.progress.begin("removing", lengths_of(queue, queue.keys.main, queue.keys.processing))
    try:
        for batch in _items(queue, journal, grace_s, sleep):
            # A ghost was no item.
            told = [at for at, letter in enumerate(batch.letters) if letter != "m"]
            if told:
                outcomes = OutcomeBatch(
                    [batch.ids[at] for at in told], "".join(batch.letters[at] for at in told)
                )
                acknowledged += outcomes.letters.count("x")
                queue.progress.advance(len(outcomes))
                yield outcomes
        _take_results(queue, journal, grace_s, sleep, leftovers or Leftovers())
        _sweep(queue, grace_s, sleep)
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def would_purge(
    queue: Queue,
) -> Iterator[OutcomeBatch]:
    """What `purge` would remove, found out by reading it."""
    export = Export(
        queue,
    )
    for batch in export.batches():
        yield OutcomeBatch([snapshot.item_id for snapshot in batch], "x" * len(batch))
    if wrong := export.skipped.wrong_types:
        yield OutcomeBatch(wrong, "y" * len(wrong))


def count_items(
    queue: Queue,
) -> int:
    """How many items there are, whatever state they are in."""
    queue.progress.begin("counting the items")
    names = nested_names(
        queue,
    )
    pages = member_ids(queue, (queue.keys.item_prefix,), names)
    return len({hash(item_id) for page in pages for item_id in page})


def _items(
    queue: Queue,
    journal: Journal,
    grace_s: float,
    sleep: Callable[[float], None],
) -> Iterator[OutcomeBatch]:
    taking = Remover(queue, journal)
    newest, waiting = queue.call_all(
        [("LINDEX", queue.keys.main, 0), ("LLEN", queue.keys.main)], atomic=True
    )
    if waiting:
        # Of an ID that waits twice the one in front must not end the walk.
        if queue.call("LPOS", queue.keys.main, newest, "RANK", 2) is not None:
            newest = None
        yield from taking.take_listed(Place.MAIN, last=newest, entries_max=waiting)
    if in_processing := queue.call("LLEN", queue.keys.processing):
        yield from taking.take_listed(Place.PROCESSING, entries_max=in_processing)
    for key in (queue.keys.delayed, queue.keys.buried):
        for page in _members_of(queue, key):
            yield from taking.take_unlisted(page)
    queue.progress.begin("looking for what is in no list")
    names = nested_names(
        queue,
    )
    pages = member_ids(queue, (queue.keys.item_prefix,), names)
    left = _unlisted(queue, {item_id: None for page in pages for item_id in page})
    if left:
        sleep(grace_s)
        prefixes = (queue.keys.item_prefix, queue.keys.lease_prefix, queue.keys.old_lease_prefix)
        for batch in in_batches(_unlisted(queue, left)):
            own = exclude_nested_queues(queue, batch, prefixes)
            yield from taking.take_unlisted(own)


def _unlisted(queue: Queue, ids: Collection[bytes]) -> list[bytes]:
    if not ids:
        return []
    listed = listed_ids(queue, ids)
    return [item_id for item_id in ids if item_id not in listed]


def _members_of(queue: Queue, key: bytes) -> Iterator[list[bytes]]:
    """The members of a zset, in pages, while they are removed from it."""
    passed: set[bytes] = set()
    start = 0
    while page := queue.call("ZRANGE", key, start, start + PAGE_SIZE - 1):
        fresh = [member for member in page if member not in passed]
        if fresh:
            passed.update(fresh)
            yield fresh
        else:
            # All that is here was tried before, and stays.
            start += len(page)


def _own(
    queue: Queue,
    prefixes: tuple[bytes, ...],
    grace_s: float,
    sleep: Callable[[float], None],
) -> Iterator[list[bytes]]:
    """The IDs in our keys with these prefixes.

    What may be another queue's comes only if that queue has no structure a grace period later
    either: its first item may be between two commands of its producer.
    """
    doubtful: dict[bytes, None] = {}
    for page in member_ids(
        queue,
        prefixes,
        nested_names(
            queue,
        ),
    ):
        ids = dict.fromkeys(page)
        for item_id in page:
            if owners_of(queue.keys, item_id, prefixes):
                doubtful[item_id] = None
                ids.pop(item_id, None)
        yield list(ids)
    if ours := exclude_nested_queues(queue, doubtful, prefixes):
        sleep(grace_s)
        for batch in in_batches(ours):
            yield exclude_nested_queues(queue, batch, prefixes)


def _take_results(
    queue: Queue,
    journal: Journal,
    grace_s: float,
    sleep: Callable[[float], None],
    leftovers: Leftovers,
) -> None:
    """Delete the results of items that are gone; what is no result of ours stays."""
    queue.progress.begin("removing results")
    count = ResultCount(
        queue,
    )
    for ids in _own(queue, (queue.keys.result_prefix,), grace_s, sleep):
        try:
            count.meet(ids)
        except PermissionDenied:
            leftovers.is_unknown = True
            return
        looks = probe(queue, ids)
        gone = [item_id for item_id, look in zip(ids, looks, strict=True) if not look.has_data]
        for results in read_results(queue, gone):
            journal.write_results(results)
            drop_results(queue, results)
            queue.progress.advance(len(results))
    leftovers.others = count.others


def _sweep(queue: Queue, grace_s: float, sleep: Callable[[float], None]) -> None:
    """Delete what is left and belongs to no item."""
    prefixes = (queue.keys.lease_prefix, queue.keys.old_lease_prefix)

    def sweep(ids: Collection[bytes]) -> None:
        if ids:
            queue.run("sweep", *ids)

    for ids in _own(queue, prefixes, grace_s, sleep):
        sweep(ids)
    for which, key in (("delayed", queue.keys.delayed), ("buried", queue.keys.buried)):
        for page in _members_of(queue, key):
            prune(queue, which, page)
    cursor: object = 0
    while True:
        cursor, fields = queue.call("HSCAN", queue.keys.returns, cursor, "COUNT", PAGE_SIZE)
        if fields:
            prune(queue, "returns", list(fields))
        if int(cursor) == 0:  # type: ignore[call-overload]
            break

    def without_data(page: list[bytes]) -> list[bytes]:
        looks = probe(queue, page)
        return [item_id for item_id, look in zip(page, looks, strict=True) if not look.has_data]

    queue.progress.begin("reading cleaning", lengths_of(queue, queue.keys.cleaning))
    for _ in prune_cleaning_by_pages(queue, without_data):
        queue.progress.advance(1)
