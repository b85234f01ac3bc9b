"""Private clusters and Sentinels for the tests, on free ports of the loopback interface.

Each server is started, and ended, by the tests; see `tests.servers` for single ones.
"""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest
import redis
from redis.crc import key_slot

from tests.driver import until
from tests.servers import HOST, START_TIMEOUT_S, PrivateServer, ending_with_block, server_binary

PORTS = (20_000, 32_768)
# Hypothesis sets the seed of the shared one.
RANDOM = SystemRandom()
SLOTS = 16384
# After this time a server that does not answer is replaced by its replica. With shorter times, that
# happens on a busy machine, too.
NODE_TIMEOUT_MS = 1500


@contextmanager
def reserved_ports(count: int) -> Iterator[list[int]]:
    """Ports that nobody else gets while the block runs, below those of outgoing connections.

    A server of the tests does, also when it is started again: it may share an address that is bound
    and not listened on.
    """
    with ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            holder = stack.enter_context(socket.socket())
            with suppress(OSError):
                holder.bind((HOST, RANDOM.randrange(*PORTS)))
                # Only after it was bound: nobody else may have it.
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                ports.append(holder.getsockname()[1])
        yield ports


def _skip_before_7() -> None:
    """Redis 6.2 has no `cluster-port`, and its Sentinels cannot be hurried."""
    version = subprocess.run([server_binary(), "--version"], capture_output=True, check=True).stdout
    if b" v=6." in version:
        pytest.skip("clusters and Sentinels of the tests need Redis 7")


@dataclass
class PrivateCluster:
    """A cluster: its primaries, as they were at the start, and then their replicas."""

    nodes: list[PrivateServer]
    ids: list[str]
    ports: list[int]
    moving: "list[Moving]" = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its URL, without credentials."""
        return f"redis+cluster://{self.hosts}"

    @property
    def hosts(self) -> str:
        """The addresses of two nodes, as a URL has them."""
        return ",".join(f"{HOST}:{port}" for port in self.ports[:2])

    def call(self, number: int, *command: Any) -> Any:
        """Send a command to a node."""
        return self.nodes[number].call(*command)

    def owner(self, name: bytes | str) -> int:
        """The number of the node that now has the slot of a queue or key."""
        slot = key_slot(name.encode() if isinstance(name, str) else name)
        for number in range(len(self.nodes)):
            with suppress(redis.RedisError):
                for first, last, primary, *_ in self.call(number, "CLUSTER", "SLOTS"):
                    if first <= slot <= last and _text(primary[2]) == self.ids[number]:
                        return number
        raise AssertionError(f"no node has slot {slot}")

    def separate(self, name: str, other: str) -> None:
        """Put two empty queues on different nodes: an earlier test may have moved one."""
        if self.owner(name) == self.owner(other):
            Moving(self, other).finish()
        assert self.owner(name) != self.owner(other)

    def client(self, name: bytes | str) -> redis.Redis:
        """A plain client of the node that has the slot of a queue."""
        return self.nodes[self.owner(name)].client()

    def is_primary(self, number: int) -> bool:
        """Whether a node is a primary now."""
        return bool(self.call(number, "ROLE")[0] == b"master")

    def is_replicated(self, number: int) -> bool:
        """Whether the replica of a primary has everything that the primary has."""
        return _is_replicated(self.nodes[number].client())

    def is_ok(self) -> bool:
        """Whether every node that runs knows that all slots are served, and replicas follow."""
        return all(
            b"cluster_state:ok" in self._info(number, "CLUSTER", "INFO")
            and b"master_link_status:down" not in self._info(number, "INFO", "replication")
            for number, node in enumerate(self.nodes)
            if node.process is not None
        )

    def _info(self, number: int, *command: str) -> bytes:
        with self.nodes[number].client() as client:
            client.response_callbacks.clear()
            reply: bytes = client.execute_command(*command)
            return reply

    def flush(self) -> None:
        """Empty all primaries."""
        for number in range(len(self.nodes)):
            with suppress(redis.ReadOnlyError):
                self.call(number, "FLUSHALL")


@contextmanager
def running_cluster(
    primaries: int = 3, replicas: int = 3, *options: str, announced: Callable[[int], int] = int
) -> Iterator[PrivateCluster]:
    """A cluster of one's own while the block runs; `announced` gives the ports to announce.

    The nodes find their configuration written, which is quicker than to let them meet. All they
    wait for is the delay with which a primary that was started again accepts writes.
    """
    _skip_before_7()
    count = primaries + replicas
    ids = [f"{number:x}".rjust(40, "0") for number in range(1, count + 1)]
    with reserved_ports(2 * count) as both, ending_with_block() as (root, nodes):
        ports, buses = both[:count], both[count:]
        public = [announced(port) for port in ports]
        for number, bus in enumerate(buses):
            words = (
                *("--cluster-enabled", "yes", "--cluster-port", str(bus)),
                *("--cluster-node-timeout", str(NODE_TIMEOUT_MS)),
                *("--cluster-allow-replica-migration", "no"),
                *("--cluster-replica-validity-factor", "0"),
                *("--cluster-announce-port", str(public[number]), *options),
            )
            nodes.append(_on_port(root, ports[number], words))
            lines = (
                _node_line(other, number, primaries, ids, public, buses) for other in range(count)
            )
            configuration = f"{''.join(lines)}vars currentEpoch {primaries} lastVoteEpoch 0\n"
            (nodes[-1].folder / "nodes.conf").write_text(configuration)
        cluster = PrivateCluster(nodes, ids, public)
        for node in nodes:
            node.start()
        until(cluster.is_ok, "the cluster", START_TIMEOUT_S)
        yield cluster


def _on_port(root: Path, port: int, options: Sequence[str]) -> PrivateServer:
    """A server with a folder of its own, which replicates without a delay."""
    folder = root / str(port)
    folder.mkdir()
    words = (
        *("--port", str(port), "--bind", HOST, "--dir", str(folder), "--save", ""),
        *("--appendonly", "yes", "--repl-diskless-sync-delay", "0", *options),
    )
    return PrivateServer(folder, words, port)


def _node_line(
    other: int, me: int, primaries: int, ids: list[str], ports: list[int], buses: list[int]
) -> str:
    """The line of a node in another's configuration."""
    mine = "myself," if other == me else ""
    place = f"{ids[other]} {HOST}:{ports[other]}@{buses[other]}"
    if other >= primaries:
        primary = other % primaries
        return f"{place} {mine}slave {ids[primary]} 0 0 {primary + 1} connected\n"
    first, last = SLOTS * other // primaries, SLOTS * (other + 1) // primaries - 1
    return f"{place} {mine}master - 0 0 {other + 1} connected {first}-{last}\n"


class Moving:
    """The slot of a queue on its way to another primary, and some of its keys there already."""

    def __init__(
        self, cluster: PrivateCluster, name: str, *keys: bytes, to: int | None = None
    ) -> None:
        self._cluster = cluster
        self.slot, self.source = key_slot(name.encode()), cluster.owner(name)
        if to is None:
            nodes = range(len(cluster.nodes))
            to = next(n for n in nodes if n != self.source and cluster.is_primary(n))
        self.to = to
        self._set_slot(self.to, "IMPORTING", cluster.ids[self.source])
        self._set_slot(self.source, "MIGRATING", cluster.ids[self.to])
        cluster.moving.append(self)
        self._migrate(*keys)

    def _set_slot(self, number: int, *words: str) -> None:
        self._cluster.call(number, "CLUSTER", "SETSLOT", self.slot, *words)

    def _migrate(self, *keys: bytes, back: bool = False) -> None:
        source, to = (self.to, self.source) if back else (self.source, self.to)
        port = self._cluster.nodes[to].port
        if keys:
            self._cluster.call(source, "MIGRATE", HOST, port, "", 0, 5000, "KEYS", *keys)

    def keys(self, number: int, count: int = 1_000_000) -> list[bytes]:
        """The keys of the slot that a node has."""
        found: list[bytes] = self._cluster.call(
            number, "CLUSTER", "GETKEYSINSLOT", self.slot, count
        )
        return found

    def move(self, share: slice) -> None:
        """Move some of the keys, which are in order."""
        self._migrate(*sorted(self.keys(self.source))[share])

    def finish(self, *, pause_s: float = 0.0) -> None:
        """Move the other keys, a few at a time, and give the slot to its new node.

        All primaries are told, as valkey-cli does it: none says for a while what was before.
        """
        while keys := self.keys(self.source, 50):
            self._migrate(*keys)
            time.sleep(pause_s)
        others = set(range(len(self._cluster.nodes))) - {self.to, self.source}
        for number in (self.to, self.source, *filter(self._cluster.is_primary, others)):
            self._set_slot(number, "NODE", self._cluster.ids[self.to])
        self._cluster.moving.remove(self)

    def cancel(self) -> None:
        """Move all keys back."""
        # Else it would refuse them.
        self._set_slot(self.source, "STABLE")
        self._migrate(*self.keys(self.to), back=True)
        self._set_slot(self.to, "STABLE")
        self._cluster.moving.remove(self)


def _is_replicated(primary: redis.Redis) -> bool:
    with primary:
        info = primary.info("replication")
    return bool(info.get("slave0", {}).get("offset") == info["master_repl_offset"])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass
class PrivateSentinels:
    """A primary, as it was at the start, a replica, and three Sentinels that watch them."""

    servers: list[PrivateServer]
    sentinels: list[PrivateServer]

    SERVICE = "main"

    @property
    def hosts(self) -> str:
        """The Sentinels' addresses, as a URL has them."""
        return ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)

    @property
    def url(self) -> str:
        """The URL, without credentials."""
        return f"redis+sentinel://{self.hosts}/{self.SERVICE}/0"

    def primary(self) -> PrivateServer:
        """The server that is a primary and answers."""
        for server in self.servers:
            with suppress(redis.RedisError):
                if server.process is None:
                    continue
                if server.call("ROLE")[0] == b"master":
                    return server
        raise redis.ConnectionError("no primary")

    def ask(self, number: int, *command: Any) -> Any:
        """Send a command to a Sentinel."""
        return self.sentinels[number].call(*command)

    def hurry(self) -> bool:
        """Shorten the periods of the Sentinels: with those of seconds, they take half a minute."""
        periods = ("PING-PERIOD", 500, "ASK-PERIOD", 500, "PUBLISH-PERIOD", 500)
        for number in range(len(self.sentinels)):
            self.ask(number, "SENTINEL", "DEBUG", "INFO-PERIOD", 1000, *periods)
        return True

    def is_replicated(self) -> bool:
        """Whether the replica has everything that the primary has."""
        return _is_replicated(self.primary().client())

    def is_ready(self) -> bool:
        """Whether each Sentinel sees the others, a primary and its replica."""
        for number in range(len(self.sentinels)):
            flat = self.ask(number, "SENTINEL", "MASTER", self.SERVICE)
            state = (
                flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
            )
            state = {_text(key): _text(value) for key, value in state.items()}
            if (state["num-other-sentinels"], state["num-slaves"]) != ("2", "1"):
                return False
            if state["flags"] != "master":
                return False
        roles = [server.call("ROLE") for server in self.servers]
        return any(role[0] == b"slave" and role[3] == b"connected" for role in roles)

    def fail_over(self) -> None:
        """Have the Sentinels make the replica the primary, when it has everything."""
        until(self.is_replicated, "the replica")
        before, asked_s = self.primary(), 0.0
        address = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.SERVICE)
        named = self.ask(0, *address)

        def is_done() -> bool:
            nonlocal asked_s
            if self.primary() is not before:
                return True
            # They give up if the replica seems to be down, which it may on a busy machine. Once
            # they report the new primary, a second failover would go back to the old one.
            if time.monotonic() - asked_s > 3 and self.ask(0, *address) == named:
                asked_s = time.monotonic()
                self.ask(0, "SENTINEL", "FAILOVER", self.SERVICE)
            return False

        until(is_done, "the failover")


def _primary_and_replica(
    root: Path, ports: Sequence[int], public: Sequence[int], options: Sequence[str] = ()
) -> Iterator[PrivateServer]:
    for number, port in enumerate(ports):
        follows = ("--replicaof", f"{HOST} {ports[0]}") if number else ()
        announced = ("--replica-announce-port", str(public[number]))
        yield _on_port(root, port, (*announced, *follows, *options))


@dataclass
class PrivatePair:
    """A primary and its replica, in this order."""

    servers: list[PrivateServer]

    def fail_over(self) -> PrivateServer:
        """Have them change places, as for maintenance; returns the new primary."""
        old, new = self.servers
        until(lambda: new.call("ROLE")[3] == b"connected", "the replica")
        old.call("FAILOVER", "TO", HOST, new.port)
        until(lambda: new.call("ROLE")[0] == b"master", "the failover")
        self.servers.reverse()
        return new


@contextmanager
def running_pair() -> Iterator[PrivatePair]:
    """A primary and its replica while the block runs."""
    with reserved_ports(2) as ports, ending_with_block() as (root, servers):
        servers += _primary_and_replica(root, ports, ports)
        for server in servers:
            server.start()
        until(lambda: servers[1].call("ROLE")[3] == b"connected", "the replica", START_TIMEOUT_S)
        yield PrivatePair([*servers])


@contextmanager
def running_sentinels(
    *options: str, sentinel_lines: Sequence[str] = (), announced: Callable[[int], int] = int
) -> Iterator[PrivateSentinels]:
    """A primary, a replica and three Sentinels while the block runs, as `running_cluster`."""
    _skip_before_7()
    service = PrivateSentinels.SERVICE
    with reserved_ports(5) as ports, ending_with_block() as (root, servers):
        public = [announced(port) for port in ports[:2]]
        servers += _primary_and_replica(root, ports[:2], public, options)
        for port in ports[2:]:
            folder = root / str(port)
            folder.mkdir()
            lines = (
                *(f"port {port}", f"bind {HOST}", f"dir {folder}"),
                f"sentinel monitor {service} {HOST} {public[0]} 2",
                f"sentinel down-after-milliseconds {service} {NODE_TIMEOUT_MS}",
                f"sentinel failover-timeout {service} 3000",
                *sentinel_lines,
            )
            (folder / "sentinel.conf").write_text("\n".join(lines) + "\n")
            words = (str(folder / "sentinel.conf"), "--sentinel")
            servers.append(PrivateServer(folder, words, port))
        for server in servers:
            server.start()
        private = PrivateSentinels(servers[:2], servers[2:])
        until(private.hurry, "the Sentinels", START_TIMEOUT_S)
        until(private.is_ready, "the replica", START_TIMEOUT_S)
        yield private
