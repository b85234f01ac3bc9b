"""Finding the list entries of any number of IDs, for the calls that act on them or read them.

A few IDs are looked up by the script of a call itself. For more, the lists are read first, and the
script is told where the entries are. This affects only the speed: scripts check every place, and
report an ID that is not there any more, which is then looked for again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

from rwq_cli.core.batches import BUDGET, FEW_IDS, LONGEST_LIST
from rwq_cli.core.clock import unix_ms
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshots import ItemSnapshot, Skipped, read_snapshots

# So many IDs are looked up by name if they are found so in short lists.
_NAMED_IDS = 250
# More than a few IDs are looked up by name only in short lists, to save the round trips of reading
# them: a script that is told the places is faster.
SCANNED_MAX = 100_000
# How often the lists are read for IDs that move, before each of them is looked up by name.
_ROUNDS = 4
_PositionsByID = dict[bytes, list[int]]


class Places(NamedTuple):
    """Where the entries of IDs were seen in both lists.

    Attributes:
        main: By ID, its places in main, in ascending order, where 0 is next to be leased.
        processing: By ID, its places in processing, where 0 is the oldest.
        lengths: How long both lists were.
        since_ms: The server's clock before that, unix ms.
    """

    main: Mapping[bytes, list[int]]
    processing: Mapping[bytes, list[int]]
    lengths: tuple[int, int] = (0, 0)
    since_ms: int = 0

    @classmethod
    def read(cls, queue: Queue, ids: Collection[bytes]) -> "Places":
        """Find IDs: a few by name, for more the lists are read once for all of them. The shorter is
        read before and after the other, so that an item that moves is found in exactly one.
        """
        wanted = ids if isinstance(ids, Set) else frozenset(ids)
        keys = [queue.keys.processing, queue.keys.main]
        sizes = [("LLEN", key) for key in keys]
        now, *lengths = queue.call_all([("TIME",), *sizes])
        is_main_longer = lengths[0] <= lengths[1]
        shorter, longer = keys if is_main_longer else keys[::-1]
        if len(wanted) <= FEW_IDS:
            first, then, last = _by_name(queue, wanted, [shorter, longer, shorter])
            _follow_moves(first, then, last)
        else:
            queue.progress.begin("reading the lists", sum(lengths))
            first, then = (_in_list(queue, key, wanted) for key in (shorter, longer))
            # If each was in exactly one, it does not matter whether some have moved.
            if len(first) + len(then) != len(wanted) or not first.keys().isdisjoint(then):
                _follow_moves(first, then, _in_list(queue, shorter, wanted))
        main, processing = (then, first) if is_main_longer else (first, then)
        in_processing, in_main = queue.call_all(sizes)
        return cls(main, processing, (in_main, in_processing), unix_ms(now))

    def located(self, ids: Collection[bytes], *, in_order: bool) -> Located:
        """The call for IDs: those that have places, and others, which are in no list.

        Unless they are to stay in order, those in main come first, next to be leased first; then
        those in processing, longest leased first.
        """
        columns = self.main, self.processing
        if not in_order:
            # One walk may serve several calls.
            listed = (
                sorted(filter(by_id.__contains__, ids), key=by_id.__getitem__) for by_id in columns
            )
            ids = dict.fromkeys(chain(*listed, ids))
        main, processing = (
            [by_id.get(item_id, ()) for item_id in ids] if by_id else () for by_id in columns
        )
        return Located(list(ids), "windows", (main, processing), self.since_ms, self.lengths)


# Of IDs that are in no list.
NO_PLACES = Places({}, {})


def _follow_moves(first: _PositionsByID, then: _PositionsByID, last: _PositionsByID) -> None:
    """Leave each item that moved between two lists in one of them: the first was read again."""
    for item_id, positions in last.items():
        if item_id in first:
            first[item_id] = min(first[item_id], positions, key=len)
        else:
            first[item_id] = positions
            then.pop(item_id, None)
    for item_id in (first.keys() & then.keys()) - last.keys():
        del first[item_id]


def _in_list(queue: Queue, key: bytes, wanted: Set[bytes]) -> _PositionsByID:
    positions: _PositionsByID = {}
    cursor = ListCursor(queue, key)
    for page in cursor:
        if not wanted.isdisjoint(page):
            for position, entry in enumerate(page, cursor.offset):
                if entry in wanted:
                    positions.setdefault(entry, []).append(position)
    return positions


def _by_name(queue: Queue, wanted: Set[bytes], lists: Sequence[bytes]) -> list[_PositionsByID]:
    """Find a few IDs in lists of any length, in one round trip: each command costs as much as one
    LREM. A place may be off by what others push meanwhile."""
    commands: list[Command] = [("LLEN", key) for key in lists]
    for item_id in wanted:
        commands += [("LPOS", key, item_id, "COUNT", 0) for key in lists]
    replies = queue.call_all(commands)
    lengths, indexes = replies[: len(lists)], iter(replies[len(lists) :])
    by_list: list[_PositionsByID] = [{} for _ in lists]
    for item_id in wanted:
        for positions, length in zip(by_list, lengths, strict=True):
            if from_left := next(indexes):
                positions[item_id] = [max(0, length - 1 - at) for at in reversed(from_left)]
    return by_list


def rounds(
    queue: Queue,
    pending: Mapping[bytes, object],
    doing: str = "",
    *,
    in_order: bool = True,
    places: Places | None = None,
) -> Iterator[Located]:
    """Calls for pending IDs, again and again until the caller has removed all of them."""
    for number in range(_ROUNDS + 1):
        if not pending:
            return
        ids = list(pending)
        if doing:
            queue.progress.begin(doing, len(ids))
        if number == _ROUNDS:
            # They have moved all the time, which hardly ever happens.
            yield from (Located([item_id], scan_max=LONGEST_LIST) for item_id in ids)
        elif number == 0 and places is None and len(ids) <= _NAMED_IDS:
            scan_max = BUDGET.entries if len(ids) <= FEW_IDS else SCANNED_MAX
            yield Located(ids, scan_max=scan_max)
        else:
            if places is None:
                places = Places.read(queue, ids)
                if doing:
                    queue.progress.begin(doing, len(ids))
            yield places.located(ids, in_order=in_order)
            places = None


def read_items(
    queue: Queue, ids: Iterable[bytes], skipped: Skipped, places: Places | None = None
) -> Iterator[list[ItemSnapshot]]:
    """Read items wherever they are, each list at one instant; in their order if there are few."""
    pending = dict.fromkeys(ids)
    for call in rounds(queue, pending, in_order=False, places=places):
        skipped.elsewhere = []
        for _, items in read_snapshots(queue, [call], skipped):
            if items:
                yield items
        pending.clear()
        pending.update(dict.fromkeys(skipped.elsewhere))
    skipped.elsewhere = []
