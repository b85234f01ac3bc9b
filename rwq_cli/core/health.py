"""The health of a server: what is read of it, and why it refuses writes."""

from enum import StrEnum
from typing import NamedTuple

# From this share of its limit on, memory is nearly full.
NEAR_LIMIT = 0.9


class Refusal(StrEnum):
    """Why a server refuses writes; the values are codes of findings."""

    OUT_OF_MEMORY = "out-of-memory"
    READONLY = "readonly"
    WRITE_ERRORS = "write-errors"
    TOO_FEW_REPLICAS = "too-few-replicas"


# What to do about each, also for the error of a command that was refused.
CURES = {
    Refusal.OUT_OF_MEMORY: "raise its maxmemory, or remove what can be spared",
    Refusal.READONLY: "point -u at the primary",
    Refusal.WRITE_ERRORS: "check its disk: it cannot save its data",
    Refusal.TOO_FEW_REPLICAS: "check its replicas: some are missing",
}


class ServerStatus(NamedTuple):
    """The status of a server, or of a node of a cluster; None for what it does not report.

    Attributes:
        version: Such as `Valkey 8.1.1`.
        uptime_s: Seconds since it started.
        used_bytes: The memory that counts towards its limit.
        maxmemory_bytes: The limit; 0 for none.
        eviction: The policy at the limit, such as `noeviction` or `allkeys-lru`.
        evicted: How many keys it has evicted since it started.
        persists: Whether it saves its data to disk.
        appends: Whether it does so with an append-only file.
        is_failing: Whether it could not save its data the last time.
        last_save_s: Seconds since the last save of this process; None if there was none, too.
        unsaved: How many changes were made since then.
        loaded: How many keys it loaded when it started; Redis 7 and later say it.
        flushes: How many FLUSHDB and FLUSHALL it ran since it started.
        clients: How many clients are connected.
        maxclients: How many may be.
        replicates: The address of its primary, if it is a replica that rejects writes.
        accepts_writes: Whether it runs commands that write.
        refusal: Why not.
        node: The address of the node of a cluster.
    """

    version: str | None = None
    uptime_s: int | None = None
    used_bytes: int | None = None
    maxmemory_bytes: int | None = None
    eviction: str | None = None
    evicted: int | None = None
    persists: bool | None = None
    appends: bool | None = None
    is_failing: bool = False
    last_save_s: int | None = None
    unsaved: int | None = None
    loaded: int | None = None
    flushes: int | None = None
    clients: int | None = None
    maxclients: int | None = None
    replicates: str | None = None
    accepts_writes: bool | None = None
    refusal: Refusal | None = None
    node: str | None = None

    @property
    def memory_share(self) -> float | None:
        """The share of the memory limit that is used; None without a limit."""
        if not self.maxmemory_bytes or self.used_bytes is None:
            return None
        return self.used_bytes / self.maxmemory_bytes
