"""Server addresses, and connections to them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis._parsers import _HiredisParser
from redis.backoff import NoBackoff
from redis.connection import DefaultParser, to_bool
from redis.retry import Retry

from rwq_cli.core.clock import checked_s
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.link import Parser, in_time
from rwq_cli.core.server.patience import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.core.server.urls import Address, full_url, mask_url, parse_address

_KINDS = ("", "+sentinel", "+cluster")
_SCHEMES = ("unix", *(base + kind for base in ("redis", "rediss") for kind in _KINDS))
_EXAMPLES = "use host:6379, redis://host:6379/0, rediss://host, unix:///path/to/socket or local:"
_EXAMPLE = "use redis://user:password@host:6379/0, with % escapes in the password"
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
            `rediss`. `valkey` and `valkeys` are the same schemes; `host` or `host:port` is
            `redis://`.
        password: The password if the URL has none, or what gives it for each connection; None if
            there is none.
        password_first: Prefer `password` to the password in the URL.
        tls_ca: A file with the certificate authorities to trust; None for the system's.
        tls_cert: A file with the client's certificate; None if there is none.
        tls_key: A file with the client's key; None if there is none, or if it is in `tls_cert`.
        tls_insecure: Accept any server certificate.
        tls_pass_phrase: Gives the pass phrase of an encrypted key, once; None if it is in the URL.
        connect_timeout_s: The timeout for connecting, seconds.
        reply_timeout_s: The timeout for one reply, seconds.
        patience_s: How long a refusal that passes is waited for, such as a failover, or the move of
            a queue to another node of a cluster, seconds; infinity for as long as it takes.
        sentinel_password: The password of the Sentinels if the URL has none; None if there is none.
    """

    url: str
    password: str | Callable[[], str | None] | None = None
    password_first: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_insecure: bool = False
    tls_pass_phrase: Callable[[], str] | None = None
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    reply_timeout_s: float = REPLY_TIMEOUT_S
    patience_s: float = PATIENCE_S
    sentinel_password: str | None = None

    def __repr__(self) -> str:
        """The address, with any password in the URL masked."""
        return f"<Server {mask_url(self.url)}>"


def connect(server: "Server | str | redis.Redis") -> Connection:
    """Prepare a connection to a server or URL, or that of a redis-py client; the first command
    makes it.

    Raises:
        InvalidArgument: The URL is malformed, or an option in it is not supported; or the client
            decodes replies; or a time is negative, no number or too long.
        TypeError: It is none of these, such as an asyncio client.
    """
    if isinstance(server, redis.Redis):
        return Connection(server)
    server = Server(server) if isinstance(server, str) else server
    if not isinstance(server, Server):
        kind = f"{type(server).__module__.removesuffix('.client')}.{type(server).__name__}"
        raise TypeError(f"connect takes a Server, its URL or a redis.Redis, not a {kind}")
    checked_s("a timeout", server.connect_timeout_s)
    checked_s("a timeout", server.reply_timeout_s)
    checked_s("a patience", server.patience_s, may_be_endless=True)
    name, url = mask_url(server.url), full_url(server.url)
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise InvalidArgument(f"not a server URL: {name}", _EXAMPLES)
    if "#" in url:
        raise _malformed(name, "it has a #", "write %23 for a # in a password")
    base, _, kind = scheme.partition("+")
    try:
        address = parse_address(url)
    except ValueError:
        # urllib's message may contain the password.
        hint = _EXAMPLES_OF_HOSTS if kind else _EXAMPLE
        raise _malformed(name, "a host or port cannot be read", hint) from None
    sentinels = ("sentinel_username", "sentinel_password") if kind == "sentinel" else ()
    sentinel_login = [address.options.pop(option, None) for option in sentinels]
    settings = _pool_settings(server, address, name, has_tls=base == "rediss")
    connection: Connection
    if not kind:
        if address.socket:
            settings["path"] = address.socket
        else:
            settings["host"], settings["port"] = address.hosts[0]
        settings["connection_class"] = in_time(settings["connection_class"])
        connection = Connection(redis.Redis(connection_pool=redis.ConnectionPool(**settings)), name)
    elif not address.hosts:
        raise _malformed(name, "it names no host", _EXAMPLES_OF_HOSTS)
    elif kind == "sentinel":
        from rwq_cli.core.server.sentinel import SentinelConnection

        if not address.service:
            raise _malformed(name, "it names no service", _EXAMPLES_OF_HOSTS)
        credentials = (
            sentinel_login[0],
            server.sentinel_password if sentinel_login[1] is None else sentinel_login[1],
        )
        connection = SentinelConnection(
            address, name, settings, credentials, server.connect_timeout_s
        )
    else:
        from rwq_cli.core.server.cluster import ClusterConnection

        if settings.pop("db"):
            raise _malformed(name, "a cluster has no databases", "leave the number out")
        connection = ClusterConnection(address.hosts, name, settings)
    connection.address, connection.patience_s = str(address), server.patience_s
    connection.connect_timeout_s = server.connect_timeout_s
    connection.reply_timeout_s = server.reply_timeout_s
    return connection


def _malformed(name: str, why: str, hint: str = _EXAMPLES) -> InvalidArgument:
    return InvalidArgument(f"malformed server URL {name}: {why}", hint)


def _no_pass_phrase() -> str:
    raise InvalidArgument("the client's key is encrypted", "give its pass phrase")


class _Credentials(redis.CredentialProvider):
    """Asks for the password whenever a connection is made, so that it may be rotated."""

    def __init__(self, username: str | None, password: Callable[[], str | None]) -> None:
        self._username = username
        self._password = password

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        try:
            password = self._password()
        except RwqError as error:
            # redis-py closes the socket only after an error of its own.
            raise redis.AuthenticationError(error.message) from error
        return (self._username, password or "") if self._username else (password or "",)


def _pool_settings(server: Server, address: Address, name: str, *, has_tls: bool) -> dict[str, Any]:
    """The settings of a redis-py pool that makes the connections to a server, but for where."""
    supported = _OPTIONS + _TLS_OPTIONS if has_tls else _OPTIONS
    if not address.options.keys() <= set(supported):
        hint = f"supported options: {', '.join(supported)}"
        raise InvalidArgument(f"the server URL {name} has an option that is not supported", hint)
    if address.scheme == "unix" and not address.socket:
        raise _malformed(name, "it names no socket", "use unix:///path/to/socket")
    if address.db and not address.db.isdecimal():
        raise _malformed(name, "its database is not a number", "use redis://host:6379/0")
    kind = redis.UnixDomainSocketConnection if address.socket else redis.Connection
    settings: dict[str, Any] = {
        "connection_class": redis.SSLConnection if has_tls else kind,
        # A retried command may run twice; report a lost reply instead.
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        **({"parser_class": Parser} if DefaultParser is _HiredisParser else {}),
        # A program that waits for weeks opens a connection for each wait.
        "max_connections": 1 << 31,
        # Saves two round trips for each connection; before redis-py 7.2 it had two other names.
        **dict.fromkeys(
            ("driver_info",) if hasattr(redis, "DriverInfo") else ("lib_name", "lib_version")
        ),
        **({} if address.socket else {"socket_keepalive": True}),
        **{option: value for option, value in address.options.items() if value},
        "db": int(address.db or 0),
    }
    if hostname := settings.get("ssl_check_hostname"):
        settings["ssl_check_hostname"] = to_bool(hostname)  # type: ignore[no-untyped-call]
    tls_files = zip(_TLS_OPTIONS, (server.tls_ca, server.tls_cert, server.tls_key), strict=False)
    files = {option: file for option, file in tls_files if file is not None}
    if (files or server.tls_insecure) and not has_tls:
        raise InvalidArgument(
            f"TLS options need a rediss:// URL, not {name}", "change the URL or drop them"
        )
    for option, file in files.items():
        if not file.is_file():
            raise InvalidArgument(f"no such file: {file}", "check the TLS options")
        settings[option] = str(file)
    if "ssl_keyfile" in settings and "ssl_certfile" not in settings:
        raise InvalidArgument("a TLS key needs its certificate", "give it with --tls-cert")
    if "ssl_certfile" in settings and "ssl_password" not in settings:
        # OpenSSL itself would ask on stdin.
        settings["ssl_password"] = cache(server.tls_pass_phrase or _no_pass_phrase)
    if server.tls_insecure:
        settings.update(ssl_cert_reqs="none", ssl_check_hostname=False)
    password = server.password
    if password is not None and (server.password_first or "password" not in settings):
        settings["password"] = password
        if not isinstance(password, str):
            del settings["password"]
            username = settings.pop("username", None)
            settings["credential_provider"] = _Credentials(username, password)
    try:
        redis.ConnectionPool(**settings).make_connection()
    except (TypeError, ValueError, redis.RedisError):
        raise _malformed(name, "an option has a value that cannot be used") from None
    return settings
