"""Walking over all keys of a server in short calls."""

from collections.abc import Iterator

from rwq_cli.core.server.connection import Connection

# So many keys are looked at in one call, which takes the server about a third of a millisecond.
SCAN_COUNT = 1000


def scan_keys(
    connection: Connection,
    pattern: bytes | None = None,
    *,
    kind: str | None = None,
    count: int = SCAN_COUNT,
) -> Iterator[list[bytes]]:
    """The keys of a server, in pages as it gives them; some may be met twice, as SCAN says.

    Args:
        connection: The server.
        pattern: Only keys that match this glob of Redis's; None for all.
        kind: Only keys of this type, such as `list`; None for any.
        count: How many keys to look at in one call, about.

    Yields:
        Non-empty pages.
    """
    words: list[object] = [] if pattern is None else ["MATCH", pattern]
    words += ["COUNT", count]
    words += [] if kind is None else ["TYPE", kind]
    cursor: object = 0
    while True:
        cursor, page = connection.call("SCAN", cursor, *words)
        if page:
            yield page
        if int(cursor) == 0:  # type: ignore[call-overload]
            return
