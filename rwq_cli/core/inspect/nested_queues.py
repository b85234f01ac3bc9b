"""Telling a queue's keys from those of nested queues.

A queue may be called `jobs:item:mail`; its keys then look like items of `jobs`.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import (
    PER_ID_INFIXES,
    PER_QUEUE_SUFFIXES,
    QueueKeys,
    is_key_of,
    owner_of_structure,
)
from rwq_cli.core.server.scan import scan_keys

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# Where the name of a queue may end in a key. A lookahead, because matches may overlap.
_NAME_ENDS = re.compile(
    rb"(?=%b)|(?=(?:%b)\Z)" % (b"|".join(PER_ID_INFIXES), b"|".join(PER_QUEUE_SUFFIXES)), re.DOTALL
)
# For each, one transaction reads the types of all its structures.
_OWNERS_PER_CALL = 50


def nested_names(queue: Queue) -> tuple[bytes, ...]:
    """The names of queues that begin with this queue's name and a colon, and have a structure."""
    own = queue.keys.structures
    return names_among(
        queue.connection,
        [
            key
            for page in scan_keys(queue.connection, queue.keys.pattern)
            for key in page
            if key.endswith(PER_QUEUE_SUFFIXES) and key not in own
        ],
    )


def names_among(connection: "Connection", suspects: Sequence[bytes]) -> tuple[bytes, ...]:
    """The names of the queues whose structures are among these keys.

    Args:
        connection: The server.
        suspects: Keys that end like structures; those of another type are not, such as an item's
            data.
    """
    types = connection.call_all([("TYPE", key) for key in suspects])
    pairs = zip(suspects, map(bytes.decode, types), strict=True)
    owners = (owner_of_structure(*each) for each in pairs)
    return tuple(sorted({owner for owner in owners if owner}))


def member_ids(
    queue: Queue, prefixes: tuple[bytes, ...], names: tuple[bytes, ...]
) -> Iterator[list[bytes]]:
    """The IDs in a queue's keys, in pages; SCAN may return one twice.

    Args:
        queue: The queue.
        prefixes: The prefixes of the keys: data, leases or results.
        names: Queues whose keys are skipped: see `nested_names`.
    """
    for page in scan_keys(queue.connection, queue.keys.pattern):
        ids = [
            key[len(prefix) :]
            for key in page
            for prefix in prefixes
            if key.startswith(prefix) and not (names and is_key_of(key, names))
        ]
        if ids:
            queue.progress.advance(len(ids))
            yield ids


def owners_of(keys: QueueKeys, item_id: bytes, prefixes: tuple[bytes, ...]) -> set[bytes]:
    """The names of other queues, existing or not, to which the keys of an ID may belong.

    Args:
        keys: The queue.
        item_id: The ID.
        prefixes: The prefixes of the keys: data, leases, results.
    """
    if b":" not in item_id and b":" + item_id not in PER_QUEUE_SUFFIXES:
        return set()
    own = len(keys.name) + 1
    return {
        key[: match.start()]
        for key in (prefix + item_id for prefix in prefixes)
        for match in _NAME_ENDS.finditer(key, own)
    }


def exclude_nested_queues(
    queue: Queue, ids: Collection[bytes], prefixes: tuple[bytes, ...]
) -> list[bytes]:
    """The IDs whose keys belong to no other queue that has a structure now.

    Such a queue may have been created since `nested_names`. Or its items moved from one list to the
    other during the walk over all keys, so that neither list was found. So all structures of each
    possible queue are checked at one instant. A producer sets an item's data before it pushes the
    ID, so a key belongs to this queue only if it seemed to a grace period ago, and still does.

    Args:
        queue: The queue.
        ids: The IDs.
        prefixes: The prefixes of the keys that would be changed: data, leases, results.
    """
    owners = {
        item_id: found for item_id in ids if (found := owners_of(queue.keys, item_id, prefixes))
    }
    alive: set[bytes] = set()
    for names in in_batches(set().union(*owners.values()), items_max=_OWNERS_PER_CALL):
        structures = [
            (name, *each) for name in names for each in QueueKeys(name).structures.items()
        ]
        types = queue.call_all([("TYPE", key) for _, key, _ in structures], atomic=True)
        alive.update(
            name
            for (name, _, expected), found in zip(structures, types, strict=True)
            if found.decode() == expected
        )
    return [item_id for item_id in ids if alive.isdisjoint(owners.get(item_id, ()))]
