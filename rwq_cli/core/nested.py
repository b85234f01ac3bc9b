"""The queue's keys, as a walk over all keys finds them, without those of queues named like them.

A queue may be called `jobs:item:mail`; its keys then look like items of `jobs`.
"""

from collections.abc import Iterator

from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys, escape_glob

_SCAN_COUNT = 1000

_STRUCTURES = (b":queue", b":processing", b":cleaning", b":delayed", b":buried", b":returns")
_MEMBERS = (b":item:", b":lease:", b":leased_by_session:", b":result:")


def nested_names(connection: Connection, keys: QueueKeys) -> tuple[bytes, ...]:
    """The names of the queues that begin with our name and a colon, and that have a structure.

    Raises:
        ServerError: The server refused, or was lost.
    """
    own = (keys.main, keys.processing, keys.cleaning, keys.delayed, keys.buried, keys.returns)
    suspects = [
        key
        for page in _scan(connection, keys)
        for key in page
        if key.endswith(_STRUCTURES) and key not in own
    ]
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
    for page in _scan(connection, keys):
        ids = [
            key[len(prefix) :]
            for key in page
            for prefix in prefixes
            if key.startswith(prefix) and not (names and _belongs(key, names))
        ]
        if ids:
            yield ids


def _scan(connection: Connection, keys: QueueKeys) -> Iterator[list[bytes]]:
    cursor: object = 0
    pattern = escape_glob(keys.name) + b":*"
    while True:
        cursor, page = connection.call("SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT)
        if page:
            yield page
        if int(cursor) == 0:  # type: ignore[call-overload]
            return


def _belongs(key: bytes, names: tuple[bytes, ...]) -> bool:
    """Whether a key is one of the queues with these names."""
    return any(
        key.startswith(tuple(name + member for member in _MEMBERS))
        or key in tuple(name + structure for structure in _STRUCTURES)
        for name in names
    )
