"""Scanning the keys of a server, and the members of large keys."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# Keys that one call examines, which takes the server some five milliseconds: the cursor of the next
# call is in the reply, so over a slow line each call costs a round trip.
SCAN_COUNT = 12_000


def scan_keys(
    connection: "Connection",
    pattern: bytes | None = None,
    *,
    kind: str | None = None,
    count: int = SCAN_COUNT,
) -> Iterator[list[bytes]]:
    """Non-empty pages of the keys of a server that match a glob or have a type, some of them twice.

    They are those of all primaries of a cluster, if the connection is not that of a queue.
    """
    options: list[object] = ["COUNT", count]
    if pattern is not None:
        options += ["MATCH", pattern]
    if kind is not None:
        options += ["TYPE", kind]
    yield from filter(None, connection.scan(("SCAN",), *options))


def scan_members(connection: "Connection", command: str, key: bytes) -> Iterator[list[bytes]]:
    """Non-empty pages of a sorted set (`ZSCAN`) or of a hash's fields (`HSCAN`), some twice."""
    for page in connection.scan((command, key), "COUNT", SCAN_COUNT):
        # A flat list of members and scores, or of fields and values.
        if page:
            yield page[::2]
