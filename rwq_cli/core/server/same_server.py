"""Whether two addresses are of one server."""

import os
import socket
from contextlib import suppress
from urllib.parse import parse_qs, unquote, urlsplit

# The first 12 bytes of an IPv4 address in IPv6, ::ffff:1.2.3.4 (RFC 4291, section 2.5.5.2).
_MAPPED_IPV4 = bytes(10) + b"\xff\xff"
# :: and ::1.
_LOCALHOST_IPV6 = (bytes(16), bytes(15) + b"\1")


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


def _host(name: str) -> str | bytes:
    """The address as bytes, or the name in lower case; names are not looked up.

    Every address of this machine's loopback is `localhost`, and so is the unspecified address,
    which connects to it.
    """
    name = name.lower()
    address = b""
    with suppress(OSError):
        address = socket.inet_pton(socket.AF_INET6, name).removeprefix(_MAPPED_IPV4)
    with suppress(OSError):
        # It also reads short forms such as 127.1.
        address = socket.inet_aton(name)
    if address in _LOCALHOST_IPV6 or (len(address) == 4 and address[0] in (0, 127)):
        return "localhost"
    return address or name
