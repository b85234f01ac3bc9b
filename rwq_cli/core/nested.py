"""Keys of our prefix, and those among them that belong to a queue named like them.

A queue may be called `jobs:item:mail`; its keys then look like items of `jobs`.
"""

from collections.abc import Iterable, Iterator

from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys, escape_glob

_SCAN_COUNT = 1000

_STRUCTURES = (b":queue", b":processing", b":cleaning", b":delayed", b":buried", b":returns")
_MEMBERS = (b":item:", b":lease:", b":leased_by_session:", b":result:")


def scan_keys(connection: Connection, keys: QueueKeys) -> Iterator[list[bytes]]:
    """All keys that begin with the queue's name and a colon, in pages, as SCAN gives them."""
    cursor: object = 0
    pattern = escape_glob(keys.name) + b":*"
    while True:
        cursor, page = connection.call("SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT)
        if page:
            yield page
        if int(cursor) == 0:  # type: ignore[call-overload]
            return


def may_be_structure(key: bytes) -> bool:
    """Whether a key is named like the list, zset or hash of some queue."""
    return key.endswith(_STRUCTURES)


def nested_names(connection: Connection, suspects: Iterable[bytes]) -> tuple[bytes, ...]:
    """The names of the queues whose structures are among some keys.

    Args:
        connection: The server.
        suspects: Keys of which `may_be_structure` is true, none of them our own structure.

    Raises:
        ServerError: The server refused, or was lost.
    """
    listed = list(suspects)
    types = connection.call_all([("TYPE", key) for key in listed])
    names = {
        key.rpartition(b":")[0]
        for key, kind in zip(listed, types, strict=True)
        if kind in (b"list", b"zset", b"hash")
    }
    return tuple(sorted(names))


def belongs_elsewhere(key: bytes, names: tuple[bytes, ...]) -> bool:
    """Whether a key is one of the queues with these names."""
    return any(
        key.startswith(tuple(name + member for member in _MEMBERS))
        or key in tuple(name + structure for structure in _STRUCTURES)
        for name in names
    )
