"""Listings: items in pages, in the order in which they are or were leased."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from heapq import merge, nsmallest
from itertools import islice

from rwq_cli.core.batches import LONGEST_LIST, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    PAGE_SIZE,
    WALK_ENTRIES,
    ListCursor,
    lengths_of,
    walk_scheduled,
)
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.report import Detail, detail_of, item_from, with_details
from rwq_cli.core.inspect.selection import FOUND_DEEP, SCHEDULED_STATES, Selection, Source
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.probe import probe, states
from rwq_cli.core.state.rules import Facts


def items(
    queue: Queue,
    source: Source,
    selection: Selection | None = None,
    *,
    limit: int | None = None,
    offset: int = 0,
    tail: bool = False,
    data: bool = False,
    bare: bool = False,
) -> Iterator[Item]:
    """Items in the order in which they are or were leased; see `WorkQueue.items`."""
    if limit == 0:
        return
    selection = selection or Selection()
    # Only entries of main are all listed: those that are skipped need not be read.
    skip = offset if selection.is_all and source.is_one and source.main else 0
    wanted = None if limit is None else limit + offset - skip
    page_size = WALK_ENTRIES if wanted is None else PAGE_SIZE
    if selection.is_all and wanted is not None:
        page_size = min(PAGE_SIZE, wanted)
    lists = [queue.keys.main] * source.main + [queue.keys.processing] * source.processing
    entries = lengths_of(queue, *lists)
    queue.progress.begin("listing", lambda: min(entries(), wanted or LONGEST_LIST))
    walk = _Walk(queue, selection.id_pattern(), tail=tail, skip=skip, page_size=page_size)
    detail = detail_of(queue, data=data, bare=bare)
    chosen = _chosen(queue, walk.pages(source), selection, detail)
    yield from islice(chosen, offset - skip, wanted)


def listed_states(
    queue: Queue, source: Source, states: Set[State], id_glob: bytes | None = None
) -> Iterator[tuple[bytes, State]]:
    """The IDs in one of these states, in the order of `items`.

    The server computes the states, so this is faster than `items`. An ID may come twice.

    Args:
        queue: The queue.
        source: The structures.
        states: The states.
        id_glob: A glob that the whole ID must match; None for any.
    """
    lists = [queue.keys.main] * source.main + [queue.keys.processing] * source.processing
    queue.progress.begin("listing", lengths_of(queue, *lists))
    pattern = None if id_glob is None else glob_pattern(id_glob)
    walk = _Walk(queue, pattern, tail=False, skip=0, page_size=WALK_ENTRIES)
    for page in walk.states(source):
        for item_id, state in page:
            if state in states:
                yield item_id, state


def listed_ids(
    queue: Queue, source: Source, *, limit: int | None = None, offset: int = 0, tail: bool = False
) -> Iterator[Sequence[bytes]]:
    """The IDs of the waiting, delayed or buried items, in the order of `items`.

    This is faster than `items`: for waiting items it reads only the IDs.

    Args:
        queue: The queue.
        source: Either main or one of the sorted sets.
        limit: The maximum number of IDs; None for all.
        offset: How many to skip.
        tail: Start at the other end.

    Yields:
        Pages of IDs.
    """
    left = LONGEST_LIST if limit is None else limit
    entries = lengths_of(queue, *[queue.keys.main] * source.main)
    queue.progress.begin("listing", lambda: min(entries(), left))
    if source.main:
        skip, size = 0, min(WALK_ENTRIES, left)
        pages: Iterator[Sequence[bytes]] = ListCursor(
            queue, queue.keys.main, from_left=tail, start=offset, page_size=size
        )
    else:
        skip, size = offset, min(WALK_ENTRIES, left + offset)
        name = "delayed" if source.delayed else "buried"
        scheduled = walk_scheduled(queue, name, latest_first=tail, page_size=size)
        pages = _listed_in(queue, name, ([i for i, _ in page] for page in scheduled))
    for page in pages:
        listed = page[skip : skip + left]
        skip -= min(skip, len(page))
        left -= len(listed)
        if listed:
            yield listed
        if left <= 0:
            return


def _listed_in(
    queue: Queue, name: str, pages: Iterable[Sequence[bytes]]
) -> Iterator[Sequence[bytes]]:
    """The pages of a sorted set, without the IDs whose items are in another state."""
    batches = (batch for page in pages for batch in in_batches(page))
    for ids, ambiguous in queue.read_each("find_ambiguous", batches):
        other = {
            f.item_id for f in facts_of(queue, ambiguous) if f.state not in SCHEDULED_STATES[name]
        }
        yield [item_id for item_id in ids if item_id not in other] if other else ids


class _Walk:
    """A walk over the structures of a source; an item in several of them is listed once.

    Args:
        queue: The queue.
        pattern: A pattern that IDs must match; None for any.
        tail: Start at the other end.
        skip: How many entries of main to skip, if the source is main alone.
        page_size: Entries in one read.
    """

    def __init__(
        self,
        queue: Queue,
        pattern: "re.Pattern[bytes] | None",
        *,
        tail: bool,
        skip: int,
        page_size: int,
    ) -> None:
        self._queue = queue
        self._pattern = pattern
        self._tail = tail
        self._skip = skip
        self._page_size = page_size
        # The IDs that must not be listed again.
        self._seen: set[bytes] = set()

    def pages(self, source: Source) -> Iterator[Iterable[Item]]:
        """Pages of items, before their details are read."""
        deep = self._deep() if source.deep else []
        if source.main:
            yield from self._main()
        if source.processing:
            yield from self._processing()
        for name in _zsets_of(source):
            yield from self._scheduled(name)
        yield self._items(deep)

    def states(self, source: Source) -> Iterator[Iterable[tuple[bytes, State]]]:
        """Pages of IDs with their states."""
        queue = self._queue
        deep = self._deep() if source.deep else []
        if source.main:
            for page in self._cursor(queue.keys.main):
                ids = [item_id for item_id in page if self._is_wanted(item_id)]
                yield zip(ids, states(queue, ids, in_main=1), strict=True)
        if source.processing:
            for page in self._cursor(queue.keys.processing):
                ids = [item_id for item_id in dict.fromkeys(page) if self._is_wanted(item_id)]
                found = zip(ids, states(queue, ids, in_processing=1), strict=True)
                # A guarded item's entry in processing is stale.
                listed = [each for each in found if not each[1].is_scheduled]
                self._seen.update(item_id for item_id, _ in listed)
                yield listed
        for name in _zsets_of(source):
            yield from self._scheduled_states(name)
        yield ((facts.item_id, facts.state) for facts in deep)

    def _deep(self) -> list[Facts]:
        # First, so that duplicated items are not listed in another state before.
        deep = [facts for facts in _found_deep(self._queue) if self._is_wanted(facts.item_id)]
        self._seen.update(facts.item_id for facts in deep)
        return deep

    def _main(self) -> Iterator[Iterable[Item]]:
        queue, key = self._queue, self._queue.keys.main
        length = queue.call("LLEN", key) if self._tail else 0
        cursor = self._cursor(key)
        for page in cursor:
            places = {
                place: item_id
                for place, item_id in enumerate(page, cursor.offset)
                if self._is_wanted(item_id)
            }
            found = probe(queue, places.values(), in_main=1)
            listed = []
            for place, facts in zip(places, found, strict=True):
                if facts.has_schedule_entry:
                    self._seen.add(facts.item_id)
                position = length - 1 - place if self._tail else place
                listed.append(item_from(queue.name, facts, position))
            yield listed

    def _processing(self) -> Iterator[Iterable[Item]]:
        for page in self._cursor(self._queue.keys.processing):
            fresh = [item_id for item_id in dict.fromkeys(page) if self._is_wanted(item_id)]
            found = probe(self._queue, fresh, in_processing=1)
            # A guarded item's entry in processing is stale.
            listed = [facts for facts in found if not facts.state.is_scheduled]
            self._seen.update(facts.item_id for facts in listed)
            yield self._items(listed)

    def _scheduled(self, name: str) -> Iterator[Iterable[Item]]:
        queue = self._queue
        for ids in self._scheduled_pages(name):
            found = list(probe(queue, ids))
            # A guarded item is delayed or buried. Any other item may be in a list.
            unguarded = [facts.item_id for facts in found if not facts.is_guarded]
            exact = {facts.item_id: facts for facts in facts_of(queue, unguarded)}
            yield self._items(
                facts
                for facts in (exact.get(facts.item_id, facts) for facts in found)
                if facts.state in SCHEDULED_STATES[name]
            )

    def _scheduled_states(self, name: str) -> Iterator[Iterable[tuple[bytes, State]]]:
        queue = self._queue
        for ids in self._scheduled_pages(name):
            found = zip(ids, states(queue, ids), strict=True)
            # As in `_scheduled`.
            replies = queue.read_each("find_ambiguous", in_batches(ids))
            ambiguous = [item_id for _, reply in replies for item_id in reply]
            exact = {facts.item_id: facts.state for facts in facts_of(queue, ambiguous)}
            located = ((item_id, exact.get(item_id, state)) for item_id, state in found)
            yield [each for each in located if each[1] in SCHEDULED_STATES[name]]

    def _scheduled_pages(self, name: str) -> Iterator[list[bytes]]:
        for page in walk_scheduled(
            self._queue, name, latest_first=self._tail, page_size=self._page_size
        ):
            yield [item_id for item_id, _ in page if self._is_wanted(item_id)]

    def _cursor(self, key: bytes) -> ListCursor:
        return ListCursor(
            self._queue,
            key,
            from_left=self._tail,
            start=self._skip,
            page_size=self._page_size,
        )

    def _is_wanted(self, item_id: bytes) -> bool:
        is_fresh = item_id not in self._seen
        return is_fresh and (self._pattern is None or self._pattern.match(item_id) is not None)

    def _items(self, found: Iterable[Facts]) -> Iterator[Item]:
        return (item_from(self._queue.name, facts) for facts in found)


def _zsets_of(source: Source) -> list[str]:
    """The sorted sets of a source, in the order in which they are listed."""
    return [name for name in ("delayed", "buried") if getattr(source, name)]


def _found_deep(queue: Queue) -> Iterator[Facts]:
    """Items in no list or sorted set, and those in the lists more than once."""
    from rwq_cli.core.inspect.survey import survey_facts

    for facts in survey_facts(queue):
        state = facts.state
        if state is State.DUPLICATED or (state in FOUND_DEEP and not facts.in_processing):
            yield facts


def _chosen(
    queue: Queue, pages: Iterable[Iterable[Item]], selection: Selection, detail: Detail
) -> Iterator[Item]:
    """The selected items, with their details."""
    read, states = detail, selection.states
    # Read what the selection needs, even if it is not shown.
    if selection.needs_data:
        read = Detail.DATA
    elif selection.older_than_s is not None and detail is Detail.BARE:
        read = Detail.IDLE_TIME
    for page in pages:
        candidates = [item for item in page if states is None or item.state in states]
        if selection.holder is not None:
            candidates = [item for item in candidates if _holder_of(item) == selection.holder]
        for item in with_details(queue, candidates, read):
            if selection.accepts(item):
                yield item if read is detail else item._replace(data=None)


def _holder_of(item: Item) -> bytes | None:
    return None if item.lease is None else item.lease.holder


def leases(
    queue: Queue,
    *,
    limit: int | None = None,
    holder_glob: bytes | None = None,
    data: bool = False,
    bare: bool = False,
) -> Iterator[Item]:
    """The items in processing; see `WorkQueue.leases`.

    Sorting needs every lease, so all of processing is read; details are read only of items that are
    shown.
    """
    detail = detail_of(queue, data=data, bare=bare)
    pattern = None if holder_glob is None else glob_pattern(holder_glob)
    queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))
    walk = _Walk(queue, None, tail=False, skip=0, page_size=PAGE_SIZE)
    found = (
        item
        for page in walk.pages(Source(processing=True))
        for item in page
        if not pattern or (_is_held(item) and item.lease and pattern.match(item.lease.holder))
    )
    chosen = sorted(found, key=_urgency) if limit is None else nsmallest(limit, found, _urgency)
    yield from with_details(queue, chosen, detail)


def merged_leases(listings: Iterable[Iterable[Item]]) -> Iterator[Item]:
    """The leases of several queues, each listed by `leases`, in that order together."""
    return merge(*listings, key=_urgency)


def _is_held(item: Item) -> bool:
    # An abandoned item's lease is the rest of a guard.
    return item.lease is not None and item.state is not State.ABANDONED


def _urgency(item: Item) -> float:
    if item.lease is None or not _is_held(item):
        return -1.0
    return float("inf") if item.lease.ttl_ms is None else float(item.lease.ttl_ms)
