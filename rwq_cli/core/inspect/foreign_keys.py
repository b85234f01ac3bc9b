"""Keys under a queue's prefix that belong to another queue, or to no queue."""

import re
from dataclasses import dataclass, field

from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import PER_ID_INFIXES, PER_QUEUE_SUFFIXES, QueueKeys

EXAMPLES = 5
# Without their colons.
_SUFFIXES = b"|".join(name.strip(b":") for name in PER_QUEUE_SUFFIXES)
_INFIXES = b"|".join(name.strip(b":") for name in PER_ID_INFIXES)
_OWNED = re.compile(rb":(?:(?:%b)\Z|(%b):)" % (_SUFFIXES, _INFIXES), re.DOTALL)


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


def shadowed_by_name(queue: Queue) -> list[bytes]:
    """The queues that exist, and for which this queue's keys look like items or leases."""
    outer = [QueueKeys(name) for name in queue.keys.outer_names]
    exist = queue.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, exist, strict=True) if count]
