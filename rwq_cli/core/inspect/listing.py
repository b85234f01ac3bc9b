"""Listings: items in pages, in the order in which they are or were leased."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import merge, nsmallest
from itertools import islice

from rwq_cli.core.batches import LONGEST_LIST, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    PAGE_SIZE,
    WALK_ENTRIES,
    ListCursor,
    ScheduledCursor,
    lengths_of,
    read_short,
)
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.report import Detail, detail_of, item_from, with_details
from rwq_cli.core.inspect.selection import FOUND_DEEP, SCHEDULED_STATES, Selection, Source
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.probe import probe, states
from rwq_cli.core.state.rules import Facts, is_guard

# Of a page, by place in its structure the ID, without those that are not wanted.
_Places = Mapping[int, bytes]


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
    _begin(queue, source, wanted)
    walk = _Walk(queue, source, selection.id_pattern(), tail=tail, skip=skip, page_size=page_size)
    detail = detail_of(queue, data=data, bare=bare)
    accepts = selection.facts_filter()

    def chosen() -> Iterator[Item]:
        for page in walk.items():
            yield from _with_chosen_details(queue, filter(accepts, page), selection, detail)

    yield from islice(chosen(), offset - skip, wanted)


def _with_chosen_details(
    queue: Queue, candidates: Iterable[Item], selection: Selection, detail: Detail
) -> Iterator[Item]:
    """The details of those whose idle time and data are selected, which are read if need be."""
    read = detail
    if selection.needs_data:
        read = Detail.DATA
    elif selection.needs_details and detail is Detail.BARE:
        read = Detail.IDLE_TIME
    found = with_details(queue, list(candidates), read)
    for item in filter(selection.accepts_details, found):
        yield item if read is detail else item._replace(data=None)


def leases(
    queue: Queue,
    selection: Selection | None = None,
    *,
    limit: int | None = None,
    data: bool = False,
    bare: bool = False,
) -> Iterator[Item]:
    """The items in processing, by urgency; see `WorkQueue.leases`.

    All of processing is read; details, unless they select, only of items that are shown.
    """
    selection = selection or Selection()
    processing, detail = Source(processing=True), detail_of(queue, data=data, bare=bare)
    needs_details = selection.needs_details
    found = items(queue, processing, selection, data=data, bare=bare or not needs_details)
    first = sorted(found, key=_urgency) if limit is None else nsmallest(limit, found, _urgency)
    return iter(first) if needs_details else with_details(queue, first, detail)


def merged_leases(listings: Iterable[Iterable[Item]]) -> Iterator[Item]:
    """The leases of several queues, each listed by `leases`, in that order together."""
    return merge(*listings, key=_urgency)


def _urgency(item: Item) -> float:
    # An abandoned item's lease is the rest of a guard.
    if item.lease is None or is_guard(item.lease):
        return -1.0
    return float("inf") if item.lease.ttl_ms is None else float(item.lease.ttl_ms)


def listed_states(
    queue: Queue, source: Source, wanted: Set[State], id_glob: bytes | None = None
) -> Iterator[tuple[bytes, State]]:
    """The IDs in one of these states, in the order of `items`; an ID may come twice.

    The server computes the states, so this is faster than `items`.
    """
    _begin(queue, source)
    pattern = None if id_glob is None else glob_pattern(id_glob)
    walk = _Walk(queue, source, pattern, page_size=WALK_ENTRIES)
    return ((item_id, state) for item_id, state in walk.states() if state in wanted)


def listed_ids(
    queue: Queue, source: Source, *, limit: int | None = None, offset: int = 0, tail: bool = False
) -> Iterator[Sequence[bytes]]:
    """Pages of the IDs of the waiting, delayed or buried items, in the order of `items`.

    This is faster than `items`: for waiting items it reads only the IDs.
    """
    left = LONGEST_LIST if limit is None else limit
    _begin(queue, source, limit)
    skip = 0 if source.main else offset
    size = min(WALK_ENTRIES, left + skip)
    if source.main:
        pages: Iterator[Sequence[bytes]] = ListCursor(
            queue, queue.keys.main, from_left=tail, start=offset, page_size=size
        )
    else:
        name = "delayed" if source.delayed else "buried"
        cursor = ScheduledCursor(queue, name, latest_first=tail, page_size=size)
        pages = _listed_in(queue, name, cursor)
    for page in pages:
        listed = page[skip : skip + left]
        skip -= min(skip, len(page))
        left -= len(listed)
        if listed:
            yield listed
        if left <= 0:
            return


def _begin(queue: Queue, source: Source, wanted: int | None = None) -> None:
    lists = [queue.keys.main] * source.main + [queue.keys.processing] * source.processing
    entries = lengths_of(queue, *lists)
    queue.progress.begin("listing", lambda: min(entries(), wanted or LONGEST_LIST))


def _exact(queue: Queue, ids: Iterable[bytes]) -> Iterator[tuple[bytes, Facts]]:
    """Among IDs in a sorted set, those that may be in another state, with all their facts."""
    replies = queue.read_each("find_ambiguous", in_batches(ids))
    ambiguous = [item_id for _, reply in replies for item_id in reply]
    return ((facts.item_id, facts) for facts in facts_of(queue, ambiguous))


def _listed_in(
    queue: Queue, name: str, pages: Iterable[Sequence[bytes]]
) -> Iterator[Sequence[bytes]]:
    """The pages of a sorted set, without the IDs whose items are in another state."""
    for page in pages:
        exact = _exact(queue, page)
        others = {i for i, facts in exact if facts.state not in SCHEDULED_STATES[name]}
        yield [item_id for item_id in page if item_id not in others] if others else page


class _Walk:
    """A walk over the structures of a source; an item in several of them is listed once."""

    def __init__(
        self,
        queue: Queue,
        source: Source,
        pattern: "re.Pattern[bytes] | None",
        *,
        page_size: int,
        tail: bool = False,
        skip: int = 0,
    ) -> None:
        self._queue = queue
        self._source = source
        self._pattern = pattern
        self._tail = tail
        self._skip = skip
        self._page_size = page_size
        # The IDs that must not be listed again.
        self._seen: set[bytes] = set()

    def items(self) -> Iterator[Iterable[Item]]:
        """Pages of items, before their details are read."""
        queue, length = self._queue, 0
        if self._tail and self._source.main:
            length = int(queue.call("LLEN", queue.keys.main))
        deep = self._deep()
        for where, page in self._pages():
            ids, in_main = page.values(), where == "main"
            found = probe(queue, ids, in_main=in_main, in_processing=where == "processing")
            if where in SCHEDULED_STATES:
                exact = dict(_exact(queue, list(ids)))
                found = (exact.get(facts.item_id, facts) for facts in found)
            listed = []
            for place, facts in zip(page, found, strict=True):
                if not _is_listed(facts.state, where):
                    continue
                if not in_main or facts.has_schedule_entry:
                    self._seen.add(facts.item_id)
                position = length - 1 - place if self._tail else place
                listed.append(item_from(queue.name, facts, position if in_main else None))
            yield listed
        yield (item_from(queue.name, facts) for facts in deep)

    def states(self) -> Iterator[tuple[bytes, State]]:
        """IDs with their states."""
        queue = self._queue
        deep = self._deep()
        for where, page in self._pages():
            ids, in_main = list(page.values()), where == "main"
            found = states(queue, ids, in_main=in_main, in_processing=where == "processing")
            exact = dict(_exact(queue, ids)) if where in SCHEDULED_STATES else {}
            for item_id, state in zip(ids, found, strict=True):
                state = exact[item_id].state if item_id in exact else state
                if _is_listed(state, where):
                    if not in_main:
                        self._seen.add(item_id)
                    yield item_id, state
        yield from ((facts.item_id, facts.state) for facts in deep)

    def _deep(self) -> list[Facts]:
        """Items in no list or sorted set, and those in the lists more than once."""
        if not self._source.deep:
            return []
        from rwq_cli.core.inspect.survey import survey_facts

        # First, so that duplicated items are not listed in another state before.
        deep = [
            facts
            for facts in survey_facts(self._queue)
            if (facts.state in FOUND_DEEP and not facts.in_processing)
            or facts.state is State.DUPLICATED
            if self._is_wanted(facts.item_id)
        ]
        self._seen.update(facts.item_id for facts in deep)
        return deep

    def _pages(self) -> Iterator[tuple[str, _Places]]:
        queue, keys, tail, size = self._queue, self._queue.keys, self._tail, self._page_size
        lists = {
            where: ListCursor(queue, key, from_left=tail, start=self._skip, page_size=size)
            for where, key in (("main", keys.main), ("processing", keys.processing))
            if getattr(self._source, where)
        }
        zsets = {
            where: ScheduledCursor(queue, where, latest_first=tail, page_size=size)
            for where in SCHEDULED_STATES
            if getattr(self._source, where)
        }
        read_short(queue, *lists.values(), *zsets.values())
        for where, cursor in lists.items():
            for page in cursor:
                yield where, self._wanted(page, cursor.offset, once=where != "main")
        for where, entries in zsets.items():
            for page in entries:
                yield where, self._wanted(page, 0, once=True)

    def _wanted(self, page: Sequence[bytes], offset: int, *, once: bool) -> _Places:
        found = {place: i for place, i in enumerate(page, offset) if self._is_wanted(i)}
        if once and len(found) > len(set(found.values())):
            return dict(enumerate(dict.fromkeys(found.values())))
        return found

    def _is_wanted(self, item_id: bytes) -> bool:
        is_fresh = item_id not in self._seen
        return is_fresh and (self._pattern is None or self._pattern.match(item_id) is not None)


def _is_listed(state: State, where: str) -> bool:
    """Whether an entry lists its item: a guarded item's entry in processing is stale."""
    if where in SCHEDULED_STATES:
        return state in SCHEDULED_STATES[where]
    return where == "main" or not state.is_scheduled
