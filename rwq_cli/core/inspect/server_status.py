"""A server's version, memory, eviction and persistence, which managed services may hide; and what
it supports and its user may do, without changing anything."""

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.errors import PermissionDenied, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.lua import command_groups

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


class ServerStatus(NamedTuple):
    """The status of a server, or of one of a cluster; None for what it does not report."""

    # Its memory limit; 0 for none.
    maxmemory_bytes: int | None
    # Its policy at the limit, such as `noeviction` or `allkeys-lru`.
    eviction: str | None
    # Whether it saves its data to disk, and whether it does so with an append-only file.
    persists: bool | None
    appends: bool | None = None
    # Whether it could not save its data the last time.
    is_failing: bool = False
    # Such as `Valkey 8.1.1`.
    version: str | None = None
    # None for a cluster, whose servers differ.
    used_bytes: int | None = None


def server_status(connection: "Connection") -> ServerStatus:
    asked = [("INFO", section) for section in ("server", "memory", "persistence")]
    *sections, saves = connection.call_all([*asked, ("CONFIG", "GET", "save")], return_errors=True)
    info: dict[str, Any] = {}
    for section in sections:
        info.update(section if isinstance(section, dict) else {})
    # When snapshots are taken; empty for never.
    pair = list(saves.values()) if isinstance(saves, dict) else saves
    rules = pair[-1] if isinstance(pair, list) and pair else None
    appends = info.get("aof_enabled")
    is_unknown = appends is None or (rules is None and not appends)
    version = None
    for name in ("Redis", "Valkey"):
        version = f"{name} {info[key]}" if (key := f"{name.lower()}_version") in info else version
    return ServerStatus(
        info.get("maxmemory"),
        info.get("maxmemory_policy"),
        None if is_unknown else bool(appends or rules),
        None if appends is None else bool(appends),
        "err" in (info.get("aof_last_write_status"), info.get("rdb_last_bgsave_status")),
        version,
        None if connection.is_cluster else info.get("used_memory"),
    )


_PINGS = 5


class ServerAccess(NamedTuple):
    """What can be done on a server; None for what it does not say."""

    version: str | None
    # The shortest of a few round trips.
    latency_ms: float
    user: str | None
    # Why the server accepts no writes, and why idle times are unavailable; None if that is not so.
    no_writes_because: str | None
    # Whether reads can be kept from resetting idle times.
    has_no_touch: bool
    no_times_because: str | None
    # The commands of rwq that the user may not run, each with the reason; None if no queue was
    # named.
    denied: Mapping[str, str] | None


def server_access(connection: "Connection", queue: Queue | None) -> ServerAccess:
    """Find out what can be done on a server, and with the keys of a queue."""
    if queue is not None:
        connection = queue.connection
    # The connection is made here.
    connection.call("PING")
    latencies = []
    for _ in range(_PINGS):
        started_s = perf_counter()
        connection.call("PING")
        latencies.append(perf_counter() - started_s)
    times = [("OBJECT", "IDLETIME", queue.keys.item(b"x"))] if queue is not None else []
    replication, user, *idle = connection.call_all(
        [("INFO", "replication"), ("ACL", "WHOAMI"), *times], return_errors=True
    )
    status = server_status(connection)
    no_writes = no_times = None
    if isinstance(replication, dict) and replication.get("slave_read_only"):
        place = f"{replication.get('master_host')}:{replication.get('master_port')}"
        no_writes = f"it is a read-only replica of {place}"
    if any(isinstance(reply, PermissionDenied) for reply in idle):
        no_times = "this user may not run OBJECT IDLETIME"
    if "lfu" in (status.eviction or ""):
        no_times = f"its maxmemory-policy is {status.eviction}"
    return ServerAccess(
        version=status.version,
        latency_ms=1000 * min(latencies),
        user=text_of(user) if isinstance(user, bytes) else None,
        no_writes_because=no_writes,
        has_no_touch=connection.set_no_touch(),
        no_times_because=no_times,
        denied=None if queue is None else _denied(queue),
    )


def _denied(queue: Queue) -> dict[str, str] | None:
    """The commands that the user may not run, with the reasons; None if the server does not say."""
    keys, groups_of = queue.keys, command_groups()
    try:
        # As if a queue were moved to itself: its keys are those that are checked.
        reply = queue.run("access", dry_run=True, marks=keys.undo(b"x"), to=keys.name)
    except PermissionDenied as error:
        return dict.fromkeys(groups_of, error.message)
    if reply is None:
        return None
    words = list(map(text_of, reply))
    reasons = {
        group: f"{command} on {key}" if key else command
        for group, command, key in zip(words[::3], words[1::3], words[2::3], strict=True)
    }
    return {
        command: next(reasons[group] for group in groups if group in reasons)
        for command, groups in groups_of.items()
        if any(group in reasons for group in groups)
    }
