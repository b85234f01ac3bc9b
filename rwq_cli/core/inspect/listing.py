"""Listings: items in pages, in the order in which they are or were leased; and choosing items."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import merge, nsmallest
from itertools import chain, islice
from math import inf
from typing import NamedTuple

from rwq_cli.core.batches import LONGEST_LIST, Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.ages import ServerAges
from rwq_cli.core.inspect.cursor import (
    PAGE_SIZE,
    ListCursor,
    ScheduledCursor,
    lengths_of,
    page_entries,
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
    LISTED_IN,
    Selection,
    Source,
    source_of,
)
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.expected import ANY, Expected, token_of
from rwq_cli.core.state.reads import read_facts, read_states
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
    skip = offset if selection.is_all and source == Source(main=True) else 0
    wanted = None if limit is None else limit + offset - skip
    page_size = page_entries(queue)
    if wanted is not None:
        page_size = min(PAGE_SIZE, wanted) if selection.is_all else PAGE_SIZE
    _begin(queue, source, wanted)
    is_of_buried = selection.states == frozenset({State.BURIED}) or source == Source(buried=True)
    if selection.older_than_s is not None and not is_of_buried:
        ServerAges.of_server(queue).check(selection.older_than_s)
    detail = detail_of(queue, data=data, bare=bare)
    # What selects is read in any case.
    read: Detail = "data" if selection.needs_data else detail
    if selection.needs_details and read == "bare":
        read = "nothing"

    def selected() -> Iterator[Item]:
        for page in _walk(queue, source, selection.id_glob, page_size, tail=tail, skip=skip):
            listed = (item_from(queue.name, facts, at) for _, _, at, facts in page if facts)
            detailed = with_details(queue, list(filter(selection.accepts_facts, listed)), read)
            for item in filter(selection.accepts_details, detailed):
                yield item if read == detail else item._replace(data=None)

    yield from islice(selected(), offset - skip, wanted)


def leases(
    queue: Queue,
    selection: Selection | None = None,
    *,
    limit: int | None = None,
    data: bool = False,
    bare: bool = False,
) -> Iterator[Item]:
    """The items in processing, by urgency: all are read; details, unless they select, only of
    items that are shown."""
    selection = selection or Selection()
    processing, detail = Source(processing=True), detail_of(queue, data=data, bare=bare)
    needs_details = selection.needs_details
    listed = items(queue, processing, selection, data=data, bare=bare or not needs_details)
    first = sorted(listed, key=_urgency) if limit is None else nsmallest(limit, listed, _urgency)
    return iter(first) if needs_details else with_details(queue, first, detail)


def merged_leases(listings: Iterable[Iterable[Item]]) -> Iterator[Item]:
    """The leases of several queues, each listed by `leases`, in that order together."""
    return merge(*listings, key=_urgency)


def _urgency(item: Item) -> float:
    # An abandoned item's lease is the rest of a guard.
    if item.lease is None or is_guard(item.lease):
        return -1.0
    return inf if item.lease.ttl_ms is None else float(item.lease.ttl_ms)


def listed_ids(
    queue: Queue,
    source: Source,
    selection: Selection,
    *,
    limit: int | None = None,
    offset: int = 0,
    tail: bool = False,
) -> Iterator[Sequence[bytes]]:
    """Pages of the IDs in one structure, in the order of `items`, selected by state and ID alone;
    of all of main, nothing else is read."""
    remaining, states = LONGEST_LIST if limit is None else limit, selection.states
    _begin(queue, source, limit)
    if selection.is_all and source.main:
        size = min(page_entries(queue), remaining)
        cursor = ListCursor(queue, queue.keys.main, from_left=tail, start=offset, page_size=size)
        pages, offset = iter(cursor), 0
    else:
        size = page_entries(queue) if limit is None else PAGE_SIZE
        walk = _walk(queue, source, selection.id_glob, size, tail=tail, facts_too=False)
        pages = ([i for i, s, *_ in page if states is None or s in states] for page in walk)
    for page in pages:
        page, offset = page[offset:], max(0, offset - len(page))
        if page:
            yield page[:remaining]
        if (remaining := remaining - len(page)) <= 0:
            return


def _begin(queue: Queue, source: Source, wanted: int | None = None) -> None:
    lists = [queue.keys.main] * source.main + [queue.keys.processing] * source.processing
    entries = lengths_of(queue, *lists)
    queue.progress.begin("listing", lambda: min(entries(), wanted or LONGEST_LIST))


_ZSETS = ("delayed", "buried")
# An ID, its state, its place in main if it was read there, and its facts if they were read.
_Entry = tuple[bytes, State, int | None, Facts | None]


def _walk(
    queue: Queue,
    source: Source,
    id_glob: bytes | None,
    page_size: int,
    *,
    tail: bool = False,
    skip: int = 0,
    facts_too: bool = True,
) -> Iterator[Iterable[_Entry]]:
    """Yield pages of the entries of main; and of what is in the other structures of a source, each
    ID once, unless it was listed before."""
    matches = None if id_glob is None else glob_pattern(id_glob).match
    # The IDs that must not be listed again.
    seen: set[bytes] = set()

    def is_wanted(item_id: bytes) -> bool:
        return item_id not in seen and (matches is None or matches(item_id) is not None)

    # First, so that duplicated items are not listed in another state before.
    deep = [facts for facts in _deep_facts(queue, source) if is_wanted(facts.item_id)]
    seen.update(facts.item_id for facts in deep)
    # Places are counted from the right end.
    length = int(queue.call("LLEN", queue.keys.main)) if tail and source.main else 0
    cursors: dict[str, ListCursor | ScheduledCursor] = {}
    for where in filter(partial(getattr, source), LISTED_IN):
        if where in _ZSETS:
            cursors[where] = ScheduledCursor(queue, where, latest_first=tail, page_size=page_size)
        else:
            key, size = getattr(queue.keys, where), page_size
            cursors[where] = ListCursor(queue, key, from_left=tail, start=skip, page_size=size)
    read_first_pages(queue, *cursors.values())
    for where, cursor in cursors.items():
        is_main = where == "main"
        for page in cursor:
            places = list(enumerate(page if is_main else dict.fromkeys(page), cursor.offset))
            if matches is not None or not seen.isdisjoint(page):
                places = [(at, item_id) for at, item_id in places if is_wanted(item_id)]
            read = _read_page(queue, where, [item_id for _, item_id in places], facts_too=facts_too)
            entries = [
                (item_id, state, (length - 1 - at if tail else at) if is_main else None, facts)
                for (at, item_id), (state, facts) in zip(places, read, strict=True)
                if state in LISTED_IN[where]
            ]
            # Of main, which may be long, only what has an entry in a sorted set, too.
            seen.update(
                item_id
                for item_id, _, _, facts in entries
                if not is_main or (facts and facts.has_schedule_entry)
            )
            yield entries
    yield [(facts.item_id, facts.state, None, facts) for facts in deep]


def _deep_facts(queue: Queue, source: Source) -> Iterator[Facts]:
    """Read the facts about duplicated items and those in no structure, if the source is deep."""
    if source.deep:
        from rwq_cli.core.inspect.keyspace import Survey

        for facts in Survey(queue).facts():
            is_in_none = facts.state in FOUND_DEEP and not facts.in_processing
            if is_in_none or facts.state is State.DUPLICATED:
                yield facts


def _read_page(
    queue: Queue, where: str, ids: list[bytes], *, facts_too: bool
) -> Iterable[tuple[State, Facts | None]]:
    """Read the states of IDs in one structure, in order, and their facts or None."""
    in_main, in_processing = where == "main", where == "processing"
    unsure: list[bytes] = []
    read: list[tuple[State, Facts | None]]
    if facts_too:
        exact = list(read_facts(queue, ids, in_main=in_main, in_processing=in_processing))
        read = [(facts.state, facts) for facts in exact]
        unsure = [facts.item_id for facts in exact if facts.has_unsure_schedule]
    else:
        lists = {"in_main": in_main, "in_processing": in_processing}
        read = [(state, None) for state in read_states(queue, ids, unsure=unsure, **lists)]
    if where not in _ZSETS or not unsure:
        return read
    # What is in both, or lacks a guard, may be in another state, wherever it is.
    by_id = dict(zip(ids, read, strict=True))
    by_id.update((facts.item_id, (facts.state, facts)) for facts in facts_of(queue, unsure))
    return by_id.values()


# How long the ages of items that were chosen by them may still grow until a verb acts.
_CHOICE_S = 3600


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

    An item that may be in transit is chosen only if it is still the same item in the same state a
    grace period later (`look_twice`), so there may be fewer than `limit`.
    """
    queue.connection.set_no_touch()
    states = ITEMS if selection.states is None else selection.states
    selection = selection._replace(states=states)
    needs_data = selection.needs_data
    states_by_id: dict[bytes, State] = {}
    tokens: dict[bytes, bytes] = {}
    source = source_of(states)
    listed: Iterable[tuple[bytes, State, Item | None]]
    if selection.by_state_and_id:
        # Faster: the server computes the states.
        _begin(queue, source)
        pages = _walk(queue, source, selection.id_glob, page_entries(queue), facts_too=False)
        entries = chain.from_iterable(pages)
        listed = ((item_id, state, None) for item_id, state, *_ in entries if state in states)
    else:
        whole = items(queue, source, selection, data=needs_data, bare=not needs_data)
        listed = ((item.item_id, item.state, item) for item in whole)
    for item_id, state, item in listed:
        states_by_id.setdefault(item_id, state)
        if item is not None and selection.needs_token:
            tokens.setdefault(item_id, _token_of(item, selection))
        if len(states_by_id) == limit:
            break
    longest_age_s = None
    if selection.older_than_s is not None:
        longest_age_s = ServerAges.of_server(queue).longest_s + _CHOICE_S
    in_transit = [i for i, state in states_by_id.items() if state.may_be_in_transit]
    if in_transit:
        now = {facts.item_id: facts.state for facts in look_twice(queue, in_transit, grace_s)}
        for item_id in in_transit:
            if now.get(item_id) is not states_by_id[item_id]:
                del states_by_id[item_id]
    expected = Expected(
        states,
        selection.older_than_s,
        longest_age_s,
        tokens if selection.needs_token else None,
        states_by_id.keys() & in_transit,
    )
    return Chosen(list(states_by_id), expected)


def _token_of(item: Item, selection: Selection) -> bytes:
    """What the selection looked at of an item, besides its state and its age."""
    parts = [b"" if item.data is None else token_of(item.data)]
    if selection.returns is not None:
        parts.append(b"r" if item.returns is None else b"r%d" % item.returns)
    if selection.by_lease:
        parts.append(b"l" + (item.lease.holder if item.lease else b""))
    return b";".join(parts)
