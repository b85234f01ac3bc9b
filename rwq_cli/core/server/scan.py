"""Scanning the keys of a server, and the members of large keys."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


# Keys that one call examines, which takes the server about two milliseconds: the cursor of the next
# call is in the reply, so over a slow line each call costs a round trip.
SCAN_COUNT = 5000


def scan_keys(
    connection: "Connection",
    pattern: bytes | None = None,
    *,
    kind: str | None = None,
    count: int = SCAN_COUNT,
) -> Iterator[list[bytes]]:
    """Scan the keys of a server in pages; like SCAN, this may return a key twice.

    Args:
        connection: The server; all primaries of a cluster, if it is not that of a queue.
        pattern: Only keys that match this glob; None for all.
        kind: Only keys of this type, such as `list`; None for any.
        count: About how many keys one call examines.

    Yields:
        Non-empty pages.
    """
    options: list[object] = ["COUNT", count]
    if pattern is not None:
        options += ["MATCH", pattern]
    if kind is not None:
        options += ["TYPE", kind]
    yield from filter(None, connection.scan(("SCAN",), *options))


def scan_members(connection: "Connection", command: str, key: bytes) -> Iterator[list[bytes]]:
    """Scan a sorted set or a hash in pages; like the command, this may return a member twice.

    Args:
        connection: The connection of the queue.
        command: `ZSCAN` for the members of a sorted set, `HSCAN` for the fields of a hash.
        key: The key.

    Yields:
        Non-empty pages.
    """
    for page in connection.scan((command, key), "COUNT", SCAN_COUNT):
        # A flat list of members and scores, or of fields and values.
        if page:
            yield page[::2]
