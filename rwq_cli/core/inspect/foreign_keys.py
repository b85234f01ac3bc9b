"""Keys under a queue's prefix that belong to another queue, or to no queue."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import KIND_NONE, KIND_RESULT, result_kinds
from rwq_cli.core.keys import (
    PER_ID_INFIXES,
    PER_QUEUE_SUFFIXES,
    QueueKeys,
    is_key_of,
    owner_of_structure,
)
from rwq_cli.core.server.scan import scan_keys

EXAMPLES = 5
# Few of the keys that SCAN examines have the requested type.
_SCAN_COUNT = 5000
# Without their colons.
_SUFFIXES = b"|".join(name.strip(b":") for name in PER_QUEUE_SUFFIXES)
_INFIXES = b"|".join(name.strip(b":") for name in PER_ID_INFIXES)
_OWNED = re.compile(rb":(?:(?:%b)\Z|(%b):)" % (_SUFFIXES, _INFIXES), re.DOTALL)
_MEMBER = re.compile(rb"(?:\A|:)(?:%b):" % _INFIXES)
_INSIDE = re.compile(rb":(?:%b)(?=:|\Z)" % _INFIXES)


@dataclass(slots=True)
class Tally:
    """A count with the first few examples.

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


class ForeignKeys:
    """Counts keys that begin with a queue's name but belong to no queue.

    The keys of a queue named `jobs:high` are not foreign: a key that looks like part of a queue is
    counted under that queue's name until the queue is known. These names are kept.

    Args:
        keys: The queue.
    """

    def __init__(self, keys: QueueKeys) -> None:
        self._keys = keys
        self._unowned = Tally()
        self._queues: set[bytes] = set()
        # By name, the keys of what is no queue as far as is known.
        self._leftovers: dict[bytes, Tally] = {}

    def add(self, key: bytes) -> None:
        """Count a key."""
        match = _OWNED.search(key, len(self._keys.name) + 1)
        if match is None:
            self._unowned.add(key)
            return
        owner = key[: match.start()]
        if match[1] in (None, b"item"):
            # A structure or an item makes a queue; a lease that was left over does not.
            self._queues.add(owner)
            self._leftovers.pop(owner, None)
        elif owner not in self._queues:
            self._leftovers.setdefault(owner, Tally()).add(key)

    def unowned(self) -> Tally:
        """The keys that belong to no queue."""
        found = Tally(self._unowned.count, list(self._unowned.examples))
        for tally in self._leftovers.values():
            found.count += tally.count
            found.examples += tally.examples[: EXAMPLES - len(found.examples)]
        return found


def may_be_in_nested_queue(item_id: bytes) -> bool:
    """Whether a key that looks like a lease on this ID may belong to a queue with a longer name.

    A queue named `jobs:lease:x` has data at `jobs:lease:x:item:1`. To `jobs`, that looks like a
    lease without expiry and without an item. Whether that queue has a structure does not matter:
    its items may be in no list, and such a lease is never counted or reported. It is deleted by a
    purge alone, and only if it expires, which data never does.
    """
    return _MEMBER.search(item_id) is not None


@dataclass(slots=True)
class WrongKeys:
    """Item, lease and result keys of the wrong type.

    Attributes:
        wrong_type: Keys of the wrong type, including result keys that are not results.
        shadowing: Queues whose keys look like items, leases or results of this queue.
    """

    wrong_type: Tally = field(default_factory=Tally)
    shadowing: list[bytes] = field(default_factory=list)


def find_wrong_keys(queue: Queue) -> WrongKeys:
    """Find keys of the wrong type by scanning for each type, so that SCAN skips the others."""
    keys = queue.keys
    members = keys.id_prefixes
    shadowing: dict[bytes, None] = {}
    wrong: dict[bytes, None] = {}
    for kind in ("list", "zset", "hash", "set", "stream"):
        for page in scan_keys(queue.connection, keys.pattern, kind=kind, count=_SCAN_COUNT):
            for key in page:
                if not key.startswith((*members, keys.result_prefix)):
                    continue
                if owner := owner_of_structure(key, kind):
                    shadowing[owner] = None
                elif not key.startswith(keys.result_prefix):
                    wrong[key] = None
    wrong.update(dict.fromkeys(_invalid_results(queue)))
    found = WrongKeys(shadowing=list(shadowing))
    for key in wrong:
        if not is_key_of(key, found.shadowing):
            found.wrong_type.add(key)
    return found


def _invalid_results(queue: Queue) -> Iterator[bytes]:
    """The result keys that are not results; none if this user may not read them."""
    prefix = len(queue.keys.result_prefix)
    for page in scan_keys(queue.connection, queue.keys.result_pattern, count=_SCAN_COUNT):
        ids = [key[prefix:] for key in page if not key.endswith(PER_QUEUE_SUFFIXES)]
        own = [item_id for item_id in ids if not may_be_in_nested_queue(item_id)]
        try:
            kinds = result_kinds(queue, own)
        except PermissionDenied:
            return
        for item_id, kind in zip(own, kinds, strict=True):
            if kind not in (KIND_NONE, KIND_RESULT):
                yield queue.keys.result(item_id)


def shadowed_by_name(queue: Queue) -> list[bytes]:
    """The queues for which this queue's keys look like items, leases or results."""
    name = queue.name
    outer = [QueueKeys(name[: match.start()]) for match in _INSIDE.finditer(name, 1)]
    exist = queue.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, exist, strict=True) if count]
