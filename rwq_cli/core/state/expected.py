"""What a first look knows of items when an operation acts on them: their places in the lists, and
the conditions that they must still meet."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha1
from itertools import chain
from typing import Any, NamedTuple

from rwq_cli.core.batches import BUDGET, Budget
from rwq_cli.core.lua import TOKEN_BYTES
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.rules import Facts


class Expected(NamedTuple):
    """The conditions that chosen items must still meet: see `core/lua/lib/expected.lua`. Those that
    do not are `CHANGED`; a repair skips them."""

    # None for any.
    states: frozenset[State] | None = None
    # The minimum idle time, seconds; None for any.
    idle_s: float | None = None
    # By ID, the token of the data that was read (`repair` compares digests instead, see
    # `FirstLook`); None for any data.
    tokens: Mapping[bytes, bytes] | None = None
    # The IDs that looked broken twice, a grace period apart, when they were chosen. Any other item
    # that looks broken when the operation acts may be in transit.
    looked_twice: Collection[bytes] = frozenset()
    # By ID, the mark of the item that was chosen, and what it has: see `mark_of`.
    marks: Mapping[bytes, bytes] | None = None
    marked_by: str = ""

    def args(self) -> dict[str, Any]:
        return {
            "states": ";".join(sorted(self.states or ())),
            "idle_min": self.idle_s,
            "has_tokens": self.tokens is not None,
            "marked_by": self.marked_by,
        }

    def id_args(self, ids: Sequence[bytes]) -> Iterable[object]:
        """The IDs as script arguments: each with its token and its mark, if any."""
        known = [each for each in (self.tokens, self.marks) if each is not None]
        columns = ([each.get(item_id, "") for item_id in ids] for each in known)
        return chain.from_iterable(zip(ids, *columns, strict=True)) if known else ids


ANY = Expected()


class Located(NamedTuple):
    """IDs, and how a script finds them: see `core/lua/lib/locate.lua`."""

    ids: Sequence[bytes]
    # By `name` in both lists; at `places`; or in processing, for the caller has `leased` them. In a
    # long list, only the first of these is sure to be found: the others are to be tried again.
    how: str = "name"
    # For `places`, where the entries of each ID were seen, and the server's clock before, unix ms.
    places: Sequence[str] = ()
    since_ms: int = 0
    # For `name`, how many entries of both lists to scan at most; if they have more, none is found.
    scan_max: int = BUDGET.entries
    # The tokens of the data that was saved of each; None if none was read.
    saved: Mapping[bytes, bytes] | None = None
    # The snapshots of what was saved, if they were read now.
    read: Sequence[Any] = ()
    # Those of the IDs that are no longer to be left alone at a first look.
    looked_twice: Collection[bytes] = frozenset()

    def args(self) -> dict[str, Any]:
        return {
            "where": self.how,
            "places": f"[{','.join(self.places)}]",
            "seen_ms": self.since_ms,
            "scan_max": self.scan_max,
        }

    def only(self, ids: Collection[bytes]) -> "Located":
        kept = [at for at, item_id in enumerate(self.ids) if item_id in ids]
        places = [self.places[at] for at in kept] if self.places else ()
        return self._replace(ids=[self.ids[at] for at in kept], places=places)

    def part(self, first: int, end: int | None = None) -> "Located":
        return self._replace(ids=self.ids[first:end], places=self.places[first:end])

    def within(
        self, budget: Budget, tokens: Mapping[bytes, bytes] | None = None, bytes_each: int = 0
    ) -> "Iterator[Located]":
        """Cut the call by a budget: also by its bytes, if the script compares tokens of data, or
        writes so many bytes for each."""
        first, size = 0, 0
        for at, item_id in enumerate(self.ids):
            if at - first == budget.items or size >= budget.bytes:
                yield self.part(first, at)
                first, size = at, 0
            size += bytes_each + (hashed_bytes(tokens.get(item_id, b"")) if tokens else 0)
        if first < len(self.ids):
            yield self.part(first)


def mark_of(item: Item, marked_by: str) -> bytes:
    """What an item was chosen by, besides its state, age and data, as in `lua/lib/expected.lua`."""
    has_count = item.returns is not None and "returns" in marked_by
    holder = item.lease.holder if item.lease and "lease" in marked_by else b""
    return holder + b"\n" + (b"%d" % (item.returns or 0) if has_count else b"")


def token_of(data: bytes) -> bytes:
    """The token of data, as in `lua/lib/digest.lua`."""
    length, half = len(data), TOKEN_BYTES // 2
    if length > TOKEN_BYTES:
        data = data[:half] + data[-half:]
    return b"%d:%b" % (length, sha1(data, usedforsecurity=False).hexdigest().encode())


def hashed_bytes(token: bytes) -> int:
    """How much data the server hashes to compare it with a token; 0 for a digest."""
    length, _, digest = token.partition(b":")
    return min(int(length), TOKEN_BYTES) if digest else 0


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
