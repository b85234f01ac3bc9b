"""Whether two addresses are of one server."""

import os
import socket
from contextlib import suppress
from urllib.parse import parse_qs, unquote, urlsplit


def is_same_server(one: str, other: str) -> bool:
    """Whether two URLs name the same server and database, regardless of user and TLS."""
    return _place(one) == _place(other)


def _place(url: str) -> tuple[object, ...]:
    """Socket, or host and port, then the database; a malformed URL equals only itself."""
    scheme, _, rest = url.partition("://")
    # Undo files of version 0.1 have a masked user and password here.
    place = rest if rest.startswith("/") else rest.rpartition("@")[2]
    try:
        parts = urlsplit(f"{scheme}://{place}")
        (db,) = parse_qs(parts.query).get("db", ["0"])[:1]
        if scheme == "unix":
            return (os.path.realpath(unquote(parts.path)), int(db))
        if "db=" not in parts.query:
            db = unquote(parts.path).strip("/") or "0"
        return (_host(unquote(parts.hostname or "localhost")), parts.port or 6379, int(db))
    except ValueError:
        return (url,)


def _host(name: str) -> str:
    """The host in lower case; every address of this machine's loopback is `localhost`."""
    name = name.lower()
    is_loopback = name == "::1"
    with suppress(OSError):
        # It also reads short forms such as 127.1.
        is_loopback = socket.inet_aton(name)[0] in (0, 127)
    return "localhost" if is_loopback else name
