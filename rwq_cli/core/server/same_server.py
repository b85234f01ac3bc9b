"""Whether two addresses are of one server."""

import os
import socket
from contextlib import suppress
from urllib.parse import parse_qs, unquote, urlsplit


def is_same_server(one: str, other: str) -> bool:
    """Whether two URLs name the same server and database, regardless of user and TLS.

    Two lists of hosts name the same cluster or Sentinels if they have a host in common.
    """
    return not _endpoints(one).isdisjoint(_endpoints(other))


def _endpoints(url: str) -> set[tuple[object, ...]]:
    """Socket, or each host and port, then the database; a malformed URL equals only itself."""
    scheme, _, rest = url.partition("://")
    # Undo files of version 0.1 have a masked user and password here.
    place = rest if rest.startswith("/") else rest.rpartition("@")[2]
    try:
        if "+" in scheme:
            from rwq_cli.core.server.hosts import split_hosts

            hosts = split_hosts(url)
            service = (hosts.service,) if hosts.service else ()
            db = int(hosts.db or 0)
            return {(_host(host), port, *service, db) for host, port in hosts.hosts}
        parts = urlsplit(f"{scheme}://{place}")
        (name,) = parse_qs(parts.query).get("db", ["0"])[:1]
        if scheme == "unix":
            return {(os.path.realpath(unquote(parts.path)), int(name))}
        if "db=" not in parts.query:
            name = unquote(parts.path).strip("/") or "0"
        return {(_host(unquote(parts.hostname or "localhost")), parts.port or 6379, int(name))}
    except ValueError:
        return {(url,)}


def _host(name: str) -> str:
    """The host in lower case; every address of this machine's loopback is `localhost`."""
    name = name.lower()
    is_loopback = name == "::1"
    with suppress(OSError):
        # It also reads short forms such as 127.1.
        is_loopback = socket.inet_aton(name)[0] in (0, 127)
    return "localhost" if is_loopback else name
