"""Where the list entries of IDs are, as a call tells its script: see `core/lua/lib/locate.lua`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, pairwise
from math import ceil
from typing import Any, NamedTuple

from rwq_cli.core.batches import BUDGET, Budget

# Places in a list, counted from its right end, in ascending order.
Positions = Sequence[int]
# Windows that have fewer other entries in between are one.
_GAP_ENTRIES = 64
# To begin one more window takes as long as to pass so many entries. In going to an entry, so many
# bytes of a list are passed in the time of one.
_WINDOW_ENTRIES, _PASSED_BYTES, _ENTRY_BYTES_MIN = 1000, 16_384, 80


class Located(NamedTuple):
    """IDs for a call, and how its script looks for their entries.

    Attributes:
        ids: The IDs.
        search: By `name` in both lists; in `windows` of them; or in processing, for the caller has
            `leased` them. In a long list, only the first of these is sure to be found: the others
            are to be tried again.
        entries: For `windows`, where the entries of each ID were seen in main, and in processing;
            empty if none was seen there.
        since_ms: And the server's clock before that, unix ms.
        lengths: And how long both lists were. Then the windows are counted from the left end: from
            the other, they would change with every call that removes entries.
        scan_max: For `name`, how many entries of both lists to scan at most; if they have more,
            none is found.
        saved: By ID, the tokens of what was saved; None if nothing was read.
        read: The snapshots of what was saved, if they were read now.
        looked_twice: What was looked at twice: the others are left alone, as `IN_TRANSIT`, if they
            may be in transit. None if nothing is.
    """

    ids: Sequence[bytes]
    search: str = "name"
    entries: tuple[Sequence[Positions], Sequence[Positions]] = (), ()
    since_ms: int = 0
    lengths: tuple[int, int] = (0, 0)
    scan_max: int = BUDGET.entries
    saved: Mapping[bytes, bytes] | None = None
    read: Sequence[Any] = ()
    looked_twice: Collection[bytes] | None = None

    @classmethod
    def unlisted(cls, ids: Iterable[bytes], since_ms: int = 0) -> "Located":
        """The call for IDs that were seen in no list, such as buried ones."""
        return cls(list(ids), "windows", since_ms=since_ms)

    def args(self) -> dict[str, Any]:
        # Of one that was seen more often than a byte can say, none is found.
        main_seen, processing_seen = (
            bytes([min(len(positions), 255) for positions in column]) for column in self.entries
        )
        return {
            "where": self.search,
            "main_windows": self._windows(0),
            "main_seen": main_seen,
            "processing_windows": self._windows(1),
            "processing_seen": processing_seen,
            "seen_ms": self.since_ms,
            "scan_max": self.scan_max,
        }

    def _windows(self, number: int) -> str:
        """The parts of a list that have the entries, as `locate.lua` takes them."""
        column, length = self.entries[number], self.lengths[number]
        positions = sorted(chain.from_iterable(column), reverse=True)
        if not positions:
            return ""
        ends = [next(places[-1] for places in reversed(column) if places), positions[0]]
        for position, after in pairwise(positions):
            if position - after > _GAP_ENTRIES:
                ends += position, after
        indexes = [length - 1 - position for position in (*ends, positions[-1])]
        # The list may have become shorter before its length was read.
        return " ".join([str(max(0, index) if length else index) for index in indexes])

    def only(self, ids: Collection[bytes]) -> "Located":
        """The call for those of its IDs that are among these."""
        is_kept = [item_id in ids for item_id in self.ids]
        main, processing = (list(compress(column, is_kept)) for column in self.entries)
        return self._replace(ids=list(compress(self.ids, is_kept)), entries=(main, processing))

    def part(self, first: int, end: int | None = None) -> "Located":
        """The call for some of its IDs in a row."""
        main, processing = (column[first:end] for column in self.entries)
        return self._replace(ids=self.ids[first:end], entries=(main, processing))

    def within(
        self, budget: Budget, bytes_of: Callable[[bytes], int] | None = None
    ) -> "Iterator[Located]":
        """Cut the call by the budget of a script, into even parts if it takes too much for one;
        `bytes_of` tells how many bytes the script copies, compares or writes for an ID."""
        count = len(self.ids)
        size = min(count, budget.items)
        if size == count:
            size_bytes = sum(map(bytes_of, self.ids)) if bytes_of else 0
            parts = max(size_bytes / budget.bytes, self._passed_entries() / budget.entries)
            size = ceil(count / max(1, ceil(parts)))
        if size >= count:
            yield self
            return
        for first in range(0, count, size):
            yield from self.part(first, first + size).within(budget, bytes_of)

    def _passed_entries(self) -> int:
        """How many entries the script passes over at most, to find those of the IDs and to remove
        them."""
        passed = 0
        for column, length in zip(self.entries, self.lengths, strict=True):
            if positions := list(chain.from_iterable(column)):
                first, last = min(positions), max(positions)
                to_nearer_end = min(last, abs(length - first))
                entry_bytes = max(_ENTRY_BYTES_MIN, *map(len, self.ids))
                passed += len(positions) * (to_nearer_end * entry_bytes // _PASSED_BYTES)
                windows = min(len(positions), 1 + (last - first) // _GAP_ENTRIES)
                passed += windows * _WINDOW_ENTRIES
        return passed
