"""Server addresses, and connections to them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from rwq_cli.core.errors import InvalidArgument, NotSupported
from rwq_cli.core.server.connection import CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S, Connection
from rwq_cli.core.server.masking import mask_url

_EXAMPLES = "use redis://host:6379/0, rediss://host, unix:///path/to/socket or local:"
_OPTIONS = ("db", "username", "password")
_TLS_OPTIONS = (
    *("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_cert_reqs", "ssl_check_hostname"),
)


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a server, and the credentials for it.

    Attributes:
        url: `redis://`, `rediss://` or `unix://`, optionally with user, password and database.
        password: The password if the URL has none; None for none.
        password_first: Prefer `password` to the password in the URL.
        tls_ca: A file with the certificate authorities to trust; None for the system's.
        tls_cert: A file with the client's certificate; None for none.
        tls_key: A file with the client's key; None for none, or if it is in `tls_cert`.
        tls_insecure: Accept any server certificate.
        connect_timeout_s: The timeout for connecting, seconds.
        reply_timeout_s: The timeout for one reply, seconds.
    """

    url: str = field(repr=False)
    password: str | None = field(default=None, repr=False)
    password_first: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_insecure: bool = False
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    reply_timeout_s: float = REPLY_TIMEOUT_S


def connect(server: Server) -> Connection:
    """Prepare a connection; it is made when the first command is sent.

    Raises:
        InvalidArgument: The URL is malformed, or an option in it is not supported.
        NotSupported: The URL names a kind of server that this version does not support.
    """
    name = mask_url(server.url)
    scheme, separator, _ = server.url.partition("://")
    make_client = _CLIENTS.get(scheme) if separator else None
    if make_client is None:
        raise InvalidArgument(f"not a server URL: {name}", _EXAMPLES)
    client = make_client(server, name)
    return Connection(
        client,
        name,
        address=_address(scheme, client.connection_pool.connection_kwargs),
        connect_timeout_s=server.connect_timeout_s,
        reply_timeout_s=server.reply_timeout_s,
    )


def _address(scheme: str, settings: dict[str, Any]) -> str:
    """The URL of the server with these settings, without user and password."""
    db = settings.get("db") or 0
    if "path" in settings:
        return f"{scheme}://{quote(settings['path'])}{f'?db={db}' if db else ''}"
    host = settings.get("host") or "localhost"
    host = f"[{host}]" if ":" in host else quote(host)
    return f"{scheme}://{host}:{settings.get('port') or 6379}/{db}"


def _standalone(server: Server, name: str) -> redis.Redis:
    """A client of a standalone server."""
    settings = _settings(server, name)
    if settings.get("password") is None or (server.password_first and server.password is not None):
        settings["password"] = server.password
    settings.update(_tls_files(server, name))
    # A retried command may run twice; report a lost reply instead.
    settings.update(protocol=2, retry=Retry(NoBackoff(), 0))
    # Saves two round trips for each connection; before redis-py 7.2 it had two other names.
    unnamed = ("driver_info",) if hasattr(redis, "DriverInfo") else ("lib_name", "lib_version")
    settings.update(dict.fromkeys(unnamed))
    try:
        pool = redis.ConnectionPool(**settings)
        pool.make_connection()
    except (TypeError, ValueError, redis.RedisError):
        raise _malformed(name, "an option has a value that cannot be used") from None
    return redis.Redis(connection_pool=pool)


def _sentinel(_: Server, name: str) -> redis.Redis:
    """A client of the primary; Sentinel gives its address for each new connection."""
    return _not_yet("Sentinel", name)


def _cluster(_: Server, name: str) -> redis.Redis:
    """A client of the node that holds the queue's slot."""
    return _not_yet("Redis Cluster", name)


def _not_yet(kind: str, name: str) -> redis.Redis:
    raise NotSupported(
        f"{kind} is not supported by this version: {name}",
        "give the address of one server: redis://host:port/db",
    )


# Makes the client for each scheme; its pool makes the connections.
_CLIENTS: dict[str, Callable[[Server, str], redis.Redis]] = {
    "redis": _standalone,
    "rediss": _standalone,
    "unix": _standalone,
    "redis+sentinel": _sentinel,
    "redis+cluster": _cluster,
}


def _malformed(name: str, why: str | None = None, hint: str = _EXAMPLES) -> InvalidArgument:
    return InvalidArgument(f"malformed server URL {name}{f': {why}' if why else ''}", hint)


def _settings(server: Server, name: str) -> dict[str, Any]:
    """The URL's options, as redis-py's settings."""
    try:
        parts = urlsplit(server.url)
        _ = parts.port
        options = parse_qs(parts.query, keep_blank_values=True)
        settings: dict[str, Any] = dict(parse_url(server.url))  # type: ignore[no-untyped-call]
    except ValueError:
        # urllib's message may contain the password.
        why = "its host, port or database cannot be read"
        hint = "use redis://user:password@host:6379/0, with % escapes in the password"
        raise _malformed(name, why, hint) from None
    if parts.fragment:
        raise _malformed(name, "it has a #", "write %23 for a # in a password")
    known = _OPTIONS + _TLS_OPTIONS if parts.scheme == "rediss" else _OPTIONS
    if not options.keys() <= set(known):
        hint = f"supported options: {', '.join(known)}"
        raise InvalidArgument(f"the server URL {name} has an option that is not supported", hint)
    if parts.scheme == "unix":
        if not settings.get("path"):
            raise _malformed(name, "it names no socket", "use unix:///path/to/socket")
        return settings
    database = unquote(parts.path).strip("/")
    if database and not database.isdecimal():
        raise _malformed(name, "its database is not a number", "use redis://host:6379/0")
    return {"socket_keepalive": True, **settings}


def _tls_files(server: Server, name: str) -> dict[str, Any]:
    """The TLS options that are not in the URL."""
    files = {
        "ssl_ca_certs": server.tls_ca,
        "ssl_certfile": server.tls_cert,
        "ssl_keyfile": server.tls_key,
    }
    options: dict[str, Any] = {option: str(file) for option, file in files.items() if file}
    if server.tls_insecure:
        options.update(ssl_cert_reqs="none", ssl_check_hostname=False)
    if options and not server.url.startswith("rediss://"):
        raise InvalidArgument(
            f"TLS options need a rediss:// URL, not {name}", "change the URL or drop them"
        )
    for file in files.values():
        if file is not None and not file.is_file():
            raise InvalidArgument(f"no such file: {file}", "check the TLS options")
    return options
