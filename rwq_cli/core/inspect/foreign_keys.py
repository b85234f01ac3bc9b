"""The keys under a queue's prefix that are no items: whose they are, and which are nobody's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import MEMBERS, STRUCTURES, QueueKeys, is_key_of
from rwq_cli.core.server.scan import scan_keys

EXAMPLES = 5
# A server may have any number of names; of so many at most it is found out whose they are.
_OWNERS_MAX = 10_000
# Few or none of what is passed over is sent.
_SCAN_COUNT = 5000
# Without their colons.
_STRUCTURES = b"|".join(name.strip(b":") for name in STRUCTURES)
_MEMBERS = b"|".join(name.strip(b":") for name in MEMBERS)
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


def may_be_nested(item_id: bytes) -> bool:
    """Whether what looks like a lease on this ID may be a key of a queue with a longer name.

    The data of a queue named `jobs:lease:x` are at `jobs:lease:x:item:1`, which to `jobs` is a
    lease without expiry and without an item. An ID that only looks so is left alone with it.
    """
    return _MEMBER.search(item_id) is not None


@dataclass(slots=True)
class OddKeys:
    """What holds another type than it should where the keys of items, leases and results are.

    Attributes:
        wrong_type: Keys of them that hold another type than the protocol says; of results, also
            hashes that say nothing of one.
        shadowing: Queues whose keys look like items or leases of this one.
    """

    wrong_type: Tally = field(default_factory=Tally)
    shadowing: list[bytes] = field(default_factory=list)


def odd_keys(
    queue: Queue,
) -> OddKeys:
    """Look for them by their types, which the server sorts out itself."""
    members = (queue.keys.item_prefix, queue.keys.lease_prefix, queue.keys.old_lease_prefix)
    inside: dict[bytes, None] = {}
    odd: dict[bytes, None] = {}
    for kind in ("list", "zset", "hash", "set", "stream"):
        for page in scan_keys(queue.connection, queue.keys.pattern, kind=kind, count=_SCAN_COUNT):
            for key in page:
                if not key.startswith((*members, queue.keys.result_prefix)):
                    continue
                if kind in ("list", "zset") and key.endswith(STRUCTURES):
                    inside[key.rpartition(b":")[0]] = None
                elif not key.startswith(queue.keys.result_prefix):
                    odd[key] = None
    odd.update(
        dict.fromkeys(
            _no_results(
                queue,
            )
        )
    )
    found = OddKeys(shadowing=list(inside))
    names = list(inside)
    for key in odd:
        if not is_key_of(key, names):
            found.wrong_type.add(key)
    return found


def _no_results(
    queue: Queue,
) -> Iterator[bytes]:
    """The keys of results that hold what is none; nothing where this user may not read them."""
    from rwq_cli.core.items.results import A_RESULT, NOTHING, kinds_of

    prefix = len(queue.keys.result_prefix)
    for page in scan_keys(queue.connection, queue.keys.result_pattern, count=_SCAN_COUNT):
        ids = [key[prefix:] for key in page if not key.endswith(STRUCTURES)]
        own = [item_id for item_id in ids if not may_be_nested(item_id)]
        try:
            kinds = kinds_of(queue, own)
        except PermissionDenied:
            return
        for item_id, kind in zip(own, kinds, strict=True):
            if kind not in (NOTHING, A_RESULT):
                yield queue.keys.result(item_id)


def shadowed_by_name(
    queue: Queue,
) -> list[bytes]:
    """Queues among whose items or leases this queue's own keys are."""
    outer = [QueueKeys(queue.keys.name[:at]) for at in _inner_starts(queue.keys.name)]
    there = queue.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, there, strict=True) if count]


def _inner_starts(name: bytes) -> list[int]:
    return [match.start() for match in _INSIDE.finditer(name) if match.start() > 0]
