"""What chosen items must still be when an operation acts on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1

from rwq_cli.core.lua import FINGERPRINT_BYTES
from rwq_cli.core.model import State


@dataclass(frozen=True, slots=True)
class Expected:
    """What chosen items must still be: see `core/lua/lib/expected.lua`.

    Attributes:
        states: Their states; None for any.
        idle_s: Not used for this many seconds; None for any.
        fingerprints: By ID, the fingerprint of the data that were read; None for any data.
    """

    states: frozenset[State] | None = None
    idle_s: float | None = None
    fingerprints: Mapping[bytes, str] | None = None

    def args(self) -> tuple[object, ...]:
        """The arguments that scripts take for it."""
        states = ";".join(sorted(self.states or ()))
        idle = "" if self.idle_s is None else self.idle_s
        return states, idle, "0" if self.fingerprints is None else "1"

    def words(self, ids: Sequence[bytes]) -> Iterable[object]:
        """The IDs as scripts take them."""
        if self.fingerprints is None:
            return ids
        return (word for item_id in ids for word in (item_id, self.fingerprints.get(item_id, "")))


ANY = Expected()


def fingerprint(data: bytes) -> str:
    """A fingerprint of data, as scripts compare it: of larger data, of both ends and the length."""
    length, half = len(data), FINGERPRINT_BYTES // 2
    if length > FINGERPRINT_BYTES:
        data = data[:half] + data[-half:]
    return sha1(b"%d:" % length + data, usedforsecurity=False).hexdigest()
