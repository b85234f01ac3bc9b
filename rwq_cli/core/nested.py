"""The queue's keys, as a walk over all keys finds them, without those of queues named like them.

A queue may be called `jobs:item:mail`; its keys then look like items of `jobs`.
"""

from collections.abc import Iterator, Sequence

from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import STRUCTURES, QueueKeys, is_key_of
from rwq_cli.core.scanning import scan_keys


def nested_names(connection: Connection, keys: QueueKeys) -> tuple[bytes, ...]:
    """The names of the queues that begin with our name and a colon, and that have a structure.

    Raises:
        ServerError: The server refused, or was lost.
    """
    own = keys.structures
    return names_among(
        connection,
        [
            key
            for page in scan_keys(connection, keys.pattern)
            for key in page
            if key.endswith(STRUCTURES) and key not in own
        ],
    )


def names_among(connection: Connection, suspects: Sequence[bytes]) -> tuple[bytes, ...]:
    """The names of the queues whose structures are among these keys.

    Args:
        connection: The server.
        suspects: Keys that end like structures; one that holds a string is an item's data.

    Raises:
        ServerError: The server refused, or was lost.
    """
    types = connection.call_all([("TYPE", key) for key in suspects])
    names = {
        key.rpartition(b":")[0]
        for key, kind in zip(suspects, types, strict=True)
        if kind in (b"list", b"zset", b"hash")
    }
    return tuple(sorted(names))


def member_ids(
    connection: Connection,
    keys: QueueKeys,
    prefixes: tuple[bytes, ...],
    names: tuple[bytes, ...],
) -> Iterator[list[bytes]]:
    """The IDs in our keys with these prefixes, in pages; some may be met twice, as SCAN says.

    Args:
        connection: The server.
        keys: The queue.
        prefixes: Those of data, leases or results.
        names: Queues whose keys are left out: see `nested_names`.

    Raises:
        ServerError: The server refused, or was lost.
    """
    for page in scan_keys(connection, keys.pattern):
        ids = [
            key[len(prefix) :]
            for key in page
            for prefix in prefixes
            if key.startswith(prefix) and not (names and is_key_of(key, names))
        ]
        if ids:
            connection.meter.advance(len(ids))
            yield ids
