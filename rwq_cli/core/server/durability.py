"""How safe keys are on a server: whether it may evict them, and whether it saves them."""

from dataclasses import dataclass
from typing import Any

from rwq_cli.core.server.connection import Connection


@dataclass(frozen=True, slots=True)
class Durability:
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


def durability_of(connection: Connection) -> Durability:
    """Ask a server for these settings.

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
    return Durability(info.get("maxmemory"), info.get("maxmemory_policy"), persists)
