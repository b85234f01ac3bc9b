"""Redis Cluster: which node has a slot, and connections to the slots of queues."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import chain, count
from time import monotonic
from typing import Any

from redis import exceptions as rx
from redis.cluster import ClusterNode, NodesManager
from redis.connection import ConnectionPool
from redis.crc import key_slot

from rwq_cli.core import errors
from rwq_cli.core.keys import QueueKeys, hash_tag
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction, writes
from rwq_cli.core.server.connection import Connection, Page
from rwq_cli.core.server.endpoint import Patience
from rwq_cli.core.server.error_mapping import is_unknown, unreachable
from rwq_cli.core.server.link import in_time
from rwq_cli.core.server.patience import CASES, connecting

_SOON = "try again in a moment"
# So long, seconds, at least and at most, a slot is not asked that was waited for in vain.
_LOST_PAUSES_S = 0.5, 30.0
_KEYLESS = ("ACL", "CLIENT", "CLUSTER", "CONFIG", "INFO")


class ClusterConnection(Connection):
    """A connection to all nodes of a cluster, which redis-py finds.

    Each call goes to the node that has its first key; one without keys, to any primary. `hosts` are
    some of the nodes, which are asked in turn within the time for connecting.
    """

    is_cluster = is_found_again = True
    # Of a connection to the primary that has a slot: that to all nodes, and the slot.
    _cluster: "ClusterConnection | None" = None
    _slot: int | None = None

    def __init__(
        self, hosts: Sequence[tuple[str, int]], name: str, settings: Mapping[str, Any]
    ) -> None:
        super().__init__(None, name)
        # The cluster's; `name` is that of the last node.
        self._whole_name = name
        # redis-py gives each node its own policy: no command is sent twice.
        self._settings = {key: settings[key] for key in settings if key != "retry"}
        self._settings["connection_class"] = in_time(settings["connection_class"])
        # The connections to slots share the hosts and what was read last.
        self._hosts = dict.fromkeys(hosts)
        self._read_last: list[NodesManager] = []
        # The slots that were waited for in vain: why, and when to ask them again.
        self._lost: dict[int | None, tuple[errors.ServerError, float]] = {}

    @property
    def root(self) -> Connection:
        return self._cluster or self

    def _for_slot(self, slot: int | None, probes: Sequence[Command] = ()) -> "ClusterConnection":
        """A connection to the primary that has a slot, with the settings that this one has now."""
        other = copy(self)
        other._cluster, other._slot, other._probes = self, slot, probes
        return other

    def client(self) -> Any:
        slots: dict[int, list[ClusterNode]] = self._read().slots_cache
        self.shared.was_found = True
        nodes = next(iter(slots.values()), []) if self._slot is None else slots.get(self._slot)
        if not nodes:
            why = f"{self._whole_name} has no node for slot {self._slot} now"
            raise errors.Unavailable(why, _SOON)
        self.name = self._name_of(nodes[0])
        return self._client_of(nodes[0])

    def _client_of(self, node: ClusterNode) -> Any:
        if node.redis_connection is None:
            manager: Any = self._read()
            manager.create_redis_connections([node])
        return node.redis_connection

    def _name_of(self, node: ClusterNode) -> str:
        return f"{node.host}:{node.port} of {self._whole_name}"

    def close(self) -> None:
        """Read the slots again when they are needed next, over new connections."""
        self.shared.scripts.clear()
        managers = self._read_last[:]
        self._read_last.clear()
        for node in chain.from_iterable(list(read.nodes_cache.values()) for read in managers):
            # The hosts that were named may be gone by now, or behind other addresses.
            self._hosts[node.host, int(node.port)] = None
            if node.redis_connection is not None:
                node.redis_connection.connection_pool.disconnect(inuse_connections=False)

    def _read(self) -> NodesManager:
        if self._read_last:
            return self._read_last[0]
        make_node: Any = ClusterNode
        host_s = self.deadline.limited(self.connect_timeout_s / len(self._hosts))
        connecting.timeout_s = host_s
        try:
            nodes = [make_node(host, port) for host, port in self._hosts]
            # As from a URL: the settings are those of a pool.
            manager = NodesManager(nodes, from_url=True, **self._settings)
        except (rx.RedisClusterException, rx.RedisError, OSError, IndexError) as error:
            raise self._unreadable(error, host_s) from error
        self._read_last[:] = [manager]
        return manager

    def _unreadable(self, error: Exception, timeout_s: float) -> errors.RwqError:
        """Why the slots could not be read: redis-py's exception has the last node's as a cause."""
        if isinstance(error, IndexError):
            return errors.Unavailable(f"{self._whole_name} has no slots", _SOON)
        cause = error.__cause__ or error
        reason = cause.__context__ if isinstance(cause, rx.RedisClusterException) else cause
        is_disabled = isinstance(reason, rx.ResponseError) and "support disabled" in str(reason)
        if is_disabled or is_unknown(reason, "CLUSTER"):
            hint = "use redis:// for a single server, redis+sentinel:// for Sentinels"
            return errors.ServerError(f"{self._whole_name} is not a Redis Cluster", hint)
        host, port = next(iter(self._hosts))
        pool = ConnectionPool(**self._settings, host=host, port=port)
        reason = reason if isinstance(reason, Exception) else error
        return unreachable(reason, self._whole_name, timeout_s, pool)

    def nodes(self) -> Sequence[tuple[Connection, bytes]]:
        tags = (b"%d" % number for number in count())
        return [
            (self._to(node), next(tag for tag in tags if key_slot(tag) in slots))
            for node, slots in self._shares().values()
        ]

    def for_queue(self, name: bytes) -> Connection:
        if hash_tag(name) is None:
            # It can be looked at by single commands; its handle refuses all else.
            return self
        keys = QueueKeys(name)
        # While the slot moves, a node refuses a key that it does not have.
        return self._for_slot(key_slot(keys.main), [("EXISTS", keys.absent)])

    def send(self, requests: Sequence[Command], patience: Patience | None = None) -> list[Any]:
        """Send requests; if to several slots, the error of one is the reply to each of its own.

        All slots are asked before one that fails is waited for. One that was waited for in vain is
        asked only now and then from then on, without patience, until it answers.
        """
        if self._cluster is not None:
            return super().send(requests, patience)
        by_slot: dict[int | None, list[int]] = {}
        for index, request in enumerate(requests):
            by_slot.setdefault(_slot_of(request), []).append(index)
        if len(by_slot) == 1:
            (slot,) = by_slot
            return self._for_slot(slot).send(requests, patience)
        replies: list[Any] = [None] * len(requests)

        def ask(slot: int | None, indexes: Sequence[int], patience: Patience) -> None:
            answers = self._ask(slot, [requests[index] for index in indexes], patience)
            for index, answer in zip(indexes, answers, strict=True):
                replies[index] = answer

        for slot, indexes in by_slot.items():
            ask(slot, indexes, Patience(self, waits=False))
        patience = patience or Patience(self)
        for slot, indexes in by_slot.items():
            pending = [index for index in indexes if self._may_pass(replies[index])]
            if pending and slot not in self._lost:
                error = self._error_in(replies[pending[0]], requests[pending[0]])
                is_write = any(writes(requests[index]) for index in pending)
                if patience.may_repeat(error, writes=is_write):
                    ask(slot, pending, patience)
                if self._may_pass(replies[pending[0]]):
                    self._lost[slot] = error, monotonic() + _LOST_PAUSES_S[0]
            elif not pending:
                self._lost.pop(slot, None)
        return replies

    def _ask(
        self, slot: int | None, requests: Sequence[Command], patience: Patience
    ) -> Sequence[Any]:
        """Send requests to a slot, unless it was lost just now; return replies, or its error."""
        error, again_s = self._lost.get(slot, (None, 0.0))
        began_s = monotonic()
        if error is not None and began_s < again_s:
            unsent = errors.Unavailable(error.message, error.hint)
            unsent.refusal = error.refusal
            return [unsent] * len(requests)
        try:
            replies: Sequence[Any] = self._for_slot(slot).send(requests, patience)
        except errors.ServerError as failure:
            replies = [failure] * len(requests)
        if error is not None:
            least_s, most_s = _LOST_PAUSES_S
            now_s = monotonic()
            self._lost[slot] = error, now_s + min(most_s, max(least_s, 4 * (now_s - began_s)))
        return replies

    def _error_in(self, reply: Any, request: Command) -> errors.ServerError:
        return reply if isinstance(reply, errors.ServerError) else self.error_of(reply, request)

    def _may_pass(self, reply: Any) -> bool:
        """Whether a reply is a failure after which a request may be answered later."""
        is_failure = isinstance(reply, errors.ServerError)
        return reply.refusal in CASES if is_failure else self.did_not_run(reply)

    def _transact(self, commands: Sequence[Command]) -> list[Any]:
        # The keys may be in several slots.
        return self.send(commands) if self._cluster is None else super()._transact(commands)

    def _pages(self, scan: Command, options: Sequence[Any]) -> Iterator[Page]:
        """Scan each primary; one that has gained a slot meanwhile again, for what moved there."""
        if self._cluster is not None:
            yield from super()._pages(scan, options)
            return
        before = self._shares()
        for node, _ in before.values():
            yield from self._to(node)._pages(scan, options)
        for name, (node, slots) in self._shares().items():
            if name not in before or slots - before[name][1]:
                yield from self._to(node)._pages(scan, options)

    def _shares(self) -> dict[str, tuple[ClusterNode, set[int]]]:
        """The primaries that have slots now, by their names, with these."""
        self.close()
        shares: dict[str, tuple[ClusterNode, set[int]]] = {}
        for slot, nodes in self._read().slots_cache.items():
            if nodes:
                shares.setdefault(nodes[0].name, (nodes[0], set()))[1].add(slot)
        return shares

    def _to(self, node: ClusterNode) -> Connection:
        connection = Connection(self._client_of(node), self._name_of(node))
        connection.connect_timeout_s = self.connect_timeout_s
        connection.reply_timeout_s = self.reply_timeout_s
        connection.deadline, connection.cut = self.deadline, self.cut
        return connection


def _slot_of(request: Command) -> int | None:
    """The slot of the first key of a request; None if it has no key."""
    if isinstance(request, Transaction):
        return _slot_of(request[0])
    if isinstance(request, ScriptCommand) or request[0] == "EVAL":
        return key_slot(request[3])
    if len(request) == 1 or request[0] in _KEYLESS:
        return None
    return key_slot(request[2 if request[0] == "OBJECT" else 1])
