"""A server's version, memory and persistence."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.server.durability import Durability, durability_of

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


class ServerStatus(NamedTuple):
    """The status of a server, or of one of a cluster; None for what it does not report."""

    # Such as `Valkey 8.1.1`.
    version: str | None
    # None for a cluster, whose servers differ.
    used_bytes: int | None
    durability: Durability


def server_status(connection: "Connection") -> ServerStatus:
    """Read the status of a server."""
    server, memory = connection.call_all(
        [("INFO", "server"), ("INFO", "memory")], return_errors=True
    )
    used = None
    if isinstance(memory, dict) and not connection.is_cluster:
        used = memory.get("used_memory")
    return ServerStatus(
        version_of(server) if isinstance(server, dict) else None,
        used,
        durability_of(connection),
    )


def uptime_of(info: object) -> int | None:
    """How long the server has been up, seconds, from a reply to INFO; None if that says nothing."""
    up_s = info.get("uptime_in_seconds") if isinstance(info, dict) else None
    return up_s if isinstance(up_s, int) else None


def version_of(info: Mapping[str, object]) -> str:
    """The server and its version, from the section `server` of INFO."""
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info.get('redis_version', 'of an unknown version')}"
