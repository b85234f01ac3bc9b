"""A server's settings for eviction and persistence."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


class Durability(NamedTuple):
    """A server's eviction and persistence; None if unknown: managed services may hide them.

    Attributes:
        maxmemory_bytes: Its memory limit; 0 for none.
        eviction: Its policy at the limit, such as `noeviction` or `allkeys-lru`.
        persists: Whether it saves its data to disk.
        appends: Whether it does so with an append-only file.
        is_failing: Whether it could not save its data the last time.
    """

    maxmemory_bytes: int | None
    eviction: str | None
    persists: bool | None
    appends: bool | None = None
    is_failing: bool = False

    @property
    def may_evict(self) -> bool:
        """Whether its policy is known and allows it to evict keys at a memory limit."""
        return self.eviction not in (None, "noeviction")


def durability_of(connection: "Connection") -> Durability:
    """Read these settings from a server.

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
    pair = list(saves.values()) if isinstance(saves, dict) else saves
    rules = pair[-1] if isinstance(pair, list) and pair else None
    appends = info.get("aof_enabled")
    persists = (
        None if appends is None or (rules is None and not appends) else bool(appends or rules)
    )
    return Durability(
        info.get("maxmemory"),
        info.get("maxmemory_policy"),
        persists,
        None if appends is None else bool(appends),
        "err" in (info.get("aof_last_write_status"), info.get("rdb_last_bgsave_status")),
    )
