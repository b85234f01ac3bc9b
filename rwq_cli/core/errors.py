"""All errors of the core. The core never exits; the command line maps errors to exit codes.

Every error has a `code`, a stable word for scripts, and a `hint`, which says what to do about it.
"""


def text_of(raw: bytes) -> str:
    """Bytes as messages have them."""
    return raw.decode("utf-8", "backslashreplace")


class RwqError(Exception):
    """Base of all errors that rwq raises on purpose.

    Args:
        message: What happened, in one line, without a final full stop.
        hint: What to do about it, in one line; None if there is no advice.
    """

    code = "error"
    hint: str | None = None

    def __init_subclass__(cls, **facts: object) -> None:
        super().__init_subclass__()
        for name, value in facts.items():
            setattr(cls, name, value)

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.hint


class InvalidArgument(RwqError, code="invalid-argument"):
    """A value that can never work: a malformed URL, duration, queue name or option."""

    @classmethod
    def both(cls, first: str, second: str) -> "InvalidArgument":
        return cls(f"{first} and {second} cannot be used together", "use one of them")


class LeaseLost(RwqError, code="lease-lost"):
    """A lease ended before its item was completed: the item may be processed again."""

    @classmethod
    def of(cls, item_id: bytes) -> "LeaseLost":
        why = f"{text_of(item_id)} is not leased to this session any more"
        return cls(why, "lease it for longer")


class ServerError(RwqError):
    """The server is unreachable, the connection was lost, or the server refused a command.

    Attributes:
        acknowledged: For a batch, how many of its items, counted from the first, the server has
            acknowledged; None for other calls.
        acknowledged_after: The items that it has acknowledged after a refused call, as pairs of
            first index and count. Empty unless the calls of a batch were sent ahead.
        in_doubt: Whether a call was sent that has no reply: it has run completely, or not at all.
        doubtful: How many items such calls have; 0 if unknown.
        is_transient: Whether the same call may succeed later, so that a service tries again.
        refusal: The code of the server's reply, such as `READONLY`; `unreachable`, `lost` or
            `timeout` if there was none.
    """

    code = "server-error"
    refusal = ""
    is_transient = False
    acknowledged: int | None = None
    acknowledged_after: tuple[tuple[int, int], ...] = ()
    in_doubt = False
    doubtful = 0


class Unreachable(ServerError, code="unreachable", refusal="unreachable", is_transient=True):
    """No connection could be made."""


class ConnectionLost(ServerError, code="connection-lost", is_transient=True, in_doubt=True):
    """The connection broke after it was made; the last call may or may not have run."""


class AuthenticationFailed(ServerError, code="authentication-failed"):
    """The server requires a password, or rejected the given one."""


class SentinelAuthenticationFailed(AuthenticationFailed, code="sentinel-authentication-failed"):
    """A Sentinel requires a password of its own, or rejected the given one."""


class LockLost(ServerError, code="lock-lost", is_transient=True):
    """Another process has taken over what this one was doing, as it was suspended for long."""

    hint = "run the same command again"


class DataLost(ServerError, code="data-lost"):
    """The server has lost what it had acknowledged: it was flushed, restarted or failed over."""


class PermissionDenied(ServerError, code="permission-denied"):
    """The ACL user may not run a command or access a key."""


class WrongType(ServerError, code="wrong-type"):
    """A key of the queue has a type that the protocol does not allow."""

    hint = "see what it is with the TYPE command, or name another queue"

    @classmethod
    def of(cls, key: bytes) -> "WrongType":
        return cls(f"{text_of(key)} has the wrong type")


class OutOfMemory(ServerError, code="out-of-memory", is_transient=True):
    """The server is at its `maxmemory`."""


class ReadOnly(ServerError, code="read-only", is_transient=True):
    """The server rejects writes: it is a replica, cannot save its data, or lacks replicas."""


class Loading(ServerError, code="loading", is_transient=True):
    """The server is loading its data into memory."""


class Busy(ServerError, code="busy", is_transient=True):
    """The server is busy with a script that takes too long."""


# The refusal is that of no reply: no node could be found, and nothing was sent.
class Unavailable(ServerError, code="unavailable", refusal="unreachable", is_transient=True):
    """The server cannot answer now: its primary or its cluster is down or being reconfigured."""


class WrongNode(ServerError, code="wrong-node"):
    """The server is a cluster node that does not hold the queue."""


class ScriptError(ServerError, code="script-error"):
    """A script failed: a bug in rwq."""


class LocalServerError(ServerError, code="local-server"):
    """The embedded server behind `local:` could not be found, started or stopped."""
