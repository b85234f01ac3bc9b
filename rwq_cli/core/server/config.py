"""How a server is set to treat a queue's keys: evict them, save them, spread them."""

from dataclasses import dataclass
from typing import Any

from rwq_cli.core.server.connection import Connection


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How safe keys are on a server. None is unknown: managed services may refuse to say.

    Attributes:
        maxmemory_bytes: The limit of its memory; 0 for none.
        eviction: What it does at the limit, such as `noeviction` or `allkeys-lru`.
        persists: Whether it saves its data to disk.
    """

    maxmemory_bytes: int | None
    eviction: str | None
    persists: bool | None

    @property
    def may_evict(self) -> bool:
        """Whether it is known to delete keys at its memory limit, or would if it had one."""
        return self.eviction not in (None, "noeviction")


def server_config(connection: Connection) -> ServerConfig:
    """Ask a server how it is set up.

    Raises:
        ServerError: The connection was lost.
    """
    *sections, saves = connection.call_all(
        [("INFO", "memory"), ("INFO", "persistence"), ("CONFIG", "GET", "save")], return_errors=True
    )
    info: dict[str, Any] = {}
    for section in sections:
        info.update(section if isinstance(section, dict) else {})
    # When snapshots are taken; empty for never.
    rules = saves[1] if isinstance(saves, list) and len(saves) == 2 else None
    appends = info.get("aof_enabled")
    persists: bool | None = None
    if appends:
        persists = True
    elif appends is not None and rules is not None:
        persists = bool(rules)
    return ServerConfig(info.get("maxmemory"), info.get("maxmemory_policy"), persists)


def hash_tag(name: bytes) -> bytes | None:
    """The part of a queue's name that decides its keys' slot in a cluster.

    A cluster hashes what is between the first `{` and the next `}`, if that is not empty.

    Returns:
        The tag; None if there is none, so that the keys are in different slots.
    """
    _, opened, rest = name.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return tag if opened and closed and tag else None
