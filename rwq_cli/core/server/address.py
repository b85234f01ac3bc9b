"""From a server's URL to a connection, and the words for it that may be printed."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from rwq_cli.core.errors import InvalidArgument, NotSupported
from rwq_cli.core.server.connection import Connection

CONNECT_TIMEOUT_S = 5.0
# Longer than any single call of ours, and than one slice of a wait.
REPLY_TIMEOUT_S = 60.0

_LOOKS_LIKE = "it looks like redis://host:6379/0, rediss://host, unix:///path/to/socket or local:"
_NO_LIBRARY_NAME = {"lib_name": None, "lib_version": None}
_SCHEMES = ("redis", "rediss", "unix")
_LATER = {"redis+sentinel": "Sentinel", "redis+cluster": "Redis Cluster"}


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is and how to be let in.

    Attributes:
        url: `redis://`, `rediss://` or `unix://`, with user, password and database if any.
        password: Used where the URL has none; None for none.
        password_first: It is used even where the URL has one.
        tls_ca: A file with the certificate authorities to trust; None for the system's.
        tls_cert: A file with the client's certificate; None for none.
        tls_key: A file with the client's key; None for none, or if it is in `tls_cert`.
        tls_insecure: Accept any server certificate.
    """

    url: str = field(repr=False)
    password: str | None = field(default=None, repr=False)
    password_first: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_insecure: bool = False


def mask_url(url: str) -> str:
    """The URL as it may be shown: its password replaced by `***`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        # No URL of ours, but it may hold a password all the same.
        return re.sub(r":[^:@]*@", ":***@", url)
    # The last @ ends the credentials: a password may hold an unescaped @, slash or question mark.
    credentials, at, host = rest.rpartition("@")
    if at and credentials.startswith("/"):
        credentials, at, host = "", "", rest
    host, mark, query = host.partition("?")
    if at:
        user = credentials.partition(":")[0]
        host = f"{user}:***@{host}" if ":" in credentials else f"{user}@{host}"
    pairs = [
        f"{name}=***" if unquote(name) == "password" else f"{name}{sign}{value}"
        for name, sign, value in (pair.partition("=") for pair in query.split("&"))
    ]
    return f"{scheme}://{host}{mark}{'&'.join(pairs)}"


def connect(server: Server) -> Connection:
    """Prepare a connection; it is made when the first command is sent.

    Args:
        server: Where, and with which credentials.

    Raises:
        InvalidArgument: The URL is malformed, or an option in it is unknown.
        NotSupported: The URL names a kind of server that this version does not speak to.
    """
    settings = _settings(server)
    pool_options: dict[str, Any] = {
        "protocol": 2,
        # A retried script runs twice; a lost reply is told to the user instead.
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": REPLY_TIMEOUT_S,
        **_greeting(server),
        **settings,
    }
    name = mask_url(server.url)
    try:
        pool = redis.ConnectionPool(**pool_options)
        pool.make_connection()
        client = redis.Redis(connection_pool=pool, single_connection_client=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"the server's URL {name} has an option that cannot be used: {error}", "take it out"
        )
    return Connection(client, name)


def _greeting(server: Server) -> dict[str, Any]:
    """What a new connection says first."""
    # A TLS server may send session tickets unasked, right after the handshake. redis-py takes them
    # for the rest of another's answer and gives up, unless it has spoken before it looks.
    if server.url.startswith("rediss://"):
        return {}
    # Two round trips less at every start; before redis-py 7.2 it had two other names.
    return {"driver_info": None} if hasattr(redis, "DriverInfo") else _NO_LIBRARY_NAME


def _settings(server: Server) -> dict[str, Any]:
    masked = mask_url(server.url)
    scheme = server.url.partition("://")[0]
    if scheme in _LATER:
        raise NotSupported(
            f"{_LATER[scheme]} is not supported by this version: {masked}",
            "give the address of one server: redis://host:port/db",
        )
    if "://" not in server.url or scheme not in _SCHEMES:
        raise InvalidArgument(
            f"not a server's URL: {masked}",
            _LOOKS_LIKE,
        )
    try:
        parts = urlsplit(server.url)
        _ = parts.port
        settings: dict[str, Any] = dict(parse_url(server.url))  # type: ignore[no-untyped-call]
    except ValueError:
        # What urllib says can hold the password.
        raise InvalidArgument(f"malformed server URL {masked}", _LOOKS_LIKE) from None
    if scheme == "unix":
        if not settings.get("path"):
            raise InvalidArgument(
                f"malformed server URL {masked}: it names no socket", "unix:///path/to/socket"
            )
    else:
        database = unquote(parts.path).strip("/")
        if database and not database.isdecimal():
            raise InvalidArgument(
                f"malformed server URL {masked}: the database {database!r} is not a number",
                "it looks like redis://host:6379/0",
            )
    if server.password is not None and (server.password_first or settings.get("password") is None):
        settings["password"] = server.password
    if scheme == "rediss":
        settings.update(_tls(server))
    elif server.tls_ca or server.tls_cert or server.tls_key or server.tls_insecure:
        raise InvalidArgument(
            f"TLS options need a rediss:// URL, not {masked}", "change the URL or drop them"
        )
    return settings


def _tls(server: Server) -> dict[str, Any]:
    for file in (server.tls_ca, server.tls_cert, server.tls_key):
        if file is not None and not file.is_file():
            raise InvalidArgument(f"no such file: {file}", "check the TLS options")
    options: dict[str, Any] = {
        "ssl_ca_certs": str(server.tls_ca) if server.tls_ca else None,
        "ssl_certfile": str(server.tls_cert) if server.tls_cert else None,
        "ssl_keyfile": str(server.tls_key) if server.tls_key else None,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if server.tls_insecure:
        options.update(ssl_cert_reqs="none", ssl_check_hostname=False)
    return options
