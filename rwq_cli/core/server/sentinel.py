"""The primary of a service that Sentinel watches."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redis import exceptions as rx, sentinel as rs
from redis.connection import SSLConnection

from rwq_cli.core import errors
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.error_mapping import REPLIES, is_unknown, translate, unreachable
from rwq_cli.core.server.link import in_time
from rwq_cli.core.server.urls import Address, bracketed

# Settings that are those of the servers alone.
_OF_THE_SERVERS = (
    "connection_class",
    "parser_class",
    "db",
    "username",
    "password",
    "credential_provider",
)


class _NoPrimary(rx.ConnectionError):
    """Sentinel names a replica."""


class SentinelConnection(Connection):
    """A connection to the primary of a service, which redis-py's Sentinel client finds."""

    is_found_again = True

    def __init__(
        self,
        place: Address,
        name: str,
        settings: Mapping[str, Any],
        credentials: tuple[str | None, str | None],
        connect_s: float,
    ) -> None:
        hosts, self._service, self._sentinels = place.hosts, place.service, name
        has_tls = issubclass(settings["connection_class"], SSLConnection)
        # Each Sentinel is asked in turn, within the time for connecting.
        self._each_s = connect_s / len(hosts)
        sentinel_settings = {
            key: value for key, value in settings.items() if key not in _OF_THE_SERVERS
        }
        # The Sentinels have a user and a password of their own.
        sentinel_settings.update(ssl=has_tls, username=credentials[0], password=credentials[1])
        sentinel_settings.update(socket_timeout=self._each_s, socket_connect_timeout=self._each_s)
        make_sentinel: Any = rs.Sentinel
        self._sentinel = make_sentinel(hosts, sentinel_kwargs=sentinel_settings)
        kind = rs.SentinelManagedSSLConnection if has_tls else rs.SentinelManagedConnection
        own_class = {"connection_class": in_time(kind), "redis_connect_func": _check_role}
        client = self._sentinel.master_for(self._service, **{**settings, **own_class})
        super().__init__(client, name)

    @property
    def name(self) -> str:
        address = self._client.connection_pool.master_address
        if address is None:
            return f"the primary of {self._sentinels}"
        return f"{address[0]}:{address[1]} (the primary of {self._sentinels})"

    @name.setter
    def name(self, name: str) -> None:
        self._sentinels = name

    @property
    def primary_url(self) -> str:
        pool = self._client.connection_pool
        try:
            host, port = pool.get_master_address()
        except (rx.RedisError, OSError) as error:
            raise self._failure(error) from error
        database = pool.connection_kwargs.get("db") or 0
        tls = "s" if issubclass(pool.connection_class, SSLConnection) else ""
        return f"redis{tls}://{bracketed(host)}:{port}/{database}"

    def _failure(self, error: Exception) -> errors.RwqError:
        if isinstance(error, _NoPrimary):
            self.shared.was_found = True
            why = "has no primary now: Sentinel names a replica"
            return errors.Unavailable(f"{self._sentinels} {why}", "try again in a moment")
        if isinstance(error, rs.MasterNotFoundError):
            # All Sentinels have just been asked.
            return self._not_found()
        try:
            self._sentinel.discover_master(self._service)
        except (rs.MasterNotFoundError, rx.InvalidResponse):
            return self._not_found()
        except REPLIES as refusal:
            return self._refused(refusal)
        self.shared.was_found = True
        return super()._failure(error)

    def _refused(self, error: Exception) -> errors.ServerError:
        if is_unknown(error, "SENTINEL"):
            return errors.ServerError(
                f"{self._sentinels} names a server that is not a Sentinel",
                "name the Sentinels, whose port is 26379 by default; redis:// is for one server",
            )
        refusal = translate(error, f"a Sentinel of {self._sentinels}")
        if isinstance(refusal, errors.AuthenticationFailed):
            return errors.SentinelAuthenticationFailed(
                refusal.message, "give the Sentinels' own password in RWQ_SENTINEL_PASSWORD"
            )
        return refusal

    def _not_found(self) -> errors.RwqError:
        """Why there is no primary: no Sentinel answers, none knows the service, or it is down."""
        failure: Exception | None = None
        services: set[str] = set()
        sentinels = self._sentinel.sentinels
        # At once: those that are silent take no longer than one.
        with ThreadPoolExecutor(len(sentinels)) as pool:
            for answer in pool.map(_services_of, sentinels):
                if isinstance(answer, REPLIES):
                    return self._refused(answer)
                if isinstance(answer, Exception):
                    failure = answer
                else:
                    services |= answer
        if self._service in services:
            self.shared.was_found = True
            hint = "try again in a moment, or see its Sentinels"
            return errors.Unavailable(f"{self._sentinels} has no primary now", hint)
        if services or failure is None:
            return errors.ServerError(
                f"the Sentinels of {self._sentinels} do not monitor a service {self._service}",
                f"they monitor: {', '.join(sorted(services)) or 'none'}",
            )
        any_of_them = f"any Sentinel of {self._sentinels}"
        first: Any = sentinels[0]
        return unreachable(failure, any_of_them, self._each_s, first.connection_pool)


def _services_of(sentinel: Any) -> set[str] | Exception:
    """The names of the services that a Sentinel monitors, or why it does not say."""
    try:
        return set(map(str, sentinel.sentinel_masters()))
    except (*REPLIES, rx.RedisError, OSError) as error:
        return error


def _check_role(raw: Any) -> None:
    # A Sentinel may name the old primary for a moment, and a replica would answer reads.
    raw.on_connect()
    raw.send_command("ROLE", check_health=False)
    if raw.read_response()[0] != b"master":
        raise _NoPrimary("it is a replica")
