"""One connection to the server: its socket, its timeouts and its mode."""

from collections.abc import Callable
from math import inf
from threading import Event, Thread, local
from time import monotonic
from typing import Any

from redis import exceptions as rx
from redis.connection import SSLConnection

from rwq_cli.core import errors
from rwq_cli.core.server.error_mapping import (
    NO_HANDSHAKE,
    REPLIES,
    lacks_tls,
    lost,
    translate,
    unreachable,
)
from rwq_cli.core.server.packing import pack

# After this time, only a reply proves that a load balancer has not dropped an idle connection.
PING_AFTER_S = 5.0
# Extra time beyond the caller's deadline, for a call that begins just before it; a write has more.
GRACE_S = 2.0
READ_GRACE_S = 0.3
# A step of connecting that times out ends this long before all of connecting does, or at half of
# its time, so that its reason is known.
_STEP_EARLIER_S = 0.1
# Read timeout in seconds: a readable TLS socket may hold no reply yet.
_POLL_S = 0.001
# The timeout applies to each send, so a large command is sent in pieces.
_PIECE_BYTES = 1 << 20

# Returned if no reply has arrived.
NO_REPLY = object()

_FAILURES = (rx.RedisError, OSError)


class _Limits(local):
    """The limits of a block of calls; each thread has its own.

    Attributes:
        deadline_s: The caller's deadline, on the clock of `time.monotonic`.
        grace_s: How far a reply may pass the deadline.
        patience_s: The deadline for waiting for a failover, on the same clock.
    """

    deadline_s = inf
    patience_s = inf
    grace_s = READ_GRACE_S


class LinkOptions:
    """Options that all links of a connection share.

    Args:
        connect_timeout_s: The timeout for connecting, including TLS, password and database.
        reply_timeout_s: The timeout for one reply.

    Attributes:
        no_touch: Whether reads must not count as use; None if the server cannot do that.
        limits: The limits of the calling thread.
    """

    def __init__(self, connect_timeout_s: float, reply_timeout_s: float) -> None:
        self.connect_timeout_s = connect_timeout_s
        self.reply_timeout_s = reply_timeout_s
        self.no_touch: bool | None = False
        self.limits = _Limits()

    def limited(self, timeout_s: float) -> float:
        """The timeout, limited to the time left until the deadline plus the grace period."""
        limits = self.limits
        if limits.deadline_s == inf:
            return timeout_s
        return min(timeout_s, max(0.0, limits.deadline_s - monotonic()) + limits.grace_s)


class Link:
    """A redis-py connection, opened when it is first used and reopened after it was lost.

    No command is ever sent twice: only `prepare`, which sends no command of the caller, reconnects.

    Args:
        make_raw: Makes the connection, not yet opened.
        options: The options of all links of the connection.
        name: The server's name in messages.
        on_connect: Called with the link whenever it was opened; None for nothing.

    Attributes:
        permissions: By script and main list, what `check_permissions` has found on this link.
    """

    def __init__(
        self,
        make_raw: Callable[[], Any],
        options: LinkOptions,
        name: str,
        on_connect: "OnConnect | None" = None,
    ) -> None:
        self._make_raw = make_raw
        self._raw = make_raw()
        self._options = options
        self._name = name
        self._on_connect = on_connect
        self.permissions: dict[tuple[str, bytes], bytes] = {}
        self._is_open = False
        self._has_no_touch = False
        self._timeout_s: float | None = None
        self._opened_s = 0.0
        # When it last replied; 0 if it never did.
        self._used_s = 0.0

    def prepare(self) -> None:
        """Make the link ready for a command: open, still alive, and in the right mode.

        Raises:
            ServerError: It could not be opened, or the server refused the password.
        """
        if self._is_open and not self._is_alive():
            self.close()
        if not self._is_open:
            self._open()
            if self._on_connect is not None:
                self._on_connect(self)
        if self._options.no_touch and not self._has_no_touch:
            self._set_no_touch()

    def _open(self) -> None:
        began_s = monotonic()
        timeout_s = self._options.limited(self._options.connect_timeout_s)
        step_s = max(timeout_s - _STEP_EARLIER_S, timeout_s / 2)
        self._raw.socket_connect_timeout = self._raw.socket_timeout = step_s
        try:
            self._connect(timeout_s)
        except REPLIES as error:
            raise translate(error, self._name) from error
        except (*_FAILURES, ValueError) as error:
            self._raise_if_tls(error, began_s + timeout_s - monotonic())
            raise unreachable(error, self._name, timeout_s) from error
        self._is_open, self._has_no_touch, self._timeout_s = True, False, step_s
        self._opened_s = monotonic()
        self.permissions.clear()

    def _connect(self, timeout_s: float) -> None:
        """Connect within the timeout as a whole.

        Each address, TLS, the password and the database have a timeout of their own, and looking
        up a name has none: so this is done in a thread.
        """
        raw, failures = self._raw, list[Exception]()
        is_late = Event()

        def connect() -> None:
            try:
                raw.connect()
            except Exception as error:
                failures.append(error)
            if is_late.is_set():
                raw.disconnect()

        thread = Thread(target=connect, daemon=True)
        thread.start()
        thread.join(timeout_s)
        if thread.is_alive():
            is_late.set()
            self._raw = self._make_raw()
            raise TimeoutError(NO_HANDSHAKE if isinstance(raw, SSLConnection) else "timed out")
        if failures:
            raise failures[0]

    def _raise_if_tls(self, error: Exception, left_s: float = inf) -> None:
        """Raise if the server has closed a connection without TLS because it expects TLS."""
        host = getattr(self._raw, "host", None)
        if host is None or isinstance(self._raw, SSLConnection) or left_s <= 0:
            return
        probe_s = self._options.limited(left_s)
        if (explained := lacks_tls(error, self._name, host, self._raw.port, probe_s)) is not None:
            raise explained from error

    def _is_alive(self) -> bool:
        try:
            # Readable without an outstanding command means that the connection was closed.
            if self._raw.can_read(timeout=0):
                return False
            if monotonic() - max(self._used_s, self._opened_s) > PING_AFTER_S:
                self.send(pack(("PING",)))
                self._read(self._options.connect_timeout_s)
        except (*_FAILURES, errors.ServerError):
            return False
        finally:
            # Some versions of redis-py set the socket's timeout here.
            self._timeout_s = None
        return True

    def _set_no_touch(self) -> None:
        reply = self.exchange("CLIENT", "NO-TOUCH", "ON")
        if isinstance(reply, rx.ResponseError):
            error = translate(reply, self._name)
            # Unknown to the server, or denied to this user.
            if type(error) not in (errors.ServerError, errors.PermissionDenied):
                raise error from reply
            self._options.no_touch = None
        self._has_no_touch = True

    def exchange(self, *command: Any) -> Any:
        """Send a command and read its reply; see `send` and `read`."""
        self.send(pack(command))
        return self.read()

    def send(self, packed: bytes) -> None:
        """Send packed commands.

        Raises:
            ServerError: The connection was lost.
        """
        pieces: list[bytes | memoryview] = [packed]
        if len(packed) > _PIECE_BYTES:
            view = memoryview(packed)
            pieces = [view[at : at + _PIECE_BYTES] for at in range(0, len(packed), _PIECE_BYTES)]
        timeout_s = self._set_timeout(self._options.reply_timeout_s)
        try:
            self._raw.send_packed_command(pieces, check_health=False)
        except _FAILURES as error:
            raise lost(error, self._name, timeout_s) from error

    def read(self) -> Any:
        """Read the next reply; an error reply is returned as redis-py's exception.

        Raises:
            ServerError: The connection was lost, or the server refuses all commands on it.
        """
        return self._read(self._options.reply_timeout_s)

    def _read(self, timeout_s: float) -> Any:
        timeout_s = self._set_timeout(timeout_s)
        try:
            reply = self._raw.read_response()
        except rx.ResponseError as error:
            reply = error
        except REPLIES as error:
            raise translate(error, self._name) from error
        except _FAILURES as error:
            if not self._used_s:
                self._raise_if_tls(error)
            raise lost(error, self._name, timeout_s) from error
        self._used_s = monotonic()
        return reply

    def poll(self) -> Any:
        """Read the next reply if it has arrived; otherwise return `NO_REPLY`."""
        self._set_timeout(_POLL_S)
        try:
            return self._raw.read_response(disconnect_on_error=False)
        except rx.TimeoutError:
            return NO_REPLY
        except rx.ResponseError as error:
            return error
        except _FAILURES as error:
            raise lost(error, self._name, _POLL_S) from error

    def fileno(self) -> int:
        """The socket's file descriptor, readable on a reply or a lost connection."""
        number: int = self._raw._sock.fileno()
        return number

    def _set_timeout(self, timeout_s: float) -> float:
        timeout_s = self._options.limited(timeout_s)
        if timeout_s != self._timeout_s:
            # The fake server's socket has no timeouts.
            if hasattr(self._raw._sock, "settimeout"):
                self._raw._sock.settimeout(timeout_s)
            self._timeout_s = timeout_s
        return timeout_s

    def close(self) -> None:
        """Close the connection, even if replies are outstanding."""
        self._is_open = False
        self._raw.disconnect()


OnConnect = Callable[[Link], object]
