"""Redis Cluster: which node has a slot, and connections to the slots of queues."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from redis import exceptions as rx
from redis.cluster import ClusterNode, NodesManager
from redis.connection import SSLConnection
from redis.crc import key_slot

from rwq_cli.core import errors
from rwq_cli.core.keys import QueueKeys, hash_tag
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.error_mapping import (
    REPLIES,
    is_unknown,
    recognized,
    translate,
    unreachable,
)
from rwq_cli.core.server.link import in_time
from rwq_cli.core.server.patience import Patience, limits

_SOON = "try again in a moment"
_KEYLESS = ("ACL", "CLIENT", "CLUSTER", "CONFIG", "INFO")


class Topology:
    """The nodes of a cluster and their slots, as redis-py finds them.

    `hosts` are some of them; `settings` are redis-py's for a connection, without its address. Each
    of the nodes is asked in turn, within `connect_s`.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        name: str,
        settings: Mapping[str, Any],
        connect_s: float,
    ) -> None:
        self._hosts = dict.fromkeys(hosts)
        self.name = name
        # redis-py gives each node its own policy: no command is sent twice.
        self._settings = {key: settings[key] for key in settings if key != "retry"}
        self._settings["connection_class"] = in_time(settings["connection_class"])
        self._connect_s = connect_s
        self._manager: NodesManager | None = None
        self.was_found = False

    def client(self, slot: int | None) -> tuple[Any, str]:
        """The client of the primary that has a slot, or of any, and its name."""
        slots: dict[int, list[ClusterNode]] = self._read().slots_cache
        nodes = next(iter(slots.values()), []) if slot is None else slots.get(slot)
        if not nodes:
            raise errors.Unavailable(f"{self.name} has no node for slot {slot} now", _SOON)
        return self.client_of(nodes[0]), f"{nodes[0].host}:{nodes[0].port} of {self.name}"

    def shares(self) -> dict[ClusterNode, set[int]]:
        """The primaries that have slots, with these."""
        shares: dict[ClusterNode, set[int]] = {}
        for slot, nodes in self._read().slots_cache.items():
            if nodes:
                shares.setdefault(nodes[0], set()).add(slot)
        return shares

    def forget(self) -> None:
        """Read the slots again when they are needed next, over new connections."""
        manager, self._manager = self._manager, None
        for node in list(manager.nodes_cache.values()) if manager is not None else ():
            # The hosts that were named may be gone by now, or behind other addresses.
            self._hosts[node.host, int(node.port)] = None
            if node.redis_connection is not None:
                node.redis_connection.connection_pool.disconnect(inuse_connections=False)

    def client_of(self, node: ClusterNode) -> Any:
        """redis-py's client of a node."""
        if node.redis_connection is None:
            manager: Any = self._read()
            manager.create_redis_connections([node])
        return node.redis_connection

    def _read(self) -> NodesManager:
        if (manager := self._manager) is not None:
            return manager
        make_node: Any = ClusterNode
        before_s, limits.connect_s = limits.connect_s, self._connect_s / len(self._hosts)
        try:
            nodes = [make_node(host, port) for host, port in self._hosts]
            # As from a URL: the settings are those of a pool.
            manager = NodesManager(nodes, from_url=True, **self._settings)
        except (rx.RedisClusterException, rx.RedisError, OSError, IndexError) as error:
            raise self._unreadable(error) from error
        finally:
            limits.connect_s = before_s
        self._manager, self.was_found = manager, True
        return manager

    def _unreadable(self, error: Exception) -> errors.RwqError:
        """Why the slots could not be read: redis-py's exception has the last node's as a cause."""
        if isinstance(error, IndexError):
            return errors.Unavailable(f"{self.name} has no slots", _SOON)
        cause = error.__cause__ or error
        refusal = cause.__context__ if isinstance(cause, rx.RedisClusterException) else cause
        if refusal is not None and isinstance(refusal.__cause__, errors.RwqError):
            return refusal.__cause__
        is_disabled = isinstance(refusal, rx.ResponseError) and "support disabled" in str(refusal)
        if is_disabled or is_unknown(refusal, "CLUSTER"):
            hint = "use redis:// for a single server, redis+sentinel:// for Sentinels"
            return errors.ServerError(f"{self.name} is not a Redis Cluster", hint)
        if isinstance(refusal, REPLIES):
            return translate(refusal, self.name)
        reason = refusal if isinstance(refusal, Exception) else error
        has_tls = issubclass(self._settings["connection_class"], SSLConnection)
        other = recognized(reason, next(iter(self._hosts)), self.name, has_tls=has_tls)
        return other or unreachable(reason, self.name, self._connect_s / len(self._hosts))


class _SlotConnection(Connection):
    """A connection to the primary that has a slot; to any primary for None."""

    is_cluster = is_found_again = True
    topology: Topology
    _slot: int | None = None

    def client(self) -> Any:
        client, self.name = self.topology.client(self._slot)
        return client

    def forget(self) -> None:
        self._shared.scripts.clear()
        self.topology.forget()

    @property
    def was_found(self) -> bool:
        return self.topology.was_found

    @was_found.setter
    def was_found(self, found: bool) -> None:
        """Ignore it: a node is found if the slot map is."""


class ClusterConnection(_SlotConnection):
    """A connection to all nodes of a cluster.

    Each call goes to the node that has its first key; one without keys, to any primary.
    """

    def __init__(self, topology: Topology, name: str, **known_as: Any) -> None:
        self.topology = topology
        super().__init__(None, name, **known_as)
        self._queues: dict[bytes, Connection] = {}

    def for_queue(self, name: bytes) -> Connection:
        if hash_tag(name) is None:
            # Its keys are in many slots. It can be looked at by single commands, as far as that
            # goes; its handle refuses all else.
            return self
        if name not in self._queues:
            self._queues[name] = QueueConnection(self, name)
        return self._queues[name]

    def for_other_thread(self, *, reply_timeout_s: float) -> Connection:
        other = super().for_other_thread(reply_timeout_s=reply_timeout_s)
        assert isinstance(other, ClusterConnection)
        other._queues = {}
        return other

    def send(self, requests: Sequence[Command], patience: Patience | None = None) -> list[Any]:
        """Send requests, in one round trip for each slot.

        If there are several slots, the error of one is the reply to each of its requests.
        """
        by_slot: dict[int | None, list[int]] = {}
        for at, request in enumerate(requests):
            by_slot.setdefault(_slot_of(request), []).append(at)
        replies: dict[int, Any] = {}
        for slot, places in by_slot.items():
            try:
                found = _OneSlot(self, slot).send([requests[at] for at in places], patience)
            except errors.ServerError as error:
                if len(by_slot) == 1:
                    raise
                found = [error] * len(places)
            replies.update(zip(places, found, strict=True))
        return [replies[at] for at in range(len(requests))]

    def _transact(self, commands: Sequence[Command]) -> list[Any]:
        # The keys are in several slots.
        return self.send(commands)

    def _pages(self, scan: Command, options: Sequence[Any]) -> Iterator[list[bytes]]:
        """Scan each primary; one that has gained a slot meanwhile again, for what moved there."""
        self.topology.forget()
        before = self.topology.shares()
        yield from self._scan_nodes(before, scan, options)
        self.topology.forget()
        after = self.topology.shares()
        again = [node for node in after if after[node] - before.get(node, set())]
        yield from self._scan_nodes(again, scan, options)

    def _scan_nodes(
        self, nodes: Iterable[ClusterNode], scan: Command, options: Sequence[Any]
    ) -> Iterator[list[bytes]]:
        for node in nodes:
            yield from self._to(node)._pages(scan, options)

    def _to(self, node: ClusterNode) -> Connection:
        """A connection to one node, whatever slots it has."""
        return Connection(
            self.topology.client_of(node),
            f"{node.name} of {self.topology.name}",
            connect_timeout_s=self.connect_timeout_s,
            reply_timeout_s=self.reply_timeout_s,
        )


class _OneSlot(_SlotConnection):
    """A connection to the primary that has a slot, with the settings that the cluster's has now."""

    def __init__(self, cluster: ClusterConnection, slot: int | None) -> None:
        vars(self).update(vars(cluster))
        self._slot, self._cluster = slot, cluster

    @property
    def root(self) -> Connection:
        return self._cluster

    def for_queue(self, name: bytes) -> Connection:
        return self._cluster.for_queue(name)


class QueueConnection(_OneSlot):
    """A connection to the primary that has the slot of a queue."""

    def __init__(self, cluster: ClusterConnection, queue: bytes) -> None:
        keys = QueueKeys(queue)
        super().__init__(cluster, key_slot(keys.main))
        # While the slot moves, a node refuses a key that it does not have.
        self._probes = [("EXISTS", keys.absent)]


def _slot_of(request: Command) -> int | None:
    """The slot of the first key of a request; None if it has no key."""
    if isinstance(request, Transaction):
        return _slot_of(request[0])
    if isinstance(request, ScriptCommand):
        return key_slot(request[3])
    if len(request) == 1 or request[0] in _KEYLESS:
        return None
    return key_slot(request[2 if request[0] == "OBJECT" else 1])
