"""A walk over a whole queue, to find orphans, ghosts and duplicates."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    WALK_ENTRIES,
    ListCursor,
    ScheduledCursor,
    lengths_of,
    read_first_pages,
)
from rwq_cli.core.inspect.keyspace import ids_of, nested_names
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.keys import is_key_of
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts

OnFacts = Callable[[Facts], object]
# Receives pages of the keys that begin with the queue's name and a colon.
OnKeys = Callable[[list[bytes]], object]


@dataclass(slots=True)
class Totals:
    """Totals of a walk."""

    # How many data keys SCAN returned, which may return a key twice.
    items: int = 0
    # How many items have a count of returns, and the sum of those.
    returned: int = 0
    returns: int = 0


def survey_facts(
    queue: Queue,
    *,
    on_listed: OnFacts | None = None,
    on_keys: OnKeys | None = None,
    totals: Totals | None = None,
) -> Iterator[Facts]:
    """The facts about every ID that may be broken in a way that no single structure shows.

    The walk reads the lists and sorted sets, then once all keys. Then it looks up each ID that was
    listed twice, or not at all, or without data. Only this lookup decides. It comes after the keys
    were read, so an item that is added, leased or completed during the walk is found in its new
    place. The second look of a clean covers the rest.

    The walk keeps all listed IDs until it finds their data keys: about 115 bytes for an ID of 32
    bytes. Hashes would take less, but a collision could hide an orphan or a ghost.

    `on_listed` receives the facts about each ID in processing or in a sorted set, as if it were
    nowhere else; `on_keys` pages of all keys under the queue's prefix.
    """
    totals = totals or Totals()
    lists = queue.keys.main, queue.keys.processing
    queue.progress.begin("reading the lists", lengths_of(queue, *lists))
    listed, suspects = _walk_structures(queue, on_listed)
    queue.progress.begin("reading the keys")
    unlisted = _walk_keys(queue, listed, on_keys, totals)
    # The remaining IDs are listed and have no data.
    suspects.update(dict.fromkeys(listed))
    listed.clear()
    suspects.update(dict.fromkeys(unlisted))
    done: set[bytes] = set()
    for page in queue.connection.scan_members("HSCAN", queue.keys.returns):
        # HSCAN may return a field twice.
        fresh = [item_id for item_id in page if item_id not in done]
        done.update(fresh)
        for facts in probe(queue, fresh):
            if facts.has_stale_returns or facts.has_invalid_returns:
                suspects[facts.item_id] = None
            if facts.has_data:
                totals.returned += 1
                totals.returns += facts.returns or 0
    yield from facts_of(queue, suspects.keys(), main_twice=False, digests=True)


def _walk_structures(
    queue: Queue, on_listed: OnFacts | None
) -> tuple[set[bytes], dict[bytes, None]]:
    """All listed IDs; and those among them that are listed twice or empty, or are in cleaning."""
    main, processing, cleaning = (
        ListCursor(queue, key, page_size=WALK_ENTRIES)
        for key in (queue.keys.main, queue.keys.processing, queue.keys.cleaning)
    )
    zsets = [ScheduledCursor(queue, name) for name in ("delayed", "buried")]
    read_first_pages(queue, main, processing, cleaning, *zsets)
    listed: set[bytes] = set()
    suspects: dict[bytes, None] = {}
    looked_at: set[bytes] = set()
    for source in (main, processing, *zsets):
        is_processing = source is processing
        known = {"in_processing": is_processing, "digests": is_processing}
        for page in source:
            if not listed.isdisjoint(page):
                suspects.update((item_id, None) for item_id in page if item_id in listed)
            before = len(listed)
            listed.update(page)
            if len(listed) - before < len(page):
                repeated = (item_id for item_id, n in Counter(page).items() if n > 1)
                suspects.update(dict.fromkeys(repeated))
            if on_listed is not None and source is not main:
                fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in looked_at]
                looked_at.update(fresh)
                for facts in probe(queue, fresh, **known):
                    on_listed(facts)
    if b"" in listed:
        suspects[b""] = None
    for page in cleaning:
        suspects.update(dict.fromkeys(page))
    return listed, suspects


def _walk_keys(
    queue: Queue, listed: set[bytes], on_keys: OnKeys | None, totals: Totals
) -> Iterable[bytes]:
    """Remove the IDs that have data from `listed`; return those that are not listed.

    SCAN may return a key twice, and then its ID is among those that are not listed, too; the
    lookup that follows finds its entry. The keys of another queue whose name begins like a data
    key are left out.
    """
    keys = queue.keys
    unlisted: list[bytes] = []
    pattern = keys.item_pattern if on_keys is None else keys.pattern
    for page in queue.connection.scan_keys(pattern):
        ids = ids_of(page, keys.item_prefix)
        totals.items += len(ids)
        queue.progress.advance(len(ids))
        if not listed.issuperset(ids):
            unlisted += (item_id for item_id in ids if item_id not in listed)
        # After many removals, `difference_update` copies the set, which doubles the peak memory.
        for item_id in ids:
            listed.discard(item_id)
        if on_keys is not None:
            on_keys(page)
    nested = nested_names(queue, map(keys.item, unlisted))
    return (i for i in unlisted if not (nested and is_key_of(keys.item(i), nested)))
