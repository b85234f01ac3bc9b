"""What a first look knows of items when an operation acts on them: their places in the lists, and
the conditions that they must still meet."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha1
from itertools import chain, compress, pairwise
from math import ceil
from typing import Any, NamedTuple

from rwq_cli.core.batches import BUDGET, Budget
from rwq_cli.core.lua import TOKEN_BYTES
from rwq_cli.core.model import State
from rwq_cli.core.state.rules import Facts


class Expected(NamedTuple):
    """The conditions that chosen items must still meet: see `core/lua/lib/expected.lua`. Those that
    do not are `CHANGED`; a repair skips them."""

    # None for any.
    states: frozenset[State] | None = None
    # The minimum age, seconds, and the longest that can be true; None for any: see `inspect.ages`.
    age_s: float | None = None
    longest_age_s: float | None = None
    # By ID, the token of what was seen of the item, or a digest (see `FirstLook`); None for
    # anything.
    tokens: Mapping[bytes, bytes] | None = None
    # The IDs that looked broken twice, a grace period apart, when they were chosen. Any other item
    # that looks broken when the operation acts may be in transit.
    looked_twice: Collection[bytes] = frozenset()

    def args(self) -> dict[str, Any]:
        return {
            "states": ";".join(sorted(self.states or ())),
            "age_min": self.age_s,
            "age_max": self.longest_age_s,
            "has_tokens": self.tokens is not None,
            "is_first_look": "",
        }

    def id_args(self, ids: Sequence[bytes]) -> Iterable[object]:
        """The IDs as script arguments, each with its token if there are any."""
        if self.tokens is None:
            return ids
        words = (self.tokens.get(item_id, b"") for item_id in ids)
        return chain.from_iterable(zip(ids, words, strict=True))


ANY = Expected()


# Places in a list, counted from its right end, in ascending order.
Positions = Sequence[int]
# Windows that have fewer other entries in between are one.
_GAP_ENTRIES = 64
# To begin one more window takes as long as to pass so many entries. In going to an entry, so many
# bytes of a list are passed in the time of one.
_WINDOW_ENTRIES, _PASSED_BYTES, _ENTRY_BYTES_MIN = 1000, 16_384, 80
# To compare even short data takes as long as to hash so much.
_COMPARED_BYTES_MIN = 2048


class Located(NamedTuple):
    """IDs for a call, and how its script looks for their entries: see `core/lua/lib/locate.lua`.

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


def token_of(data: bytes) -> bytes:
    """The token of data, as in `lua/lib/digest.lua`."""
    length, half = len(data), TOKEN_BYTES // 2
    if length > TOKEN_BYTES:
        data = data[:half] + data[-half:]
    return b"%d:%b" % (length, sha1(data, usedforsecurity=False).hexdigest().encode())


def with_data(token: bytes, data: bytes) -> bytes | None:
    """A token with that of data that were read since; None if it is of other data."""
    before, semicolon, others = token.partition(b";")
    now = token_of(data)
    return None if before not in (b"", now) else now + semicolon + others


def hashed_bytes(token: bytes) -> int:
    """How much data the server hashes in the time that it takes to compare it with a token; 0 for a
    digest."""
    length, colon, _ = token.partition(b";")[0].partition(b":")
    return _COMPARED_BYTES_MIN + min(int(length), TOKEN_BYTES) if colon else 0


class FirstLook:
    """When a look began, unix ms by the server's clock, and by ID the digests of the data it saw.

    An item may be completed, and a new one added under its ID with other data, between two looks;
    or rwq may have pushed it, so that a worker may have popped it, and be about to set its lease.
    A settling lease tells when that was. `lua/ops/repair.lua` checks the same.
    """

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms
        self.digests: dict[bytes, bytes] = {}

    def note(self, facts: Facts) -> None:
        if facts.digest:
            self.digests.setdefault(facts.item_id, facts.digest)

    def is_same(self, facts: Facts) -> bool:
        """Whether an item has the data that was seen, if any, and was not pushed since."""
        seen = self.digests.get(facts.item_id)
        return seen is None or (facts.digest == seen and (facts.pushed_ms or 0) <= self.at_ms)
