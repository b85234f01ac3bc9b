"""Listings: pages of items, oldest or next first, chosen by what they are."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice

from rwq_cli.core.batches import BATCH_ITEMS, LONGEST_LIST, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    PAGE_SIZE,
    lengths_of,
    walk_list,
    walk_processing,
    walk_scheduled,
)
from rwq_cli.core.inspect.report import (
    ITEMS_WITH_DATA,
    Detail,
    Probe,
    item_from,
    probe,
    seen_in_list,
    seen_in_processing,
    with_details,
)
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.rules import SCHEDULED, is_guard

# What only a walk over the whole queue finds.
FOUND_DEEP = frozenset({State.ORPHANED, State.UNLISTED, State.HELD, State.DUPLICATED})


@dataclass(frozen=True, slots=True)
class Selection:
    """Which items to take of those that a listing passes.

    Attributes:
        states: Only items in one of these; None for any.
        match: A regular expression that must be found in the data; None for any.
        id_glob: A glob that the whole ID must match; None for any.
        older_than_s: Only items idle for at least this many seconds; None for any.
    """

    states: frozenset[State] | None = None
    match: "re.Pattern[bytes] | None" = None
    id_glob: bytes | None = None
    older_than_s: float | None = None

    @property
    def is_all(self) -> bool:
        """Whether everything passes."""
        return (self.states, self.match, self.id_glob, self.older_than_s) == (None,) * 4

    @property
    def reads_details(self) -> bool:
        """Whether it has to read more than states to decide."""
        return self.match is not None or self.older_than_s is not None

    def id_pattern(self) -> "re.Pattern[bytes] | None":
        """The glob for IDs as a compiled regular expression; None for any ID."""
        return None if self.id_glob is None else glob_pattern(self.id_glob)


@dataclass(frozen=True, slots=True)
class Source:
    """Which lists a listing walks.

    Attributes:
        main: Walk the main list.
        processing: Walk the processing list.
        delayed: Walk the delayed zset, the next due first.
        buried: Walk the buried zset, the longest buried first.
        deep: Walk all data keys and then all of these, for what no single list tells: items in no
            list or zset, and duplicated ones. In no order.
    """

    main: bool = False
    processing: bool = False
    delayed: bool = False
    buried: bool = False
    deep: bool = False

    @property
    def is_one(self) -> bool:
        """Whether it is one structure only, whose entries can be passed over without reading."""
        return not self.deep and self.main + self.processing + self.delayed + self.buried == 1


def list_items(
    queue: Queue,
    source: Source,
    selection: Selection,
    detail: Detail,
    *,
    limit: int | None,
    offset: int = 0,
    tail: bool = False,
) -> Iterator[Item]:
    """Items in the order in which they are or were leased: next, or longest leased, first.

    Args:
        queue: The queue.
        source: Which lists.
        selection: Which of their items.
        detail: How much to read of each.
        limit: How many at most; None for all.
        offset: How many of those that pass the selection to leave out first.
        tail: From the other end: newest first.

    Yields:
        Items, read in pages as they are asked for.
    """
    if limit == 0:
        return
    # Without a selection the pages that are passed over need not be read.
    skip = offset if selection.is_all and source.is_one else 0
    wanted = None if limit is None else limit + offset - skip
    page_size = PAGE_SIZE
    if selection.is_all and wanted is not None:
        page_size = min(PAGE_SIZE, wanted)
    lists = [queue.keys.main] * source.main + [queue.keys.processing] * source.processing
    entries = lengths_of(queue, *lists)
    queue.progress.begin("listing", lambda: min(entries(), wanted or LONGEST_LIST))
    passing = _passing(queue, source, selection, detail, tail, skip, page_size)
    yield from islice(passing, offset - skip, wanted)


def list_ids(
    queue: Queue,
    source: Source,
    *,
    limit: int | None,
    offset: int = 0,
    tail: bool = False,
) -> Iterator[Sequence[bytes]]:
    """The IDs of all that is in main, in the delayed or in the buried zset, without a look at each.

    Args:
        queue: The queue.
        source: Which of the three; that one alone.
        limit: How many at most; None for all.
        offset: How many to leave out first.
        tail: From the other end.

    Yields:
        Pages of them, in the order of `list_items`.
    """
    left = LONGEST_LIST if limit is None else limit
    entries = lengths_of(queue, *[queue.keys.main] * source.main)
    queue.progress.begin("listing", lambda: min(entries(), left))
    pages: Iterator[Sequence[bytes]]
    page_size = min(PAGE_SIZE, left)
    if source.main:
        pages = walk_list(
            queue, queue.keys.main, newest_first=tail, start=offset, page_size=page_size
        )
    else:
        name = "delayed" if source.delayed else "buried"
        pages = (
            [item_id for item_id, _ in page]
            for page in walk_scheduled(
                queue, name, latest_first=tail, start=offset, page_size=page_size
            )
        )
    for page in pages:
        yield page[:left]
        left -= len(page)
        if left <= 0:
            return


def _passing(
    queue: Queue,
    source: Source,
    selection: Selection,
    detail: Detail,
    tail: bool,
    skip: int,
    page_size: int,
) -> Iterator[Item]:
    if source.main:
        length = queue.call("LLEN", queue.keys.main) if tail else 0
        index = skip
        for page in walk_list(
            queue, queue.keys.main, newest_first=tail, start=skip, page_size=page_size
        ):
            positions = [
                length - 1 - place if tail else place for place in range(index, index + len(page))
            ]
            index += len(page)
            yield from _page(queue, page, positions, selection, detail, main=1)
    met: set[bytes] = set()
    if source.processing:
        skip_here = 0 if source.main else skip
        walk = walk_list(
            queue,
            queue.keys.processing,
            newest_first=tail,
            start=skip_here,
            page_size=page_size,
            turns=True,
        )
        for page in walk:
            fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in met]
            met.update(fresh)
            items = _in_processing(queue, fresh, selection.id_pattern())
            yield from _chosen(queue, items, selection, detail)
    elsewhere = _Elsewhere(queue, met if source.processing else None)
    for name in ("delayed", "buried"):
        if getattr(source, name):
            skip_here = skip if source.is_one else 0
            yield from _zset_pages(
                queue, name, selection, detail, tail, skip_here, page_size, elsewhere
            )
    if source.deep:
        yield from _found_deep(queue, selection, detail)


class _Elsewhere:
    """Tells what is in processing after all, and only has an old entry in a zset."""

    def __init__(self, queue: Queue, listed: "set[bytes] | None") -> None:
        self._queue = queue
        # What the listing has met in processing; None if it does not walk it.
        self._listed = listed

    def has(self, item_id: bytes, look: Probe) -> bool:
        """Whether it is an item of processing, whatever entry it has in a zset."""
        if not look.has_data or is_guard(look.lease):
            return False
        if self._listed is None:
            if look.lease is None:
                return False
            # Hardly ever needed: a worker has got hold of what was put away.
            pages = walk_processing(
                self._queue,
            )
            self._listed = {listed_id for page in pages for listed_id in page}
        return item_id in self._listed


def _in_processing(
    queue: Queue,
    ids: Sequence[bytes],
    pattern: "re.Pattern[bytes] | None",
) -> list[Item]:
    """The items of processing; behind a guard an old entry there means nothing."""
    chosen = [item_id for item_id in ids if pattern is None or pattern.match(item_id)]
    items = [item_from(queue.keys.name, facts, None) for facts in seen_in_processing(queue, chosen)]
    return [item for item in items if item.state not in SCHEDULED]


def _zset_pages(
    queue: Queue,
    name: str,
    selection: Selection,
    detail: Detail,
    tail: bool,
    skip: int,
    page_size: int,
    elsewhere: _Elsewhere,
) -> Iterator[Item]:
    """The items of the delayed or buried zset in order of time."""
    pattern = selection.id_pattern()
    seconds, microseconds = queue.call("TIME")
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    for page in walk_scheduled(queue, name, latest_first=tail, start=skip, page_size=page_size):
        pairs = [pair for pair in page if pattern is None or pattern.match(pair[0])]
        items = []
        seen = probe(queue, [item_id for item_id, _ in pairs])
        for (item_id, score), look in zip(pairs, seen, strict=True):
            if elsewhere.has(item_id, look):
                continue
            facts = replace(
                seen_in_list(item_id, look),
                due_ms=int(score) if name == "delayed" else None,
                buried_ms=int(score) if name == "buried" else None,
                now_ms=now_ms,
            )
            items.append(item_from(queue.keys.name, facts, None))
        yield from _chosen(queue, items, selection, detail)


def _found_deep(queue: Queue, selection: Selection, detail: Detail) -> Iterator[Item]:
    """Items in no list or zset, and those in the lists more than once, as one look saw them."""
    from rwq_cli.core.inspect.survey import survey

    found = survey(
        queue,
    )
    states = FOUND_DEEP if selection.states is None else FOUND_DEEP & selection.states
    wanted = replace(selection, states=states)
    for copies, ids in (
        (0, (*found.orphaned, *found.unlisted, *found.held)),
        (2, dict.fromkeys(found.duplicated)),
    ):
        for batch in in_batches(ids):
            nowhere = [None] * len(batch)
            yield from _page(queue, batch, nowhere, wanted, detail, main=copies)


def _page(
    queue: Queue,
    ids: list[bytes],
    positions: "list[int] | list[None]",
    selection: Selection,
    detail: Detail,
    *,
    main: int,
) -> Iterator[Item]:
    pattern = selection.id_pattern()
    chosen = [
        (item_id, position)
        for item_id, position in zip(ids, positions, strict=True)
        if pattern is None or pattern.match(item_id)
    ]
    if not chosen:
        return
    items = []
    seen = probe(queue, [item_id for item_id, _ in chosen])
    for (item_id, position), look in zip(chosen, seen, strict=True):
        facts = seen_in_list(item_id, look, main=main)
        items.append(item_from(queue.keys.name, facts, position))
    yield from _chosen(queue, items, selection, detail)


def _chosen(
    queue: Queue,
    items: list[Item],
    selection: Selection,
    detail: Detail,
) -> Iterator[Item]:
    """Those that pass the selection, with their details."""
    if selection.states is not None:
        items = [item for item in items if item.state in selection.states]
    # What the selection asks has to be read whatever is shown.
    read = detail
    if selection.reads_details:
        read = Detail(sizes=detail.sizes, data=detail.data or selection.match is not None)
    # A page of items of a megabyte is a gigabyte: few are in hand at a time.
    for batch in in_batches(items, items_max=ITEMS_WITH_DATA if read.data else BATCH_ITEMS):
        for item in with_details(queue, batch, read):
            if _passes(item, selection):
                yield item if detail.data or item.data is None else replace(item, data=None)


def _passes(item: Item, selection: Selection) -> bool:
    if selection.match is not None and not (item.data and selection.match.search(item.data)):
        return False
    if selection.older_than_s is not None:
        return item.idle_s is not None and item.idle_s >= selection.older_than_s
    return True


def list_leases(
    queue: Queue,
    detail: Detail,
    *,
    limit: int | None,
    holder_glob: bytes | None = None,
) -> Iterator[Item]:
    """The items in processing: abandoned ones first, then by the time left, endless ones last.

    Sorting needs every lease, so all of processing is read; of the items, only what is shown.

    Args:
        queue: The queue.
        detail: How much to read of each.
        limit: How many at most; None for all.
        holder_glob: Only leases whose holder matches this glob; abandoned items have no holder
            and pass only without it.
    """
    pattern = None if holder_glob is None else glob_pattern(holder_glob)

    queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))

    def found() -> Iterator[Item]:
        met: set[bytes] = set()
        for page in walk_processing(
            queue,
        ):
            fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in met]
            met.update(fresh)
            for item in _in_processing(queue, fresh, None):
                if not pattern or (item.lease and pattern.match(item.lease.holder)):
                    yield item

    def urgency(item: Item) -> float:
        if item.lease is None:
            return -1.0
        return float("inf") if item.lease.ttl_ms is None else float(item.lease.ttl_ms)

    chosen = sorted(found(), key=urgency) if limit is None else nsmallest(limit, found(), urgency)
    for batch in in_batches(chosen, items_max=100):
        yield from with_details(queue, batch, detail)
