"""The keys of a queue among all keys of a server.

A command scans the keys once, and tells by a key's prefix what it is.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import PER_ID_INFIXES, PER_QUEUE_SUFFIXES, owner_of_structure

_MEMBER = re.compile(rb"(?:\A|:)(?:%b):" % b"|".join(name.strip(b":") for name in PER_ID_INFIXES))


def ids_of(keys: Iterable[bytes], *prefixes: bytes) -> list[bytes]:
    """The IDs in those keys that have one of these prefixes: data, leases or results."""
    return [key[len(prefix) :] for key in keys for prefix in prefixes if key.startswith(prefix)]


def nested_names(queue: Queue, keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """The names of other queues that have a structure among these keys.

    rwq creates no queue with such a name (see `QueueKeys.check_name`), but other programs may.

    Args:
        queue: The queue.
        keys: Keys of its items, leases and results. The type of a key tells the structure of
            another queue from the data of an item whose ID ends alike.
    """
    suspects = [key for key in keys if key.endswith(PER_QUEUE_SUFFIXES)]
    types = queue.call_all([("TYPE", key) for key in suspects])
    pairs = zip(suspects, map(bytes.decode, types), strict=True)
    owners = (owner_of_structure(*each) for each in pairs)
    return tuple(sorted({owner for owner in owners if owner}))


def may_be_in_nested_queue(item_id: bytes) -> bool:
    """Whether a key that looks like a lease on this ID may belong to a queue with a longer name.

    A queue named `jobs:lease:x` has data at `jobs:lease:x:item:1`. To `jobs`, that looks like a
    lease without expiry and without an item.
    """
    return _MEMBER.search(item_id) is not None


def wrong_types(queue: Queue, keys: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
    """The keys that exist and are not strings, with their types."""
    for _, reply in queue.read_each("wrong_types", in_batches(keys)):
        for key, kind in zip(reply[::2], reply[1::2], strict=True):
            yield key, kind.decode()
