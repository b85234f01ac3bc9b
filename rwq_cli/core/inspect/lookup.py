"""Looking up IDs wherever they are: their places in the lists, their facts, and a second look."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, FEW_IDS, SCAN_BUDGET_ENTRIES
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, ListCursor, lengths_of
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.probe import FACT_FIELDS, parse_facts, probe
from rwq_cli.core.state.rules import Facts

# Places in a list, counted from its right end, in ascending order.
Positions = Sequence[int]
_ByID = Mapping[bytes, Positions]


class Places(NamedTuple):
    """By ID, its places in main, where 0 is next, and in processing, where 0 is the oldest."""

    main: _ByID
    processing: _ByID

    @property
    def listed(self) -> Set[bytes]:
        """The IDs in either list."""
        return self.main.keys() | self.processing.keys()


class Found(NamedTuple):
    """The facts about an ID, and its places as in `Places`."""

    facts: Facts
    main: Positions
    processing: Positions


def places_of(queue: Queue, ids: Collection[bytes], *, main_twice: bool = False) -> Places:
    """Find IDs in both lists: a few by name, for more each list is read once for all of them.

    With `main_twice`, main is read before and after processing, so that an item that moves between
    them is found in exactly one. Otherwise one that is returned meanwhile may be missed.
    """
    wanted = ids if isinstance(ids, Set) else frozenset(ids)
    lists = [queue.keys.main, queue.keys.processing, *[queue.keys.main] * main_twice]
    if len(wanted) <= FEW_IDS:
        found = _by_name(queue, wanted, lists)
    else:
        queue.progress.begin("reading the lists", lengths_of(queue, *lists))
        found = []
        for key in lists:
            if len(found) == 2 and found[0].keys() == wanted and not found[1]:
                # None has moved.
                found.append(found[0])
            else:
                found.append(_in_list(ListCursor(queue, key, page_size=WALK_ENTRIES), wanted))
    if not main_twice:
        return Places(*found)
    before, working, after = found
    main: dict[bytes, Positions] = {}
    processing: dict[bytes, Positions] = {}
    for item_id in before.keys() | working.keys() | after.keys():
        first, then, last = (each.get(item_id, ()) for each in found)
        if then and last and not first:
            # It was returned after processing was read.
            then = ()
        elif then or (first and last):
            last = min(last, first, key=len)
        if last or (first and not then):
            main[item_id] = last or first
        if then:
            processing[item_id] = then
    return Places(main, processing)


def _in_list(cursor: ListCursor, wanted: Set[bytes]) -> dict[bytes, Positions]:
    found: dict[bytes, Positions] = {}
    for page in cursor:
        if not wanted.isdisjoint(page):
            for place, entry in enumerate(page, cursor.offset):
                if entry in wanted:
                    found[entry] = (*found.get(entry, ()), place)
    return found


def _by_name(queue: Queue, wanted: Set[bytes], lists: Sequence[bytes]) -> list[_ByID]:
    """Find a few IDs in lists of any length, in one round trip; each call looks for one ID.

    It costs as much as one LREM. A place may be off by what others push meanwhile.
    """
    commands: list[Command] = [("LLEN", key) for key in lists]
    for item_id in wanted:
        commands += [("LPOS", key, item_id, "COUNT", 0) for key in lists]
    replies = queue.call_all(commands)
    lengths, indexes = replies[: len(lists)], iter(replies[len(lists) :])
    found: list[dict[bytes, Positions]] = [{} for _ in lists]
    for item_id in wanted:
        for positions, length in zip(found, lengths, strict=True):
            if from_left := next(indexes):
                positions[item_id] = [max(0, length - 1 - at) for at in reversed(from_left)]
    return list(found)


def look_up(
    queue: Queue, ids: Collection[bytes], *, main_twice: bool = True, digests: bool = False
) -> Iterator[Found]:
    """Look up IDs in both lists, and in the list of 0.1 cleaners; in order.

    If the lists are short, all facts are of one instant; otherwise they are read after the places.
    Without `main_twice` (`places_of`) an item that moves may seem duplicated or orphaned, which is
    good enough for a first look. `digests` are read only if asked for.
    """
    if not ids:
        return
    if len(ids) <= BATCH_ITEMS:
        lengths, *facts = queue.run(
            "look_up", *ids, scan_max=SCAN_BUDGET_ENTRIES, digests_too=digests
        )
        if facts:
            yield from _found(queue, ids, lengths, facts[0])
            return
    places = places_of(queue, ids, main_twice=main_twice)
    cleaning = Counter(chain.from_iterable(ListCursor(queue, queue.keys.cleaning)))
    for facts in probe(queue, ids, digests=digests):
        main, processing = (found.get(facts.item_id, ()) for found in places)
        facts = facts._replace(
            in_main=len(main),
            in_processing=len(processing),
            in_cleaning=cleaning[facts.item_id],
        )
        yield Found(facts, main, processing)


def facts_of(
    queue: Queue, ids: Collection[bytes], *, main_twice: bool = True, digests: bool = False
) -> Iterator[Facts]:
    """The facts about IDs, in order; see `look_up`."""
    found = look_up(queue, ids, main_twice=main_twice, digests=digests)
    return (each.facts for each in found)


def _found(
    queue: Queue, ids: Iterable[bytes], lengths: Sequence[int], facts_reply: Sequence[Any]
) -> Iterator[Found]:
    """Parse a reply of the script."""
    now_ms, *values = facts_reply
    fields = FACT_FIELDS + 4
    for at, item_id in enumerate(ids):
        own = values[at * fields : (at + 1) * fields]
        places = [
            [length - 1 - int(index) for index in reversed(indexes.split())]
            for length, indexes in zip(lengths, own[FACT_FIELDS:-1], strict=True)
        ]
        in_main, in_processing, in_cleaning = map(len, places)
        counts = (in_main, in_processing, in_cleaning)
        facts = parse_facts(queue.keys, item_id, own[:FACT_FIELDS], int(now_ms), *counts)
        yield Found(facts._replace(digest=own[-1]), places[0], places[1])


def look_twice(queue: Queue, ids: Collection[bytes], grace_s: float) -> Iterator[Facts]:
    """Look up IDs, wait for the grace period, and look them up again.

    Yields the facts of the second look, for the IDs that still name the same item (`FirstLook`), or
    that a lease or guard protects by now, or that have no data.
    """
    look = FirstLook(queue.now_ms())
    for facts in facts_of(queue, ids, digests=True):
        look.note(facts)
    queue.clock.sleep(grace_s)
    for facts in facts_of(queue, ids, digests=True):
        if not facts.digest or look.is_same(facts):
            yield facts
