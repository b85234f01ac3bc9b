"""The primary of a service that Sentinel watches."""

from collections.abc import Mapping, Sequence
from typing import Any

import redis
from redis import exceptions as rx
from redis.backoff import NoBackoff
from redis.connection import SSLConnection
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from rwq_cli.core import errors
from rwq_cli.core.server.error_mapping import (
    REPLIES,
    is_unknown,
    lacks_tls,
    translate,
    unreachable,
)
from rwq_cli.core.server.following import FollowingConnection, SharedState
from rwq_cli.core.server.link import Link, LinkOptions
from rwq_cli.core.server.node import Node


class SentinelLocator:
    """Finds the primary of a service, by redis-py's Sentinel client.

    Args:
        hosts: The addresses of Sentinels.
        service: The name of the service.
        name: The name in messages.
        settings: redis-py's settings for the connections to the primary, without its address.
        credentials: User and password of the Sentinels themselves; either may be None.
        options: The options of all links.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        service: str,
        name: str,
        settings: Mapping[str, Any],
        credentials: tuple[str | None, str | None],
        options: LinkOptions,
    ) -> None:
        self._hosts = hosts
        self._service = service
        self._name = name
        self._settings = dict(settings)
        self._options = options
        # Each Sentinel is asked in turn, within the time for connecting.
        self._timeout_s = options.connect_timeout_s / len(hosts)
        own = {
            key: value
            for key, value in self._settings.items()
            if key not in ("connection_class", "db", "username", "password", "retry")
        }
        make_client: Any = Sentinel
        self._sentinel = make_client(
            hosts,
            sentinel_kwargs={
                **own,
                "ssl": self._settings.get("connection_class") is SSLConnection,
                "username": credentials[0],
                "password": credentials[1],
                "socket_timeout": self._timeout_s,
                "socket_connect_timeout": self._timeout_s,
                "retry": Retry(NoBackoff(), 0),
            },
        )
        self._node: Node | None = None
        self._address: tuple[str, int] | None = None
        self._is_known = False
        self.was_found = False

    def node(self) -> Node:
        if not self._is_known:
            self._look_up()
        assert self._node is not None
        return self._node

    @property
    def url(self) -> str:
        """The URL of the primary, without user and password.

        Raises:
            ServerError: It could not be found.
        """
        self.node()
        assert self._address is not None
        host, port = self._address
        scheme = "rediss" if self._settings.get("connection_class") is SSLConnection else "redis"
        host = f"[{host}]" if ":" in host else host
        return f"{scheme}://{host}:{port}/{self._settings.get('db') or 0}"

    def note_moved(self, refusal: rx.MovedError) -> None:
        """Do nothing: slots move only in a cluster."""

    def forget(self) -> None:
        self._is_known = False

    def close(self) -> None:
        if self._node is not None:
            self._node.close()

    def _look_up(self) -> None:
        try:
            address = self._sentinel.discover_master(self._service)
        except MasterNotFoundError as error:
            raise self._not_found() from error
        except REPLIES as error:
            raise self._refused(error) from error
        self.was_found = self._is_known = True
        if address != self._address:
            self.close()
            host, port = self._address = address
            pool = redis.ConnectionPool(host=host, port=port, **self._settings)
            name = f"{host}:{port} (the primary of {self._name})"
            client = redis.Redis(connection_pool=pool)
            self._node = Node(client, self._options, name, self._check_role)

    def _check_role(self, link: Link) -> None:
        """Raise `Unavailable` if a server is not a primary, or not any more.

        A Sentinel may name the old primary for a moment, and a replica would answer reads.
        """
        # Raises if the server is loading its data.
        link.exchange("PING")
        reply = link.exchange("ROLE")
        if isinstance(reply, list) and reply[0] != b"master":
            raise errors.Unavailable(
                f"{self._name} has no primary now: Sentinel names a replica",
                "try again in a moment",
            )

    def _refused(self, error: Exception) -> errors.ServerError:
        if is_unknown(error, "SENTINEL"):
            return errors.ServerError(
                f"{self._name} names a server that is not a Sentinel",
                "name the Sentinels, whose port is 26379 by default; redis:// is for one server",
            )
        refusal = translate(error, f"a Sentinel of {self._name}")
        if isinstance(refusal, errors.AuthenticationFailed):
            return errors.SentinelAuthenticationFailed(
                refusal.message, "give the Sentinels' own password in RWQ_SENTINEL_PASSWORD"
            )
        return refusal

    def _not_found(self) -> errors.ServerError:
        """Why there is no primary: no Sentinel answers, none knows the service, or it is down."""
        failure: Exception | None = None
        known: set[str] = set()
        for sentinel in self._sentinel.sentinels:
            try:
                known.update(str(each) for each in sentinel.sentinel_masters())
            except REPLIES as error:
                return self._refused(error)
            except (rx.RedisError, OSError) as error:
                failure = error
            else:
                self.was_found = True
        if self._service in known:
            return errors.Unavailable(
                f"{self._name} has no primary now", "try again in a moment, or see its Sentinels"
            )
        if known or failure is None:
            names = ", ".join(sorted(known)) or "none"
            return errors.ServerError(
                f"the Sentinels of {self._name} do not monitor a service {self._service}",
                f"they monitor: {names}",
            )
        name = f"any Sentinel of {self._name}"
        if self._settings.get("connection_class") is not SSLConnection:
            explained = lacks_tls(failure, name, *self._hosts[0], self._timeout_s)
            if explained is not None:
                return explained
        return unreachable(failure, name, self._timeout_s)


class SentinelConnection(FollowingConnection):
    """A connection to the primary of a service."""

    def __init__(self, shared: SharedState, locator: SentinelLocator) -> None:
        super().__init__(shared, locator)
        self._sentinel = locator

    @property
    def primary_url(self) -> str:
        return self._sentinel.url
