"""What a server says of itself: memory, evictions, persistence, clients, whether it takes writes;
and what it supports and its user may do. Nothing is changed. Managed services may hide any of it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.errors import PermissionDenied, ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.health import Refusal, ServerStatus
from rwq_cli.core.lua import command_groups
from rwq_cli.core.server.commands import Command

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


# By the code of an error reply to a write.
_REFUSALS = {
    "OOM": Refusal.OUT_OF_MEMORY,
    "READONLY": Refusal.READONLY,
    "MISCONF": Refusal.WRITE_ERRORS,
    "NOREPLICAS": Refusal.TOO_FEW_REPLICAS,
}
# A write that changes nothing, because its key never exists; the server refuses it as any other.
_TRY_WRITE = """local reply = redis.pcall('SET', KEYS[1], '', 'XX')
return reply and reply.err or 'OK'"""
_ABSENT = b"rwq:absent"


def status_commands(absent_key: bytes = _ABSENT) -> list[Command]:
    """The commands whose replies `status_from` reads.

    Args:
        absent_key: A key that never exists and that the user may write, such as `Q:absent`.
    """
    try_write = ("EVAL", _TRY_WRITE, 1, absent_key)
    return [("INFO",), ("INFO", "commandstats"), ("CONFIG", "GET", "save"), try_write]


def server_status(connection: "Connection", absent_key: bytes = _ABSENT) -> ServerStatus:
    """Read the status of a server or a node, in one round trip."""
    return status_from(connection.call_all(status_commands(absent_key), return_errors=True))


def status_from(replies: Sequence[Any]) -> ServerStatus:
    """The status that follows from the replies to `status_commands`; refusals are unknown."""
    info, stats, saves, written = replies
    info = info if isinstance(info, dict) else {}
    stats = stats if isinstance(stats, dict) else {}
    # When snapshots are taken; empty for never.
    pair = list(saves.values()) if isinstance(saves, dict) else saves
    rules = pair[-1] if isinstance(pair, list) and pair else None
    appends = info.get("aof_enabled")
    is_unknown = appends is None or (rules is None and not appends)
    version = None
    for name in ("Redis", "Valkey"):
        version = f"{name} {info[key]}" if (key := f"{name.lower()}_version") in info else version
    used = info.get("used_memory")
    now_s = info.get("server_time_usec", 0) // 1_000_000
    started_s, saved_s = now_s - info.get("uptime_in_seconds", 0), info.get("rdb_last_save_time", 0)
    flushes = (stats.get(f"cmdstat_{name}", {}) for name in ("flushdb", "flushall"))
    is_replica = bool(info.get("slave_read_only"))
    status = ServerStatus(
        version=version,
        uptime_s=info.get("uptime_in_seconds"),
        used_bytes=None if used is None else used - info.get("mem_not_counted_for_evict", 0),
        maxmemory_bytes=info.get("maxmemory"),
        eviction=info.get("maxmemory_policy"),
        evicted=info.get("evicted_keys"),
        persists=None if is_unknown else bool(appends or rules),
        appends=None if appends is None else bool(appends),
        is_failing="err" in (info.get("aof_last_write_status"), info.get("rdb_last_bgsave_status")),
        # It starts with the time of its start.
        last_save_s=max(0, now_s - saved_s) if now_s and saved_s > started_s + 1 else None,
        unsaved=info.get("rdb_changes_since_last_save"),
        loaded=info.get("rdb_last_load_keys_loaded"),
        flushes=sum(stat.get("calls", 0) for stat in flushes) if stats else None,
        clients=info.get("connected_clients"),
        maxclients=info.get("maxclients"),
        replicates=f"{info.get('master_host')}:{info.get('master_port')}" if is_replica else None,
    )
    word = text_of(written).split()[0].lstrip("-") if isinstance(written, bytes) else ""
    if word == "OK" or word in _REFUSALS:
        refusal = _REFUSALS.get(word)
        return status._replace(accepts_writes=refusal is None, refusal=refusal)
    refusal = _computed_refusal(status)
    return status._replace(accepts_writes=False if refusal else None, refusal=refusal)


def server_statuses(connection: "Connection", absent_key: bytes = _ABSENT) -> list[ServerStatus]:
    """Read the status of a server, or of each node of a cluster that has slots.

    A node that does not answer has only its address.
    """
    if not connection.root.is_cluster:
        return [server_status(connection, absent_key)]
    statuses = []
    for node, tag in connection.root.nodes():
        try:
            status = server_status(node, b"{%b}:absent" % tag)
        except ServerError:
            status = ServerStatus()
        statuses.append(status._replace(node=node.name.partition(" ")[0]))
    return statuses


def status_of_all(statuses: Sequence[ServerStatus]) -> ServerStatus:
    """The status of a server; of the nodes of a cluster, which differ, the troubled one."""
    if len(statuses) == 1:
        return statuses[0]
    troubled = next((status for status in statuses if status.refusal), statuses[0])
    return ServerStatus(
        version=troubled.version,
        persists=troubled.persists,
        appends=troubled.appends,
        is_failing=any(status.is_failing for status in statuses),
        accepts_writes=troubled.accepts_writes,
        refusal=troubled.refusal,
        node=troubled.node,
    )


def _computed_refusal(status: ServerStatus) -> Refusal | None:
    """Why a server refuses writes, where a write cannot be tried; None if nothing says so."""
    if status.replicates:
        return Refusal.READONLY
    share = status.memory_share
    if share is not None and share >= 1 and status.eviction == "noeviction":
        return Refusal.OUT_OF_MEMORY
    return Refusal.WRITE_ERRORS if status.is_failing else None


_ROUND_TRIPS = 5


class ServerAccess(NamedTuple):
    """What can be done on a server; None for what it does not say."""

    status: ServerStatus
    # The shortest of a few round trips.
    latency_ms: float
    user: str | None
    # Whether reads can be kept from resetting idle times.
    has_no_touch: bool
    # Why idle times are unavailable; None if that is not so.
    no_times_because: str | None
    # The commands of rwq that the user may not run, each with the reason; None if no queue was
    # named.
    denied: Mapping[str, str] | None


def server_access(connection: "Connection", queue: Queue | None) -> ServerAccess:
    """Find out what can be done on a server, and with the keys of a queue."""
    if queue is not None:
        connection = queue.connection
    # The connection is made here. A refusal takes as long as an answer; but PING is refused by a
    # server that cannot save its data.
    with suppress(PermissionDenied):
        connection.call("TIME")
    latencies = []
    for _ in range(_ROUND_TRIPS):
        started_s = perf_counter()
        connection.call_all([("TIME",)], return_errors=True)
        latencies.append(perf_counter() - started_s)
    times = [("OBJECT", "IDLETIME", queue.keys.item(b"x"))] if queue is not None else []
    user, *idle = connection.call_all([("ACL", "WHOAMI"), *times], return_errors=True)
    status = server_status(connection, _ABSENT if queue is None else queue.keys.absent)
    no_times = None
    if any(isinstance(reply, PermissionDenied) for reply in idle):
        no_times = "this user may not run OBJECT IDLETIME"
    if "lfu" in (status.eviction or ""):
        no_times = f"its maxmemory-policy is {status.eviction}"
    return ServerAccess(
        status=status,
        latency_ms=1000 * min(latencies),
        user=text_of(user) if isinstance(user, bytes) else None,
        has_no_touch=connection.set_no_touch(),
        no_times_because=no_times,
        denied=None if queue is None else _denied(queue),
    )


def denied_groups(queue: Queue) -> dict[str, str] | None:
    """The scripts (`ops/NAME`) and groups of `NEEDS` that the user may not run, with the reasons;
    None if the server does not say."""
    keys = queue.keys
    # As if a queue were moved to itself: its keys are those that are checked.
    reply = queue.run("access", dry_run=True, marks=keys.undo(b"x"), to=keys.name)
    if reply is None:
        return None
    words = list(map(text_of, reply))
    return {
        group: f"{command} on {key}" if key else command
        for group, command, key in zip(words[::3], words[1::3], words[2::3], strict=True)
    }


def _denied(queue: Queue) -> dict[str, str] | None:
    """The commands that the user may not run, with the reasons; None if the server does not say."""
    groups_of = command_groups()
    try:
        reasons = denied_groups(queue)
    except PermissionDenied as error:
        # It may run no script.
        return dict.fromkeys(groups_of, error.message.rpartition(f"{error.refusal} ")[2])
    if reasons is None:
        return None
    return {
        command: next(reasons[group] for group in groups if group in reasons)
        for command, groups in groups_of.items()
        if any(group in reasons for group in groups)
    }
