"""The keys under a queue's prefix that are no items: whose they are, and which are nobody's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys

EXAMPLES = 5
# A server may have any number of names; of so many at most it is found out whose they are.
_OWNERS_MAX = 10_000
# Few or none of what is passed over is sent.
_SCAN_COUNT = 5000
_STRUCTURES = b"queue|processing|cleaning|delayed|buried|returns"
_MEMBERS = b"item|lease|leased_by_session|result"
_OWNED = re.compile(rb":(?:(?:%b)\Z|(%b):)" % (_STRUCTURES, _MEMBERS), re.DOTALL)
_MEMBER = re.compile(rb"(?:\A|:)(?:%b):" % _MEMBERS)
_INSIDE = re.compile(rb":(?:%b)(?=:|\Z)" % _MEMBERS)


@dataclass(slots=True)
class Tally:
    """How many, with the first few.

    Attributes:
        count: How many.
        examples: Up to five of them.
    """

    count: int = 0
    examples: list[bytes] = field(default_factory=list)

    def add(self, name: bytes) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < EXAMPLES and name not in self.examples:
            self.examples.append(name)


class Strangers:
    """Sorts keys that begin with a queue's name and are none of its own.

    A queue named `jobs:high` is a neighbour of `jobs`, and its keys are its own: what looks like
    part of a queue is asked for by that queue's name once all keys were met.
    """

    def __init__(self, keys: QueueKeys) -> None:
        self._keys = keys
        self._nobodys = Tally()
        self._owned: dict[bytes, Tally] = {}
        self._queues: set[bytes] = set()

    def take(self, key: bytes) -> None:
        """Take note of a key."""
        match = _OWNED.search(key, len(self._keys.name) + 1)
        owner = key[: match.start()] if match else b""
        if match is None or (owner not in self._owned and len(self._owned) >= _OWNERS_MAX):
            self._nobodys.add(key)
            return
        self._owned.setdefault(owner, Tally()).add(key)
        if match[1] in (None, b"item"):
            # A structure or an item makes a queue; a lease that was left over does not.
            self._queues.add(owner)

    def foreign(self) -> Tally:
        """The keys that belong to no queue."""
        found = Tally(self._nobodys.count, list(self._nobodys.examples))
        for owner, tally in self._owned.items():
            if owner not in self._queues:
                found.count += tally.count
                found.examples += tally.examples[: EXAMPLES - len(found.examples)]
        return found


def may_be_anothers(item_id: bytes) -> bool:
    """Whether what looks like a lease on this ID may be a key of a queue with a longer name.

    The data of a queue named `jobs:lease:x` are at `jobs:lease:x:item:1`, which to `jobs` is a
    lease without expiry and without an item. An ID that only looks so is left alone with it.
    """
    return _MEMBER.search(item_id) is not None


@dataclass(slots=True)
class OddKeys:
    """What holds no string where the keys of items and leases are.

    Attributes:
        wrong_type: Keys of items and leases that hold another type than the protocol says.
        shadowing: Queues whose keys look like items or leases of this one.
    """

    wrong_type: Tally = field(default_factory=Tally)
    shadowing: list[bytes] = field(default_factory=list)


def odd_keys(connection: Connection, keys: QueueKeys) -> OddKeys:
    """Look for them by their types, which the server sorts out itself.

    Raises:
        ServerError: The server refused, or was lost.
    """
    members = (keys.item_prefix, keys.lease_prefix, keys.old_lease_prefix)
    inside: dict[bytes, None] = {}
    odd: dict[bytes, None] = {}
    for kind in ("list", "zset", "hash", "set", "stream"):
        for page in _scan(connection, keys.pattern, kind):
            for key in page:
                if not key.startswith((*members, keys.result_prefix)):
                    continue
                owner, _, tail = key.rpartition(b":")
                if kind in ("list", "zset") and tail in _STRUCTURES.split(b"|"):
                    inside[owner] = None
                elif not key.startswith(keys.result_prefix):
                    odd[key] = None
    found = OddKeys(shadowing=list(inside))
    theirs = tuple(
        name + b":" + member + b":" for name in inside for member in _MEMBERS.split(b"|")
    )
    own = {key for name in inside for key in QueueKeys(name).structures}
    for key in odd:
        if key not in own and not key.startswith(theirs):
            found.wrong_type.add(key)
    return found


def shadowed_by_name(connection: Connection, keys: QueueKeys) -> list[bytes]:
    """Queues among whose items or leases this queue's own keys are.

    Raises:
        ServerError: The server refused, or was lost.
    """
    outer = [QueueKeys(keys.name[:at]) for at in _inner_starts(keys.name)]
    there = connection.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, there, strict=True) if count]


def _inner_starts(name: bytes) -> list[int]:
    return [match.start() for match in _INSIDE.finditer(name) if match.start() > 0]


def _scan(connection: Connection, pattern: bytes, kind: str) -> Iterator[list[bytes]]:
    cursor: object = 0
    while True:
        cursor, page = connection.call(
            "SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT, "TYPE", kind
        )
        if page:
            yield page
        if int(cursor) == 0:  # type: ignore[call-overload]
            return
