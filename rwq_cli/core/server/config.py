"""What a server is set to do with a queue's keys: evict them, keep them, spread them."""

from dataclasses import dataclass

from rwq_cli.core.server.connection import Connection


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How safe keys are on a server. None is unknown: managed services may refuse to say.

    Attributes:
        maxmemory_bytes: The limit of its memory; 0 for none.
        eviction: What it does at the limit, such as `noeviction` or `allkeys-lru`.
        persists: Whether it writes its data to disk.
    """

    maxmemory_bytes: int | None
    eviction: str | None
    persists: bool | None

    @property
    def may_evict(self) -> bool:
        """Whether it is known that it deletes keys when its memory is full.

        Without a limit it does so as soon as somebody sets one.
        """
        return self.eviction not in (None, "noeviction")


def server_config(connection: Connection) -> ServerConfig:
    """Ask a server how it is set up.

    Raises:
        ServerError: The connection was lost.
    """
    memory, persistence, saves = connection.call_all(
        [("INFO", "memory"), ("INFO", "persistence"), ("CONFIG", "GET", "save")], return_errors=True
    )
    told = _fields(memory)
    limit = told.get("maxmemory")
    appends = _fields(persistence).get("aof_enabled")
    persists: bool | None = None
    if str(appends) == "1":
        persists = True
    elif appends is not None and (rules := _save_rules(saves)) is not None:
        persists = bool(rules)
    return ServerConfig(
        maxmemory_bytes=None if limit is None else int(str(limit)),
        eviction=None if "maxmemory_policy" not in told else str(told["maxmemory_policy"]),
        persists=persists,
    )


def hash_tag(name: bytes) -> bytes | None:
    """What decides the slot of keys that begin with a queue's name, or None if that differs.

    A cluster hashes what is between the first `{` and the next `}`, if that is not empty.
    """
    _, opened, rest = name.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return tag if opened and closed and tag else None


def _fields(reply: object) -> dict[str, object]:
    """The fields of an INFO section, which redis-py reads and a bare client does not."""
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, bytes):
        return {}
    pairs = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines())
    return {name: value for name, colon, value in pairs if colon}


def _save_rules(reply: object) -> str | None:
    if isinstance(reply, dict):
        value = reply.get("save", reply.get(b"save"))
    elif isinstance(reply, list) and len(reply) == 2:
        value = reply[1]
    else:
        return None
    return value.decode() if isinstance(value, bytes) else value
