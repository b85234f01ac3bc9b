"""Looking up IDs wherever they are: their facts, and their places in the lists."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from rwq_cli.core.batches import (
    BATCH_ITEMS,
    FEW_IDS,
    LONGEST_LIST,
    SCAN_BUDGET_ENTRIES,
    ids_per_call,
    in_batches,
)
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, ListCursor, lengths_of, walk_processing
from rwq_cli.core.state.probe import FACT_FIELDS, parse_facts, probe
from rwq_cli.core.state.rules import Facts

# In longer lists, one LPOS would block the server for too long.
LPOS_LENGTH_MAX = 1_000_000
# IDs are looked up by name if this many calls are enough: a walk takes several round trips for each
# list, even for short lists.
_CALLS = 4

# Places in a list, counted from its right end, in ascending order.
Positions = Sequence[int]
_Entries = Mapping[bytes, Positions]


class Found(NamedTuple):
    """An ID that was looked up.

    Attributes:
        facts: The facts about it.
        main: Its places in main; 0 is next to be leased.
        processing: Its places in processing; 0 is the oldest entry.
    """

    facts: Facts
    main: Positions
    processing: Positions


def look_up(
    queue: Queue,
    ids: Collection[bytes],
    *,
    main_twice: bool = True,
    identities: bool = False,
) -> Iterator[Found]:
    """Look up IDs in both lists, and in the list of 0.1 cleaners.

    A few IDs, or IDs in short lists, are looked up by name, each at one instant. Otherwise each
    list is read once for all IDs, and the facts are read afterwards. Main is read before and after
    processing, so that an item that moves between them is found in exactly one.

    Args:
        queue: The queue.
        ids: The IDs.
        main_twice: Read main again after processing. If False, an item that moves may seem
            duplicated or orphaned, which is good enough for a first look.
        identities: Whether to read `Facts.identity`.

    Yields:
        The facts and places of each ID, in order.
    """
    if not ids:
        return
    lengths: list[int]
    if len(ids) <= BATCH_ITEMS:
        lengths, *facts = queue.run(
            "look_up", SCAN_BUDGET_ENTRIES, LPOS_LENGTH_MAX, int(identities), *ids
        )
        if facts:
            yield from _found(queue, ids, lengths, facts[0])
            return
    else:
        keys = queue.keys
        lists = (keys.main, keys.processing, keys.cleaning)
        lengths = queue.call_all([("LLEN", key) for key in lists])
    length = sum(lengths)
    is_quick = len(ids) <= FEW_IDS or len(ids) * length <= _CALLS * SCAN_BUDGET_ENTRIES
    if is_quick and max(lengths) <= LPOS_LENGTH_MAX:
        yield from _by_name(queue, ids, length, identities)
    else:
        yield from _by_walk(queue, ids, lengths[2] > 0, main_twice, identities)


def facts_of(
    queue: Queue,
    ids: Collection[bytes],
    *,
    main_twice: bool = True,
    identities: bool = False,
) -> Iterator[Facts]:
    """The facts about IDs, in order; see `look_up`."""
    found = look_up(queue, ids, main_twice=main_twice, identities=identities)
    return (each.facts for each in found)


def _by_name(
    queue: Queue, ids: Collection[bytes], length: int, identities: bool
) -> Iterator[Found]:
    batches = in_batches(ids, items_max=ids_per_call(length))
    args = (LONGEST_LIST, LONGEST_LIST, int(identities))
    for batch, reply in queue.read_each("look_up", batches, *args):
        yield from _found(queue, batch, *reply)


def _found(
    queue: Queue, ids: Iterable[bytes], lengths: Sequence[int], facts_reply: Sequence[Any]
) -> Iterator[Found]:
    """Parse a reply of the script."""
    now, *values = facts_reply
    fields = FACT_FIELDS + 4
    for at, item_id in enumerate(ids):
        own = values[at * fields : (at + 1) * fields]
        main, processing, cleaning = (
            [length - 1 - int(index) for index in reversed(indexes.split())]
            for length, indexes in zip(lengths, own[FACT_FIELDS:-1], strict=True)
        )
        counts = (len(main), len(processing), len(cleaning))
        facts = parse_facts(queue.keys, item_id, own[:FACT_FIELDS], int(now), *counts, own[-1])
        yield Found(facts, main, processing)


def _by_walk(
    queue: Queue,
    ids: Collection[bytes],
    has_cleaning: bool,
    main_twice: bool,
    identities: bool,
) -> Iterator[Found]:
    keys, wanted = queue.keys, ids if isinstance(ids, Set) else frozenset(ids)
    queue.progress.begin("reading the lists", lengths_of(queue, keys.main, keys.processing))

    def walk(key: bytes) -> ListCursor:
        return ListCursor(queue, key, page_size=WALK_ENTRIES)

    before = _entries(walk(keys.main), wanted)
    working = _entries(walk_processing(queue, page_size=WALK_ENTRIES), wanted)
    after = _entries(walk(keys.main), wanted) if main_twice else before
    cleaning = _entries(walk(keys.cleaning), wanted) if has_cleaning else {}
    for facts in probe(queue, ids, identities=identities):
        item_id = facts.item_id
        seen = before.get(item_id, ()), working.get(item_id, ()), after.get(item_id, ())
        main, processing = _places_after_moves(*seen) if any(seen) else ((), ())
        in_cleaning = len(cleaning.get(item_id, ())) if cleaning else 0
        if main or processing or in_cleaning:
            facts = facts._replace(
                in_main=len(main),
                in_processing=len(processing),
                in_cleaning=in_cleaning,
            )
        yield Found(facts, main, processing)


def _entries(cursor: ListCursor, wanted: Set[bytes]) -> _Entries:
    """The places of the wanted IDs in a list that is read from the right."""
    found: dict[bytes, tuple[int, ...]] = {}
    for page in cursor:
        if not wanted.isdisjoint(page):
            for place, entry in enumerate(page, cursor.offset):
                if entry in wanted:
                    found[entry] = (*found.get(entry, ()), place)
    return found


def _places_after_moves(
    before: Positions, working: Positions, after: Positions
) -> tuple[Positions, Positions]:
    """The places in main and processing, given those in main, in processing, and in main again."""
    if working and after and not before:
        # It was returned after processing was read.
        return after, ()
    if working or (before and after):
        return min(after, before, key=len), working
    return after or before, working
