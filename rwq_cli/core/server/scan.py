"""All keys of a server, in short calls."""

from collections.abc import Iterator

from rwq_cli.core.server.connection import Connection

# Keys that one call looks at, which takes the server about a third of a millisecond.
SCAN_COUNT = 1000


def scan_keys(
    connection: Connection,
    pattern: bytes | None = None,
    *,
    kind: str | None = None,
    count: int = SCAN_COUNT,
) -> Iterator[list[bytes]]:
    """The keys of a server, page by page; a key may be returned twice, as SCAN may do.

    Args:
        connection: The server.
        pattern: Only keys that match this glob; None for all.
        kind: Only keys of this type, such as `list`; None for any.
        count: About how many keys one call looks at.

    Yields:
        Non-empty pages.
    """
    options: list[object] = ["COUNT", count]
    if pattern is not None:
        options += ["MATCH", pattern]
    if kind is not None:
        options += ["TYPE", kind]
    cursor = 0
    while True:
        cursor, page = connection.call("SCAN", cursor, *options)
        if page:
            yield page
        if cursor == 0:
            return
