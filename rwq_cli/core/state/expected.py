"""The conditions that items must still meet when an operation acts on them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha1
from itertools import chain
from typing import Any, NamedTuple

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


# To compare even short data takes as long as to hash so much.
_COMPARED_BYTES_MIN = 2048


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
