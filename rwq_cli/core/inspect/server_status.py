"""A server's version, memory, eviction and persistence; managed services may hide some of it."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


class Durability(NamedTuple):
    """A server's eviction and persistence; None if unknown."""

    # Its memory limit; 0 for none.
    maxmemory_bytes: int | None
    # Its policy at the limit, such as `noeviction` or `allkeys-lru`.
    eviction: str | None
    # Whether it saves its data to disk, and whether it does so with an append-only file.
    persists: bool | None
    appends: bool | None = None
    # Whether it could not save its data the last time.
    is_failing: bool = False

    @property
    def may_evict(self) -> bool:
        """Whether its policy is known and allows it to evict keys at a memory limit."""
        return self.eviction not in (None, "noeviction")


class ServerStatus(NamedTuple):
    """The status of a server, or of one of a cluster; None for what it does not report."""

    # Such as `Valkey 8.1.1`.
    version: str | None
    # None for a cluster, whose servers differ.
    used_bytes: int | None
    durability: Durability


def server_status(connection: "Connection") -> ServerStatus:
    """Read the status of a server."""
    *sections, saves = connection.call_all(
        [
            *(("INFO", section) for section in ("server", "memory", "persistence")),
            ("CONFIG", "GET", "save"),
        ],
        return_errors=True,
    )
    info: dict[str, Any] = {}
    for section in sections:
        info.update(section if isinstance(section, dict) else {})
    # When snapshots are taken; empty for never.
    pair = list(saves.values()) if isinstance(saves, dict) else saves
    rules = pair[-1] if isinstance(pair, list) and pair else None
    appends = info.get("aof_enabled")
    persists = (
        None if appends is None or (rules is None and not appends) else bool(appends or rules)
    )
    durability = Durability(
        info.get("maxmemory"),
        info.get("maxmemory_policy"),
        persists,
        None if appends is None else bool(appends),
        "err" in (info.get("aof_last_write_status"), info.get("rdb_last_bgsave_status")),
    )
    used = None if connection.is_cluster else info.get("used_memory")
    return ServerStatus(version_of(info), used, durability)


def uptime_of(info: object) -> int | None:
    """How long the server has been up, seconds, from a reply to INFO; None if that says nothing."""
    up_s = info.get("uptime_in_seconds") if isinstance(info, dict) else None
    return up_s if isinstance(up_s, int) else None


def version_of(info: object) -> str | None:
    """The server and its version, from a reply to INFO; None if it does not say."""
    if not isinstance(info, dict) or not (info.keys() & {"valkey_version", "redis_version"}):
        return None
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"
