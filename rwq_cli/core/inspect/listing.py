"""Listings: items in pages, in the order in which they are or were leased; and choosing items."""

from collections.abc import Iterable, Iterator, Sequence, Set
from heapq import merge, nsmallest
from itertools import islice
from typing import NamedTuple

from rwq_cli.core.batches import LONGEST_LIST, Flush, in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    PAGE_SIZE,
    WALK_ENTRIES,
    ListCursor,
    ScheduledCursor,
    lengths_of,
    read_first_pages,
)
from rwq_cli.core.inspect.lookup import (
    Detail,
    detail_of,
    facts_of,
    item_from,
    look_twice,
    with_details,
)
from rwq_cli.core.inspect.selection import (
    FOUND_DEEP,
    ITEMS,
    SCHEDULED_STATES,
    Selection,
    Source,
    source_of,
)
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.expected import ANY, Expected, fingerprint, mark_of
from rwq_cli.core.state.probe import probe, states
from rwq_cli.core.state.rules import Facts, is_guard


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
    page_size = WALK_ENTRIES
    if wanted is not None:
        page_size = min(PAGE_SIZE, wanted) if selection.is_all else PAGE_SIZE
    _begin(queue, source, wanted)
    walk = _Walk(queue, source, selection.id_glob, tail=tail, skip=skip, page_size=page_size)
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
    queue: Queue, wanted: Set[State], id_glob: bytes | None = None
) -> Iterator[tuple[bytes, State]]:
    """The IDs in one of these states, in the order of `items`; an ID may come twice.

    The server computes the states, so this is faster than `items`.
    """
    source = source_of(wanted)
    _begin(queue, source)
    walk = _Walk(queue, source, id_glob, page_size=WALK_ENTRIES)
    return ((item_id, state) for item_id, state in walk.states() if state in wanted)


def waiting_ids(
    queue: Queue, *, limit: int | None = None, offset: int = 0, tail: bool = False
) -> Iterator[Sequence[bytes]]:
    """Pages of the IDs in main, in the order of `items`, of which nothing else is read."""
    left = LONGEST_LIST if limit is None else limit
    _begin(queue, Source(main=True), limit)
    size = min(WALK_ENTRIES, left)
    for page in ListCursor(queue, queue.keys.main, from_left=tail, start=offset, page_size=size):
        yield page[:left]
        left -= len(page)
        if left <= 0:
            return


def _begin(queue: Queue, source: Source, wanted: int | None = None) -> None:
    lists = [queue.keys.main] * source.main + [queue.keys.processing] * source.processing
    entries = lengths_of(queue, *lists)
    queue.progress.begin("listing", lambda: min(entries(), wanted or LONGEST_LIST))


class _Walk:
    """A walk over the structures of a source; an item in several of them is listed once."""

    def __init__(
        self,
        queue: Queue,
        source: Source,
        id_glob: bytes | None,
        *,
        page_size: int,
        tail: bool = False,
        skip: int = 0,
    ) -> None:
        self._queue, self._source = queue, source
        self._pattern = None if id_glob is None else glob_pattern(id_glob)
        self._tail, self._skip, self._page_size = tail, skip, page_size
        # The IDs that must not be listed again.
        self._seen: set[bytes] = set()

    def items(self) -> Iterator[Iterable[Item]]:
        """Pages of items, before their details are read."""
        queue, length = self._queue, 0
        if self._tail and self._source.main:
            length = int(queue.call("LLEN", queue.keys.main))
        deep = self._deep()
        for where, page, exact in self._pages():
            listed = []
            in_main, in_processing = where == "main", where == "processing"
            found = probe(queue, page.values(), in_main=in_main, in_processing=in_processing)
            for place, facts in zip(page, found, strict=True):
                facts = exact.get(facts.item_id, facts)
                if self._is_listed(facts.item_id, facts.state, where, facts.has_schedule_entry):
                    position = length - 1 - place if self._tail else place
                    listed.append(item_from(queue.name, facts, position if in_main else None))
            yield listed
        yield (item_from(queue.name, facts) for facts in deep)

    def states(self) -> Iterator[tuple[bytes, State]]:
        """IDs with their states."""
        deep = self._deep()
        for where, page, exact in self._pages():
            ids, in_main, in_processing = (
                list(page.values()),
                where == "main",
                where == "processing",
            )
            found = states(self._queue, ids, in_main=in_main, in_processing=in_processing)
            for item_id, state in zip(ids, found, strict=True):
                state = exact[item_id].state if item_id in exact else state
                if self._is_listed(item_id, state, where):
                    yield item_id, state
        yield from ((facts.item_id, facts.state) for facts in deep)

    def _is_listed(
        self, item_id: bytes, state: State, where: str, may_come_again: bool = False
    ) -> bool:
        """Whether an entry lists its item: a guarded item's entry in processing is stale."""
        if where in SCHEDULED_STATES:
            is_listed = state in SCHEDULED_STATES[where]
        else:
            is_listed = where == "main" or not state.is_scheduled
        if is_listed and (where != "main" or may_come_again):
            self._seen.add(item_id)
        return is_listed

    def _deep(self) -> list[Facts]:
        """Items in no list or sorted set, and those in the lists more than once."""
        if not self._source.deep:
            return []
        from rwq_cli.core.inspect.keyspace import survey_facts

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

    def _pages(self) -> Iterator[tuple[str, dict[int, bytes], dict[bytes, Facts]]]:
        """Of each structure pages of what is wanted: by its place the ID; and of a
        sorted set the facts about those that may be in another state."""
        queue, source, tail, size = self._queue, self._source, self._tail, self._page_size
        cursors: dict[str, ListCursor | ScheduledCursor] = {}
        for where, key in (("main", queue.keys.main), ("processing", queue.keys.processing)):
            if getattr(source, where):
                cursors[where] = ListCursor(
                    queue, key, from_left=tail, start=self._skip, page_size=size
                )
        for where in SCHEDULED_STATES:
            if getattr(source, where):
                cursors[where] = ScheduledCursor(queue, where, latest_first=tail, page_size=size)
        read_first_pages(queue, *cursors.values())
        for where, cursor in cursors.items():
            for page in cursor:
                offset = cursor.offset if isinstance(cursor, ListCursor) else 0
                found = {at: i for at, i in enumerate(page, offset) if self._is_wanted(i)}
                if where != "main" and len(found) > len(set(found.values())):
                    found = dict(enumerate(dict.fromkeys(found.values())))
                ambiguous: list[bytes] = []
                if where in SCHEDULED_STATES:
                    replies = queue.read_each("find_ambiguous", in_batches(found.values()))
                    ambiguous = [item_id for _, reply in replies for item_id in reply]
                exact = {facts.item_id: facts for facts in facts_of(queue, ambiguous)}
                yield where, found, exact

    def _is_wanted(self, item_id: bytes) -> bool:
        is_fresh = item_id not in self._seen
        return is_fresh and (self._pattern is None or self._pattern.match(item_id) is not None)


class Chosen(NamedTuple):
    """Items to act on, and the conditions that they were chosen by, which are checked again."""

    ids: Iterable[bytes | Flush]
    expected: Expected = ANY


def choose(
    queue: Queue, selection: Selection, *, limit: int | None = None, grace_s: float = GRACE_S
) -> Chosen:
    """Choose items, each once, in the order of `items`; without states, items in any state.

    All are chosen before a verb acts, so that its changes cannot make the listing miss an item or
    list it twice. Their IDs are kept in memory: about 110 MB for a million.

    An item that looks abandoned, orphaned, unlisted, duplicated or like a ghost may be healthy,
    between two commands of its worker. It is chosen only if it is still the same item in the same
    state a grace period later (`look_twice`), so there may be fewer than `limit`.
    """
    queue.connection.set_no_touch()
    states = ITEMS if selection.states is None else selection.states
    selection = selection._replace(states=states)
    needs_data, marked_by = selection.needs_data, selection.marked_by
    chosen: dict[bytes, State] = {}
    fingerprints: dict[bytes, str] = {}
    marks: dict[bytes, bytes] = {}
    if selection == Selection(states, id_glob=selection.id_glob):
        for item_id, state in listed_states(queue, states, selection.id_glob):
            chosen.setdefault(item_id, state)
            if len(chosen) == limit:
                break
    else:
        source = source_of(states)
        for item in items(queue, source, selection, data=needs_data, bare=not needs_data):
            chosen.setdefault(item.item_id, item.state)
            if item.data is not None:
                fingerprints.setdefault(item.item_id, fingerprint(item.data))
            if marked_by:
                marks.setdefault(item.item_id, mark_of(item, marked_by))
            if len(chosen) == limit:
                break
    in_transit = [item_id for item_id, state in chosen.items() if state.may_be_in_transit]
    if in_transit:
        states_now = {f.item_id: f.state for f in look_twice(queue, in_transit, grace_s)}
        for item_id in in_transit:
            if states_now.get(item_id) is not chosen[item_id]:
                del chosen[item_id]
    expected = Expected(
        states,
        selection.older_than_s,
        fingerprints if needs_data else None,
        chosen.keys() & in_transit,
        marks if marked_by else None,
        marked_by,
    )
    return Chosen(list(chosen), expected)
