"""Redis Cluster: which node has a slot, and connections to the slots of queues."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import redis
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
    lacks_tls,
    translate,
    unreachable,
)
from rwq_cli.core.server.following import FollowingConnection, SharedState
from rwq_cli.core.server.link import Link, LinkOptions
from rwq_cli.core.server.node import Node
from rwq_cli.core.server.packing import pack
from rwq_cli.core.server.requests import writes as may_write
from rwq_cli.core.server.resend import case_of

# In a line of CLUSTER NODES, the index of the first word about slots, and the mark of one that is
# moving to that node.
_SLOTS_AT = 8
_IMPORTING = b"-<-"
_KEYLESS = ("ACL", "CLIENT", "CLUSTER", "CONFIG", "INFO")


class Topology:
    """The nodes of a cluster and their slots, as redis-py finds them.

    Args:
        hosts: The addresses of some nodes.
        name: The name in messages.
        settings: redis-py's settings for a connection, without its address.
        options: The options of all links.

    Attributes:
        was_found: Whether the slot map has ever been read.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        name: str,
        settings: Mapping[str, Any],
        options: LinkOptions,
    ) -> None:
        self._hosts = hosts
        self._name = name
        # Each of the nodes is asked in turn, within the time for connecting.
        self._timeout_s = options.connect_timeout_s / len(hosts)
        self._settings = {
            **settings,
            "socket_timeout": self._timeout_s,
            "socket_connect_timeout": self._timeout_s,
        }
        self._options = options
        self._manager: NodesManager | None = None
        self._is_known = False
        self._nodes: dict[tuple[str, int], Node] = {}
        # What MOVED said since the slots were read.
        self._moved: dict[int, tuple[str, int]] = {}
        self.was_found = False

    def of_slot(self, slot: int) -> Node:
        """The primary that has a slot.

        Raises:
            ServerError: The cluster could not be reached, or no node has the slot.
        """
        manager = self._read()
        if (address := self._moved.get(slot)) is not None:
            return self._node(*address)
        nodes = manager.slots_cache.get(slot)
        if not nodes:
            raise errors.Unavailable(
                f"{self._name} has no node for slot {slot} now", "try again in a moment"
            )
        return self._node(nodes[0].host, nodes[0].port)

    def primaries(self) -> list[Node]:
        """All primaries that have slots.

        Raises:
            ServerError: The cluster could not be reached.
        """
        manager = self._read()
        slots: dict[int, Any] = manager.slots_cache
        named = {(nodes[0].host, int(nodes[0].port)): None for nodes in slots.values() if nodes}
        return [self._node(*address) for address in named | dict.fromkeys(self._moved.values())]

    def slots(self) -> dict[str, list[int]]:
        """The slots of each primary, in order, by host and port; see `primaries`."""
        found: dict[str, list[int]] = {}
        for slot, nodes in sorted(self._read().slots_cache.items()):
            found.setdefault(f"{nodes[0].host}:{nodes[0].port}", []).append(slot)
        return found

    def note_moved(self, slot: int, host: str, port: int) -> None:
        """Note what a MOVED said."""
        self._moved[slot] = (host, port)

    def forget(self) -> None:
        """Read the slots again when they are needed next."""
        self._is_known = False

    def close(self) -> None:
        """Close the links that are not in use."""
        for node in self._nodes.values():
            node.close()

    def _read(self) -> NodesManager:
        if self._is_known:
            assert self._manager is not None
            return self._manager
        try:
            if self._manager is None:
                make_node: Any = ClusterNode
                nodes = [make_node(host, port) for host, port in self._hosts]
                # It never retries by itself.
                settings = {key: self._settings[key] for key in self._settings if key != "retry"}
                # As from a URL: the settings are those of a pool.
                self._manager = NodesManager(nodes, from_url=True, **settings)
            else:
                self._manager.initialize()
        except (rx.RedisClusterException, rx.RedisError, OSError, IndexError) as error:
            raise self._unreadable(error) from error
        self._is_known = self.was_found = True
        self._moved.clear()
        return self._manager

    def _unreadable(self, error: Exception) -> errors.ServerError:
        """Why the slots could not be read: redis-py's exception has the last node's as a cause."""
        if isinstance(error, IndexError):
            return errors.Unavailable(f"{self._name} has no slots", "try again in a moment")
        cause = error.__cause__ or error
        refusal = cause.__context__ if isinstance(cause, rx.RedisClusterException) else cause
        is_disabled = isinstance(refusal, rx.ResponseError) and "support disabled" in str(refusal)
        if is_disabled or is_unknown(refusal, "CLUSTER"):
            hint = "use redis:// for a single server, redis+sentinel:// for Sentinels"
            return errors.ServerError(f"{self._name} is not a Redis Cluster", hint)
        if isinstance(refusal, REPLIES):
            return translate(refusal, self._name)
        reason = refusal if isinstance(refusal, Exception) else error
        if self._settings.get("connection_class") is not SSLConnection:
            explained = lacks_tls(reason, self._name, *self._hosts[0], self._timeout_s)
            if explained is not None:
                return explained
        return unreachable(reason, self._name, self._timeout_s)

    def _node(self, host: str, port: int) -> Node:
        if (node := self._nodes.get((host, port))) is None:
            pool = redis.ConnectionPool(**{**self._settings, "host": host, "port": port})
            name = f"{host}:{port} of {self._name}"
            node = Node(redis.Redis(connection_pool=pool), self._options, name, _check_loaded)
            self._nodes[host, port] = node
        return node


def _check_loaded(link: Link) -> None:
    """Raise if a node that was started again is loading its data."""
    link.exchange("PING")


class SlotLocator:
    """Finds the primary of a slot."""

    def __init__(self, topology: Topology, slot: int) -> None:
        self._topology = topology
        self._slot = slot

    @property
    def was_found(self) -> bool:
        return self._topology.was_found

    def node(self) -> Node:
        return self._topology.of_slot(self._slot)

    def note_moved(self, refusal: rx.MovedError) -> None:
        # Without a host, it means the host that has answered.
        if refusal.host:
            self._topology.note_moved(self._slot, refusal.host, refusal.port)
        else:
            self._topology.forget()

    def forget(self) -> None:
        self._topology.forget()

    def close(self) -> None:
        self._topology.close()


class AnyPrimary(SlotLocator):
    """Finds some primary, for commands that name no key."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology, 0)

    def node(self) -> Node:
        return self._topology.primaries()[0]


class ClusterConnection(FollowingConnection):
    """A connection to all nodes of a cluster.

    Each call goes to the node that has its first key; one without keys, to any primary.
    """

    is_cluster = True

    def __init__(self, shared: SharedState, topology: Topology) -> None:
        super().__init__(shared, AnyPrimary(topology))
        self.topology = topology
        self._queues: dict[bytes, Connection] = {}

    def for_queue(self, name: bytes) -> Connection:
        if name not in self._queues:
            kind = TaggedConnection if hash_tag(name) is not None else UntaggedConnection
            self._queues[name] = kind(self, name)
        return self._queues[name]

    def slots(self) -> dict[str, list[int]]:
        """The slots of each primary, in order, by host and port.

        Raises:
            ServerError: The cluster could not be reached.
        """
        return self.topology.slots()

    def of_slot(self, slot: int | None) -> FollowingConnection:
        """A connection to the node that has a slot; to any primary for None."""
        locator = AnyPrimary(self.topology) if slot is None else SlotLocator(self.topology, slot)
        connection = FollowingConnection(self._shared, locator)
        connection.on_wait = self.on_wait
        return connection

    def _send(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:
        """Send requests, in one round trip for each slot.

        If there are several slots, the error of one is the reply to each of its requests.
        """
        slots = [_slot_of(request) for request in requests]
        replies: dict[int, Any] = {}
        for slot in dict.fromkeys(slots):
            places = [at for at, each in enumerate(slots) if each == slot]
            chosen = [requests[at] for at in places]
            try:
                found = self.of_slot(slot)._send(chosen, writes=writes)
            except errors.ServerError as error:
                if len(places) == len(requests):
                    raise
                found = [error] * len(places)
            replies.update(zip(places, found, strict=True))
        return [replies[at] for at in range(len(requests))]

    def scan(self, *options: Any) -> Iterator[list[bytes]]:
        """Pages of the keys of all primaries; again from the start if one is lost."""
        patience = self._patience()
        while True:
            try:
                for page in self._scan_all(options):
                    patience = self._patience()
                    yield page
                return
            except errors.ServerError as error:
                if not self._wait_to_retry(error, patience):
                    raise

    def _scan_all(self, options: Sequence[Any]) -> Iterator[list[bytes]]:
        """Scan each primary.

        A key that moves to another node meanwhile is found: a node that has gained a slot since, or
        is about to, is scanned again afterwards.
        """
        before = self._shares()
        yield from self._scan_nodes(before, options)
        after = self._shares()
        again = [
            node
            for node, share in after.items()
            if share != before.get(node) or _IMPORTING in share
        ]
        yield from self._scan_nodes(again, options)

    def _shares(self) -> dict[Node, bytes]:
        """The slots of each primary by its own account, also those that are moving there.

        The other nodes hear of a change a moment later.
        """
        self.topology.forget()
        shares: dict[Node, bytes] = {}
        for node in self.topology.primaries():
            with node.lend() as link:
                reply = link.exchange("CLUSTER", "NODES")
            lines = reply.splitlines() if isinstance(reply, bytes) else ()
            own = next((line for line in lines if b"myself" in line), b"")
            shares[node] = b" ".join(own.split()[_SLOTS_AT:])
        return shares

    def _scan_nodes(self, nodes: Iterable[Node], options: Sequence[Any]) -> Iterator[list[bytes]]:
        """Scan nodes at once: while one page is used, the others are on their way."""
        with ExitStack() as stack:
            scans = [Scan(stack.enter_context(node.lend()), options, self.name) for node in nodes]
            while scans:
                for scan in scans:
                    scan.send()
                for scan in scans:
                    yield scan.receive()
                scans = [scan for scan in scans if not scan.is_done]


def _slot_of(request: Command) -> int | None:
    """The slot of the first key of a request; None if it has no key."""
    if isinstance(request, Transaction):
        return _slot_of(request[0])
    if isinstance(request, ScriptCommand):
        return key_slot(request[3])
    if len(request) == 1 or request[0] in _KEYLESS:
        return None
    return key_slot(request[2 if request[0] == "OBJECT" else 1])


class Scan:
    """A scan of the keys of a node, whose cursor means nothing to other nodes or after a restart.

    Args:
        link: A link to the node.
        options: The options of SCAN.
        name: The server's name in messages.

    Attributes:
        is_done: Whether the last page was read.
    """

    def __init__(self, link: Link, options: Sequence[Any], name: str) -> None:
        self._link = link
        self._options = options
        self._name = name
        self._cursor: Any = 0
        self.is_done = False

    def send(self) -> None:
        """Ask for the next page."""
        self._link.send(pack(("SCAN", self._cursor, *self._options)))

    def receive(self) -> list[bytes]:
        """Read a page."""
        reply = self._link.read()
        if isinstance(reply, rx.ResponseError):
            raise translate(reply, self._name)
        self._cursor, page = reply
        self.is_done = int(self._cursor) == 0
        keys: list[bytes] = page
        return keys


class _QueueConnection(FollowingConnection):
    """A connection for the commands of one queue.

    Args:
        cluster: The cluster.
        queue: The queue's name.
        locator: Finds the node for its commands.
    """

    is_cluster = True

    def __init__(self, cluster: ClusterConnection, queue: bytes, locator: SlotLocator) -> None:
        super().__init__(cluster._shared, locator)
        self._cluster = cluster
        self._keys = QueueKeys(queue)
        self.progress, self.on_wait = cluster.progress, cluster.on_wait

    @property
    def root(self) -> Connection:
        return self._cluster

    def for_queue(self, name: bytes) -> Connection:
        return self._cluster.for_queue(name)


class TaggedConnection(_QueueConnection):
    """A connection to the primary that has the slot of a queue."""

    def __init__(self, cluster: ClusterConnection, queue: bytes) -> None:
        slot = key_slot(QueueKeys(queue).main)
        super().__init__(cluster, queue, SlotLocator(cluster.topology, slot))

    def scan(self, *options: Any) -> Iterator[list[bytes]]:
        """Pages of the keys of the node that has the slot; again from the start if it moves."""
        patience = self._patience()
        # While the slot moves, a node refuses a key that it does not have.
        probe = ("EXISTS", self._keys.absent)
        while True:
            try:
                with self._lend(writes=False) as link:
                    scan = Scan(link, options, self.name)
                    while not scan.is_done:
                        scan.send()
                        link.send(pack(probe))
                        page, probed = scan.receive(), link.read()
                        if case_of(probed, writes=False) is not None:
                            self._follow(probed)
                            raise translate(probed, self.name)
                        patience = self._patience()
                        yield page
                return
            except errors.ServerError as error:
                if not self._wait_to_retry(error, patience):
                    raise


class UntaggedConnection(_QueueConnection):
    """A connection to the keys of a name without a hash tag, which are in many slots.

    Such a queue can be looked at with single commands, as far as that goes. Everything else needs
    its keys in one slot, and is refused with the name to use.
    """

    def __init__(self, cluster: ClusterConnection, queue: bytes) -> None:
        super().__init__(cluster, queue, AnyPrimary(cluster.topology))

    def scan(self, *options: Any) -> Iterator[list[bytes]]:
        return self._cluster.scan(*options)

    def run_each(self, *_: Any, **__: Any) -> Iterator[Any]:
        raise self._refusal()

    def transact_each(self, *_: Any) -> Iterator[Any]:
        raise self._refusal()

    def open_link(self) -> Link:
        raise self._refusal()

    def _transaction(self, commands: Sequence[Command]) -> list[Any]:
        return self._batch(commands)

    def _send(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:  # noqa: ARG002
        for request in requests:
            is_script = isinstance(request, ScriptCommand)
            if is_script or (may_write(request) and _slot_of(request) is not None):
                raise self._refusal()
        return [self._reply_to(request) for request in requests]

    def _reply_to(self, request: Command) -> Any:
        if request[0] != "EXISTS" or len(request) == 2:
            return self._cluster._send([request], writes=False)[0]
        counts = self._cluster._send([("EXISTS", key) for key in request[1:]], writes=False)
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
