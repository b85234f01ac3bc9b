"""Server addresses, and connections to them."""

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.server.connection import CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S, Connection
from rwq_cli.core.server.link import LinkOptions
from rwq_cli.core.server.masking import mask_url
from rwq_cli.core.server.timeouts import PATIENCE_S

_SCHEMES = (
    *("redis", "rediss", "unix"),
    *("redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"),
)
_EXAMPLES = "use redis://host:6379/0, rediss://host, unix:///path/to/socket or local:"
_EXAMPLES_OF_HOSTS = "use redis+sentinel://h1:26379,h2/SERVICE/0 or redis+cluster://h1:6379,h2"
_OPTIONS = ("db", "username", "password")
_TLS_OPTIONS = (
    *("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_cert_reqs", "ssl_check_hostname"),
)


class Server(NamedTuple):
    """The address of a server, and the credentials for it.

    Attributes:
        url: `redis://`, `rediss://` or `unix://`, optionally with user, password and database;
            `redis+sentinel://h1,h2/SERVICE/DB` or `redis+cluster://h1,h2`, or the same with
            `rediss`.
        password: The password if the URL has none; None if there is none.
        password_first: Prefer `password` to the password in the URL.
        tls_ca: A file with the certificate authorities to trust; None for the system's.
        tls_cert: A file with the client's certificate; None if there is none.
        tls_key: A file with the client's key; None if there is none, or if it is in `tls_cert`.
        tls_insecure: Accept any server certificate.
        connect_timeout_s: The timeout for connecting, seconds.
        reply_timeout_s: The timeout for one reply, seconds.
        patience_s: How long a command waits for a failover, or until a queue has moved to another
            node of a cluster, seconds.
        sentinel_password: The password of the Sentinels if the URL has none; None if there is none.
    """

    url: str
    password: str | None = None
    password_first: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_insecure: bool = False
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    reply_timeout_s: float = REPLY_TIMEOUT_S
    patience_s: float = PATIENCE_S
    sentinel_password: str | None = None

    def __repr__(self) -> str:
        """The address, with any password in the URL masked."""
        return f"<Server {mask_url(self.url)}>"


def connect(server: Server) -> Connection:
    """Prepare a connection; it is made when the first command is sent.

    Raises:
        InvalidArgument: The URL is malformed, or an option in it is not supported.
    """
    name = mask_url(server.url)
    scheme, separator, _ = server.url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise InvalidArgument(f"not a server URL: {name}", _EXAMPLES)
    if "+" in scheme:
        return _connect_following(server, name)
    client = redis.Redis(connection_pool=redis.ConnectionPool(**_pool_settings(server, name)))
    return Connection(
        client,
        name,
        address=_address(scheme, client.connection_pool.connection_kwargs),
        connect_timeout_s=server.connect_timeout_s,
        reply_timeout_s=server.reply_timeout_s,
    )


def _connect_following(server: Server, name: str) -> Connection:
    """A connection to the primary that Sentinel names, or to a cluster."""
    from rwq_cli.core.server.following import SharedState
    from rwq_cli.core.server.hosts import split_hosts

    scheme = server.url.partition("://")[0]
    if "#" in server.url:
        raise _malformed(name, "it has a #", "write %23 for a # in a password")
    try:
        url = split_hosts(server.url)
    except ValueError:
        raise _malformed(name, "a host or port cannot be read", _EXAMPLES_OF_HOSTS) from None
    if not url.hosts:
        raise _malformed(name, "it names no host", _EXAMPLES_OF_HOSTS)
    settings = _pool_settings(server._replace(url=url.single), name)
    for option in ("host", "port"):
        settings.pop(option, None)
    options = LinkOptions(server.connect_timeout_s, server.reply_timeout_s)
    shared = SharedState(
        name,
        f"{scheme}://{url.place}",
        options,
        server.patience_s,
        lambda reply_s: connect(
            server._replace(
                connect_timeout_s=min(server.connect_timeout_s, reply_s),
                reply_timeout_s=reply_s,
                # The other thread must not wait for a failover.
                patience_s=0,
            )
        ),
    )
    if scheme.endswith("+sentinel"):
        from rwq_cli.core.server.sentinel import SentinelConnection, SentinelLocator

        if not url.service:
            raise _malformed(name, "it names no service", _EXAMPLES_OF_HOSTS)
        own = url.own.get("sentinel_password", server.sentinel_password)
        credentials = (url.own.get("sentinel_username"), own)
        locator = SentinelLocator(url.hosts, url.service, name, settings, credentials, options)
        return SentinelConnection(shared, locator)
    from rwq_cli.core.server.cluster import ClusterConnection, Topology

    if settings.pop("db", 0):
        raise _malformed(name, "a cluster has no databases", "leave the number out")
    return ClusterConnection(shared, Topology(url.hosts, name, settings, options))


def _address(scheme: str, settings: dict[str, Any]) -> str:
    """The URL of the server with these settings, without user and password."""
    db = settings.get("db") or 0
    if "path" in settings:
        return f"{scheme}://{quote(settings['path'])}{f'?db={db}' if db else ''}"
    host = settings.get("host") or "localhost"
    host = f"[{host}]" if ":" in host else quote(host)
    return f"{scheme}://{host}:{settings.get('port') or 6379}/{db}"


def _pool_settings(server: Server, name: str) -> dict[str, Any]:
    """The settings of a pool that makes the connections to a server."""
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
        redis.ConnectionPool(**settings).make_connection()
    except (TypeError, ValueError, redis.RedisError):
        raise _malformed(name, "an option has a value that cannot be used") from None
    return settings


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
