"""Where IDs are in the two lists."""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import NamedTuple

from rwq_cli.core.batches import FEW_IDS
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, ListCursor, lengths_of
from rwq_cli.core.server.commands import Command

# Places in a list, counted from its right end, in ascending order.
Positions = Sequence[int]
_ByID = Mapping[bytes, Positions]


class Places(NamedTuple):
    """The places of IDs in the lists, by ID; without those that are in neither.

    Attributes:
        main: The places in main; 0 is next to be leased.
        processing: The places in processing; 0 is the oldest entry.
    """

    main: _ByID
    processing: _ByID

    @property
    def listed(self) -> Set[bytes]:
        """The IDs in either list."""
        return self.main.keys() | self.processing.keys()

    @property
    def several(self) -> Set[bytes]:
        """The IDs that are in the lists more than once."""
        repeated = {
            item_id for found in self for item_id, positions in found.items() if len(positions) > 1
        }
        return repeated | (self.main.keys() & self.processing.keys())


def places_of(queue: Queue, ids: Collection[bytes], *, main_twice: bool = False) -> Places:
    """Find IDs in both lists.

    A few are looked up by name. For more, each list is read once for all of them.

    Args:
        queue: The queue.
        ids: The IDs.
        main_twice: Read main before and after processing, so that an item that moves between them
            is found in exactly one. If False, one that is returned meanwhile may be missed.
    """
    wanted = ids if isinstance(ids, Set) else frozenset(ids)
    lists = [queue.keys.main, queue.keys.processing, *[queue.keys.main] * main_twice]
    if len(wanted) <= FEW_IDS:
        found = _by_name(queue, wanted, lists)
    else:
        queue.progress.begin("reading the lists", lengths_of(queue, *lists))
        found = [_in_list(ListCursor(queue, key, page_size=WALK_ENTRIES), wanted) for key in lists]
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
    """The places of the wanted IDs in a list that is read from the right."""
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
