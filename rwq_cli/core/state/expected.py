"""The conditions that items must still meet when an operation acts on them, after a first look."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha1
from typing import Any, NamedTuple

from rwq_cli.core.lua import FINGERPRINT_BYTES
from rwq_cli.core.model import State
from rwq_cli.core.state.rules import Facts


class Expected(NamedTuple):
    """The conditions that chosen items must still meet: see `core/lua/lib/expected.lua`.

    Attributes:
        states: The expected states; None for any.
        idle_s: The minimum idle time, seconds; None for any.
        fingerprints: By ID, the fingerprint of the data that was read (`repair` compares digests
            instead, see `FirstLook`); None for any data.
        looked_twice: The IDs that looked broken twice, a grace period apart, when they were chosen.
            Any other item that looks broken when the operation acts may be in transit.
    """

    states: frozenset[State] | None = None
    idle_s: float | None = None
    fingerprints: Mapping[bytes, Any] | None = None
    looked_twice: Collection[bytes] = frozenset()

    def args(self) -> dict[str, Any]:
        """The script arguments."""
        return {
            "states": ";".join(sorted(self.states or ())),
            "idle_min": self.idle_s,
            "has_fingerprints": self.fingerprints is not None,
        }

    def id_args(self, ids: Sequence[bytes]) -> Iterable[object]:
        """The script arguments for the IDs: each with its fingerprint, if there are any."""
        if self.fingerprints is None:
            return ids
        fingerprints = self.fingerprints
        return (arg for item_id in ids for arg in (item_id, fingerprints.get(item_id, "")))


ANY = Expected()


def fingerprint(data: bytes) -> str:
    """The fingerprint of data, as in `lua/lib/expected.lua`."""
    length, half = len(data), FINGERPRINT_BYTES // 2
    if length > FINGERPRINT_BYTES:
        data = data[:half] + data[-half:]
    return sha1(b"%d:" % length + data, usedforsecurity=False).hexdigest()


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
        """Note an item, if nobody and no guard protects it."""
        if facts.digest:
            self.digests.setdefault(facts.item_id, facts.digest)

    def is_same(self, facts: Facts) -> bool:
        """Whether an item has the data that was seen, if any, and was not pushed since."""
        seen = self.digests.get(facts.item_id)
        return seen is None or (facts.digest == seen and (facts.pushed_ms or 0) <= self.at_ms)
