"""Removing a whole queue: its items by `lua/ops/complete.lua`, then every other key."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from rwq_cli.core.batches import BLOCK_IDS, Acknowledged, in_batches
from rwq_cli.core.clock import GRACE_S, unix_ms
from rwq_cli.core.errors import InvalidArgument, PermissionDenied, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    ListCursor,
    ScheduledCursor,
    lengths_of,
    page_entries,
    read_first_pages,
)
from rwq_cli.core.inspect.keyspace import ids_of, nested_names, unlisted_owners
from rwq_cli.core.inspect.places import NO_PLACES, Places
from rwq_cli.core.inspect.results import KIND_NONE, read_result_keys
from rwq_cli.core.items.complete import removal
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.repairs import prune
from rwq_cli.core.keys import PER_QUEUE_SUFFIXES
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.reads import read_facts

_Ids = dict[bytes, None]


@dataclass(slots=True)
class PurgedResults:
    """How many results a purge removed, and how many of their keys are none, and stay."""

    results: int = 0
    others: int = 0
    # This user may not access results, so that all of them stay.
    is_denied: bool = False


def purge(
    queue: Queue,
    journal: Journal | None = None,
    *,
    grace_s: float = GRACE_S,
    results: PurgedResults | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Remove all items that are in the queue now, and then every key that belongs to no item.

    Items that a live producer adds during the purge stay healthy: main is read only up to the
    entry that is the newest now, and an item in no list is removed only if it is still in none a
    grace period later, because it may be between two commands of its producer. If another queue's
    keys look like items of this one, that is an `InvalidArgument`, and nothing was removed.
    """
    return Outcomes(_purged(queue, journal, grace_s, results or PurgedResults(), dry_run))


def count_items(queue: Queue) -> int:
    """Count the items in any state. SCAN may return a key twice, so each ID is kept in memory."""
    queue.progress.begin("counting the items")
    items, *_ = _own_ids(queue)
    return len(items)


def _own_ids(queue: Queue) -> tuple[_Ids, _Ids, _Ids, _Ids]:
    """Scan all keys once for the IDs of items, leases, results and marks; `InvalidArgument` if keys
    of another queue are among them."""
    keys, items, leases, results, marks = queue.keys, _Ids(), _Ids(), _Ids(), _Ids()
    both = dict.fromkeys(keys.id_prefixes, leases)
    ids_by_prefix = both | {
        keys.item_prefix: items,
        keys.result_prefix: results,
        keys.undo_prefix: marks,
    }
    suspects: list[bytes] = []
    for page in queue.connection.scan_keys(keys.pattern):
        before = len(items)
        for prefix, ids in ids_by_prefix.items():
            ids.update(dict.fromkeys(ids_of(page, prefix)))
        queue.progress.advance(len(items) - before)
        members = (key for key in page if key.endswith(PER_QUEUE_SUFFIXES))
        suspects += (key for key in members if key.startswith(tuple(ids_by_prefix)))
    if nested := nested_names(queue, suspects) or unlisted_owners(queue, items):
        name, other = text_of(queue.name), text_of(nested[0])
        raise InvalidArgument(
            f"keys of the queue {other} look like items of {name}",
            f"purge {other} first; or if they are items of {name} in no list, clean it first",
        )
    return items, leases, results, marks


def _purged(
    queue: Queue, journal: Journal | None, grace_s: float, purged: PurgedResults, dry_run: bool
) -> Iterator[OutcomeBatch]:
    queue.connection.set_no_touch()
    queue.progress.begin("reading the keys")
    # Of the items, those that are left.
    items, leases, results, marks = _own_ids(queue)
    # What would be removed, in a dry run; and what stays, perhaps in several structures.
    gone: set[bytes] = set()
    staying: set[bytes] = set()
    kept = None if dry_run else journal
    removing = removal(queue, kept, dry_run=dry_run)

    def in_no_list(ids: Iterable[bytes]) -> list[bytes]:
        wanted = {item_id: None for item_id in ids if item_id not in staying}
        main, processing, *_ = Places.read(queue, wanted) if wanted else NO_PLACES
        return [i for i in wanted if i not in main and i not in processing]

    def acted_on() -> Iterator[OutcomeBatch]:
        for ids, places in _walk(queue):
            yield from removing.run_block(ids, places)
        queue.progress.begin("looking for items in no list")
        if orphans := in_no_list(items):
            queue.clock.sleep(grace_s)
            yield from removing.act([Located.unlisted(in_no_list(orphans))])

    lengths = lengths_of(queue, queue.keys.main, queue.keys.processing)
    queue.progress.begin("reading the lists", lengths)
    with Acknowledged() as acknowledged:
        for batch in acted_on():
            # A ghost is not an item; and one may be in several blocks.
            unremovable = batch.ids_with(Status.WRONG_TYPE, Status.MOVING)
            reported = {*batch.ids_with(Status.REMOVED, Status.CHANGED), *unremovable}
            batch = batch.only(reported - staying - gone)
            removed = batch.ids_with(Status.REMOVED)
            staying.update(unremovable)
            gone.update(removed if dry_run else ())
            for item_id in removed:
                items.pop(item_id, None)
                leases.pop(item_id, None)
            if len(batch):
                acknowledged.add(len(removed))
                queue.progress.advance(len(batch))
                yield batch
        try:
            _remove_results(queue, results, gone, purged, kept, dry_run=dry_run)
        except PermissionDenied:
            purged.is_denied = True
        if not dry_run:
            _remove_leftovers(queue, leases, marks)


def _remove_results(
    queue: Queue,
    ids: Iterable[bytes],
    gone: Collection[bytes],
    purged: PurgedResults,
    journal: Journal | None,
    *,
    dry_run: bool,
) -> None:
    """Remove and count the results of items that are not there, or that a dry run calls gone."""
    queue.progress.begin("removing results")
    for keys in read_result_keys(queue, ids, data=True):
        # Keys that are not results stay.
        purged.others += sum(not key.result and key.kind != KIND_NONE for key in keys)
        orphans = (key for key in keys if not key.has_item or key.item_id in gone)
        results = [key.result for key in orphans if key.result]
        if journal is not None and results:
            journal.write(results)
        size = queue.budget("delete_results").items
        for part in () if dry_run else in_batches(results, items_max=size):
            # Unless another item of that ID was completed or added since.
            words = (word for r in part for word in (r.item_id, r.completed_ms))
            queue.run("delete_results", *words)
        purged.results += len(results)
        queue.progress.advance(len(results))


def _walk(queue: Queue) -> Iterator[tuple[list[bytes], Places]]:
    """What is in a list or sorted set now, also without data, in blocks: next or longest leased
    first. All of them are read before the first block."""
    keys = queue.keys
    lists = keys.main, keys.processing
    cursors = [ListCursor(queue, key) for key in lists]
    zsets = [ScheduledCursor(queue, name) for name in ("delayed", "buried")]
    # What is to the left of the newest entry was pushed since.
    before = ("LINDEX", keys.main, 0), ("TIME",)
    newest, now = read_first_pages(queue, *cursors, *zsets, before=before)
    main, processing = (
        [(at, cursor.offset, page) for page in cursor] for at, cursor in enumerate(cursors)
    )
    in_main, in_processing = queue.call_all([("LLEN", key) for key in lists])
    for at, (_, offset, page) in reversed(list(enumerate(main))):
        if newest in page:
            main[at:] = [(0, offset, page[: len(page) - page[::-1].index(newest)])]
            break
    pages = [*main, *processing, *((2, 0, page) for cursor in zsets for page in cursor)]
    for block in in_batches(pages, items_max=BLOCK_IDS // page_entries(queue)):
        ids: dict[bytes, None] = {}
        columns: tuple[dict[bytes, list[int]], dict[bytes, list[int]]] = {}, {}
        for which, offset, page in block:
            ids.update(dict.fromkeys(page))
            for position, item_id in enumerate(page if which < len(columns) else (), offset):
                columns[which].setdefault(item_id, []).append(position)
        yield list(ids), Places(*columns, (in_main, in_processing), unix_ms(now))


def _remove_leftovers(queue: Queue, leases: _Ids, marks: _Ids) -> None:
    """Delete the remaining keys that belong to no item."""
    keys, script = queue.keys, "delete_stray_leases"
    batches = in_batches(leases, items_max=queue.budget(script).items)
    calls = ((ids, queue.script(script, *ids, endless_only=False)) for ids in batches)
    deque(queue.run_each(calls), maxlen=0)
    for batch in in_batches(keys.undo(mark) for mark in marks if mark != keys.UNDO_SERVER):
        types = queue.call_all([("TYPE", key) for key in batch])
        ours = [key for key, kind in zip(batch, types, strict=True) if kind == b"string"]
        queue.call_all([("DEL", key) for key in ours])
    history = keys.history, keys.history_hours
    structures = (keys.delayed, keys.buried, keys.returns, keys.cleaning)
    commands = *(("TYPE", key) for key in history), ("EXISTS", *structures)
    *types, has_structures = queue.call_all(commands)
    queue.call_all(
        [("DEL", key) for key, kind in zip(history, types, strict=True) if kind == b"stream"]
    )
    if not has_structures:
        return
    for name in ("delayed", "buried"):
        for page in ScheduledCursor(queue, name):
            list(prune(queue, name, page))
    for _, page in queue.connection.scan(("HSCAN", keys.returns)):
        list(prune(queue, "returns", page[::2]))
    entries = list(chain.from_iterable(ListCursor(queue, keys.cleaning)))
    listed = dict.fromkeys(entries)
    gone = [facts.item_id for facts in read_facts(queue, listed) if not facts.has_data]
    if len(gone) < len(listed):
        list(prune(queue, "cleaning", gone))
    elif gone:
        # A cleaner adds at the left end.
        queue.call("LTRIM", keys.cleaning, 0, -len(entries) - 1)
