"""Redis Cluster: which node has a slot, and connections to the slots of queues."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from redis import exceptions as rx
from redis.cluster import ClusterNode, NodesManager
from redis.crc import key_slot

from rwq_cli.core import errors
from rwq_cli.core.keys import QueueKeys, hash_tag
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction, writes as may_write
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.error_mapping import REPLIES, is_unknown, translate, unreachable
from rwq_cli.core.server.link import Link, in_time
from rwq_cli.core.server.node import Node, Timeouts
from rwq_cli.core.server.patience import Patience, limits

# In a line of CLUSTER NODES, the index of the first word about slots, and the mark of one that is
# moving to that node.
_SLOTS_AT = 8
_IMPORTING = b"-<-"
_SOON = "try again in a moment"
_KEYLESS = ("ACL", "CLIENT", "CLUSTER", "CONFIG", "INFO")


class Topology:
    """The nodes of a cluster and their slots, as redis-py finds them.

    `hosts` are some of them; `settings` are redis-py's for a connection, without its address.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        name: str,
        settings: Mapping[str, Any],
        timeouts: Timeouts,
    ) -> None:
        self._hosts = dict.fromkeys(hosts)
        self.name = name
        # redis-py gives each node its own policy: no command is sent twice.
        self._settings = {key: settings[key] for key in settings if key != "retry"}
        self._settings["connection_class"] = in_time(settings["connection_class"])
        self.timeouts = timeouts
        self._manager: NodesManager | None = None
        self.was_found = False

    def of_slot(self, slot: int) -> ClusterNode:
        """The primary that has a slot."""
        nodes = self._read().slots_cache.get(slot)
        if not nodes:
            raise errors.Unavailable(f"{self.name} has no node for slot {slot} now", _SOON)
        return nodes[0]

    def primaries(self) -> list[ClusterNode]:
        """All primaries that have slots."""
        slots: dict[int, list[ClusterNode]] = self._read().slots_cache
        return list({nodes[0].name: nodes[0] for nodes in slots.values() if nodes}.values())

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
        # Each of the nodes is asked in turn, within the time for connecting.
        limits.connect_s = self.timeouts.connect_s / len(self._hosts)
        try:
            nodes = [make_node(host, port) for host, port in self._hosts]
            # As from a URL: the settings are those of a pool.
            manager = NodesManager(nodes, from_url=True, **self._settings)
        except (rx.RedisClusterException, rx.RedisError, OSError, IndexError) as error:
            raise self._unreadable(error) from error
        finally:
            limits.connect_s = self.timeouts.connect_s
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
        return unreachable(reason, self.name, self.timeouts.connect_s / len(self._hosts))


class SlotNode(Node):
    """The primary of a slot, or any primary for None."""

    is_found_again = True

    def __init__(self, topology: Topology, slot: int | None) -> None:
        super().__init__(None, topology.name, topology.timeouts)
        self._topology = topology
        self._slot = slot

    def client(self) -> Any:
        topology, slot = self._topology, self._slot
        node = topology.primaries()[0] if slot is None else topology.of_slot(slot)
        self.name = f"{node.host}:{node.port} of {topology.name}"
        return topology.client_of(node)

    @property
    def was_found(self) -> bool:
        return self._topology.was_found

    @was_found.setter
    def was_found(self, found: bool) -> None:
        """Ignore it: a node is found if the slot map is."""

    def forget(self) -> None:
        self._topology.forget()


class ClusterConnection(Connection):
    """A connection to all nodes of a cluster.

    Each call goes to the node that has its first key; one without keys, to any primary.
    """

    is_cluster = True

    def __init__(self, topology: Topology, name: str, **settings: Any) -> None:
        super().__init__(SlotNode(topology, None), name, **settings)
        self.topology = topology
        self._queues: dict[bytes, Connection] = {}

    def for_queue(self, name: bytes) -> Connection:
        if name not in self._queues:
            kind = TaggedConnection if hash_tag(name) is not None else UntaggedConnection
            self._queues[name] = kind(self, name)
        return self._queues[name]

    def of_slot(self, slot: int | None) -> Connection:
        """A connection to the node that has a slot; to any primary for None."""
        made = Connection(SlotNode(self.topology, slot), self.name, patience_s=self.patience_s)
        made.stop, made.on_wait = self.stop, self._tell
        return made

    def _send(self, requests: Sequence[Command], patience: Patience | None = None) -> list[Any]:
        """Send requests, in one round trip for each slot.

        If there are several slots, the error of one is the reply to each of its requests.
        """
        by_slot: dict[int | None, list[int]] = {}
        for at, request in enumerate(requests):
            by_slot.setdefault(_slot_of(request), []).append(at)
        replies: dict[int, Any] = {}
        for slot, places in by_slot.items():
            try:
                found = self.of_slot(slot)._send([requests[at] for at in places], patience)
            except errors.ServerError as error:
                if len(by_slot) == 1:
                    raise
                found = [error] * len(places)
            replies.update(zip(places, found, strict=True))
        return [replies[at] for at in range(len(requests))]

    def _pages(self, scan: Command, options: Sequence[Any]) -> Iterator[list[bytes]]:
        """Scan each primary.

        A key that moves to another node meanwhile is found: a node that has gained a slot since, or
        is about to, is scanned again afterwards.
        """
        before = self._shares()
        yield from self._scan_nodes(before, scan, options)
        after = self._shares()
        again = [
            node
            for node, share in after.items()
            if share != before.get(node) or _IMPORTING in share
        ]
        yield from self._scan_nodes(again, scan, options)

    def _scan_nodes(
        self, nodes: Iterable[ClusterNode], scan: Command, options: Sequence[Any]
    ) -> Iterator[list[bytes]]:
        for node in nodes:
            yield from self._to(node)._pages(scan, options)

    def _shares(self) -> dict[ClusterNode, bytes]:
        """The slots of each primary by its own account, also those that are moving there.

        The other nodes hear of a change a moment later.
        """
        self.topology.forget()
        shares: dict[ClusterNode, bytes] = {}
        for node in self.topology.primaries():
            (reply,) = self._to(node)._exchange([("CLUSTER", "NODES")], writes=False)
            lines = reply.splitlines() if isinstance(reply, bytes) else ()
            own = next((line for line in lines if b"myself" in line), b"")
            shares[node] = b" ".join(own.split()[_SLOTS_AT:])
        return shares

    def _to(self, node: ClusterNode) -> Connection:
        """A connection to one node, whatever slots it has."""
        name = f"{node.name} of {self.topology.name}"
        return Connection(Node(self.topology.client_of(node), name, self.topology.timeouts), name)


def _slot_of(request: Command) -> int | None:
    """The slot of the first key of a request; None if it has no key."""
    if isinstance(request, Transaction):
        return _slot_of(request[0])
    if isinstance(request, ScriptCommand):
        return key_slot(request[3])
    if len(request) == 1 or request[0] in _KEYLESS:
        return None
    return key_slot(request[2 if request[0] == "OBJECT" else 1])


class _QueueConnection(Connection):
    """A connection for the commands of one queue, to the node of a slot."""

    is_cluster = True

    def __init__(self, cluster: ClusterConnection, queue: bytes, slot: int | None) -> None:
        super().__init__(
            SlotNode(cluster.topology, slot),
            cluster.name,
            address=cluster.address,
            patience_s=cluster.patience_s,
        )
        self._cluster = cluster
        self._keys = QueueKeys(queue)
        self._modes, self.stop = cluster._modes, cluster.stop
        self.progress, self.on_wait = cluster.progress, cluster.on_wait

    @property
    def root(self) -> Connection:
        return self._cluster

    def for_queue(self, name: bytes) -> Connection:
        return self._cluster.for_queue(name)


class TaggedConnection(_QueueConnection):
    """A connection to the primary that has the slot of a queue."""

    def __init__(self, cluster: ClusterConnection, queue: bytes) -> None:
        super().__init__(cluster, queue, key_slot(QueueKeys(queue).main))

    def _pages(self, scan: Command, options: Sequence[Any]) -> Iterator[list[bytes]]:
        # While the slot moves, a node refuses a key that it does not have.
        probe = ("EXISTS", self._keys.absent)
        cursor: Any = 0
        while True:
            found, probed = self._exchange([(*scan, cursor, *options), probe], writes=False)
            for reply in (found, probed):
                if isinstance(reply, rx.ResponseError):
                    raise self.error_of(reply, probe) from reply
            cursor, page = found
            yield page
            if int(cursor) == 0:
                return


class UntaggedConnection(_QueueConnection):
    """A connection to the keys of a name without a hash tag, which are in many slots.

    Such a queue can be looked at with single commands, as far as that goes. Everything else needs
    its keys in one slot, and is refused with the name to use.
    """

    def __init__(self, cluster: ClusterConnection, queue: bytes) -> None:
        super().__init__(cluster, queue, None)

    def scan(self, scan: Command, *options: Any) -> Iterator[list[bytes]]:
        return self._cluster.scan(scan, *options)

    def check_one_slot(self) -> None:
        raise self._refusal()

    def stream(self, *_: Any, **__: Any) -> Iterator[Any]:
        raise self._refusal()

    def open_link(self) -> Link:
        raise self._refusal()

    def _transact(self, commands: Sequence[Command]) -> list[Any]:
        return self._send(commands)

    def _send(
        self,
        requests: Sequence[Command],
        patience: Patience | None = None,  # noqa: ARG002
    ) -> list[Any]:
        for request in requests:
            is_script = isinstance(request, ScriptCommand)
            if is_script or (may_write(request) and _slot_of(request) is not None):
                raise self._refusal()
        return [self._reply_to(request) for request in requests]

    def _reply_to(self, request: Command) -> Any:
        if request[0] != "EXISTS":
            return self._cluster._send([request])[0]
        counts = self._cluster._send([("EXISTS", key) for key in request[1:]])
        failures = [count for count in counts if isinstance(count, Exception)]
        return failures[0] if failures else sum(counts)

    def _refusal(self) -> errors.InvalidArgument:
        name = self._keys.name
        tagged = b"{%b}" % name
        if hash_tag(tagged) is None:
            tagged = b"{q}" + name
        shown, usable = (each.decode("utf-8", "backslashreplace") for each in (name, tagged))
        return errors.InvalidArgument(
            f"{shown} has no hash tag: on a cluster its keys are on several nodes",
            f"name the queue {usable}: its keys are then in one slot",
        )
