"""One redis-py connection while it is in use: its timeouts, its mode, its errors."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakSet

from redis import exceptions as rx
from redis._parsers import _HiredisParser
from redis.connection import AbstractConnection, SSLConnection

from rwq_cli.core import errors
from rwq_cli.core.batches import BUDGET
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction
from rwq_cli.core.server.error_mapping import FAILURES, NO_HANDSHAKE, REPLIES, lost, translate
from rwq_cli.core.server.patience import Cut, Deadline, connecting

# After this time, only a reply proves that a load balancer has not dropped an idle connection.
PING_AFTER_S = 5.0
# A step of connecting that times out ends this long before all of connecting does, or at half of
# its time, so that its reason is known.
_STEP_EARLIER_S = 0.1
# Read timeout in seconds: a readable TLS socket may hold no reply yet.
_POLL_S = 0.001
# The timeout applies to each send, so a large command is sent in pieces.
_PIECE_BYTES = 1 << 20
_TEXT = frozenset((bytes, str))
# The first line of a connection is a status, an error or a length, and a reply no longer than that
# is whole within this time after its first byte.
_FIRST_LINE_BYTES = 1 << 16
_FIRST_REPLY_S = 5.0

# The kind of what a caller is told of a wait: see `Shared.reported`.
WAIT = "wait"
# Returned if no reply has arrived.
NO_REPLY = object()


class _InTime:
    """Connects within `connecting.timeout_s` as a whole; mixed into redis-py's connection classes.

    Each address has a timeout of its own, and looking up a name has none that could be set or
    interrupted, 20 s with two name servers that are down: so a thread does it.
    """

    # Sentinel's connection turns READONLY into a lost connection, and hides that nothing ran.
    read_response = AbstractConnection.read_response

    def _connect(self) -> Any:
        timeout_s = connecting.timeout_s
        ends_s = monotonic() + timeout_s
        # The latter is that of the TLS handshake.
        step_s = max(timeout_s - _STEP_EARLIER_S, timeout_s / 2)
        self.socket_connect_timeout = self.socket_timeout = step_s
        future: Future[Any] = Future()
        connect: Any = super()._connect  # type: ignore[misc]

        def run() -> None:
            try:
                future.set_result(connect())
            except BaseException as error:
                future.set_exception(error)

        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(timeout_s)
        if not future.done():
            future.add_done_callback(lambda late: late.exception() or late.result().close())
            raise rx.TimeoutError(NO_HANDSHAKE if isinstance(self, SSLConnection) else "timed out")
        try:
            sock = future.result()
        except TimeoutError as error:
            # For a unix socket, redis-py would fail itself.
            raise rx.TimeoutError(str(error)) from error
        # For the password and the database.
        sock.settimeout(max(_POLL_S, ends_s - monotonic()))
        self.health_check_interval = PING_AFTER_S
        self.next_health_check = monotonic() + PING_AFTER_S
        return sock

    def can_read(self, timeout: float = 0) -> bool:
        """Whether the pool must replace the connection before it lends it."""
        raw: Any = self
        if monotonic() > raw.next_health_check:
            raw._sock.settimeout(connecting.timeout_s)
            # Any reply will do: a user may not be allowed to send PING.
            with suppress(rx.ResponseError):
                raw.check_health()
        try:
            if not super().can_read(timeout=timeout):  # type: ignore[misc]
                return False
        except rx.ConnectionError:
            # The server has closed it, as redis-py 8.1 sees; but it may have said why.
            if raw._sock is None:
                raise
        raw._sock.settimeout(_POLL_S)
        try:
            raw.read_response(disconnect_on_error=False)
        except rx.TimeoutError:
            # A readable TLS socket may hold nothing but session tickets.
            return False
        except rx.ResponseError as error:
            raise rx.ConnectionError(str(error)) from error
        return True


class Parser(_HiredisParser):
    """redis-py's parser, for peers that are not Redis: their first line or reply may never end, the
    keys of a map may be maps, and pushes are parsed within pushes."""

    _has_line = _has_reply = False
    _began_s = inf

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            reply = super().read_response(*args, **options)
        except (TypeError, RecursionError) as error:
            raise rx.InvalidResponse(str(error)) from error
        self._has_reply = True
        return reply

    def read_from_socket(self, *args: Any, **options: Any) -> Any:
        result = super().read_from_socket(*args, **options)  # type: ignore[no-untyped-call]
        if not self._has_reply and self._reader.len() < _FIRST_LINE_BYTES:
            self._began_s = min(self._began_s, monotonic())
            if monotonic() - self._began_s > _FIRST_REPLY_S:
                raise rx.InvalidResponse("its first reply does not end")
        if not self._has_line:
            self._has_line = b"\n" in self._buffer
            if not self._has_line and self._reader.len() >= _FIRST_LINE_BYTES:
                raise rx.InvalidResponse("its first line does not end")
        return result

    def has_unread(self) -> bool:
        """Whether more has arrived than replies were read."""
        return bool(self._reader.has_data())


def in_time(connection_class: type) -> Any:
    """A connection class of redis-py whose connecting as a whole takes `connecting.timeout_s`."""
    return type(f"InTime{connection_class.__name__}", (_InTime, connection_class), {})


class Shared:
    """What the links to a server have in common."""

    def __init__(self) -> None:
        # Whether reads must not count as use, None if the server cannot do that; and the sockets
        # that have that mode.
        self.no_touch: bool | None = False
        self.sockets: WeakSet[Any] = WeakSet()
        # Which scripts were sent with their text, each with the pool of its server.
        self.scripts: set[tuple[Any, str]] = set()
        # What the caller was told of the server; of a wait, until the server does something again.
        self.reported: set[str] = set()
        # If it was never reached, the address may be wrong; a reply was read, so it is a Redis
        # server; and it has taken a write, so it is a primary.
        self.was_found = self.has_answered = self.has_written = False
        # Whether the user may begin transactions; None before that was tried.
        self.may_transact: bool | None = None
        # How much data a reply may have; less if the server ends the link because of that.
        self.reply_bytes = BUDGET.bytes
        # The last call took longer than `LONG_LINE_S`.
        self.is_slow_line = False

    def note_success(self, *, writes: bool) -> None:
        """Note that a command was not refused, so that an outage, if there was one, is over."""
        self.has_written |= writes
        self.reported.discard(WAIT)


class Timeouts(NamedTuple):
    """How long a link waits, seconds."""

    connect_s: float
    reply_s: float
    deadline: Deadline


class Link:
    """A redis-py connection, taken from its pool. No command is ever sent twice on it."""

    def __init__(
        self, pool: Any, name: str, shared: Shared, timeouts: Timeouts, cut: Cut | None
    ) -> None:
        self._pool, self._name, self._shared, self._timeouts = pool, name, shared, timeouts
        if cut is not None and cut.is_made:
            raise errors.ServerError(f"{name} did not answer in time")
        connecting.timeout_s = timeouts.deadline.limited(timeouts.connect_s)
        connecting.ends_s = timeouts.deadline.ends_s
        try:
            self._raw = pool.get_connection()
        finally:
            connecting.ends_s = inf
        # How many replies are to come.
        self._outstanding = 0
        self._cut_socket = (cut, self._raw._sock) if cut is not None else None
        if cut is not None:
            cut.add(self._raw._sock)

    def set_modes(self) -> None:
        """Turn on CLIENT NO-TOUCH if it is wanted and not on."""
        shared, sock = self._shared, self._raw._sock
        if not shared.no_touch or sock in shared.sockets:
            return
        command = ("CLIENT", "NO-TOUCH", "ON")
        self.send([command])
        reply = self.read(command)
        if isinstance(reply, rx.ResponseError):
            error = translate(reply, self._name)
            # Unknown to the server, or denied to this user.
            if type(error) not in (errors.ServerError, errors.PermissionDenied):
                raise error from reply
            shared.no_touch = None
        shared.sockets.add(sock)

    def send(self, requests: Sequence[Command]) -> int:
        """Send requests; return their size in bytes."""
        packed: list[bytes] = []
        for request in requests:
            is_several = isinstance(request, Transaction)
            for command in (("MULTI",), *request, ("EXEC",)) if is_several else (request,):
                packed += self._packed(command)
                self._outstanding += 1
        data = memoryview(b"".join(packed))
        pieces = [data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES)]
        timeout_s = self._set_timeout(self._timeouts.reply_s)
        try:
            self._raw.send_packed_command(pieces, check_health=False)
        except FAILURES as error:
            raise self._lost(error, timeout_s) from error
        return len(data)

    def _packed(self, command: Command) -> Any:
        if isinstance(command, ScriptCommand):
            if self._shared.reply_bytes < BUDGET.bytes and command.is_bounded:
                command = command.within(self._shared.reply_bytes)
            script_of_pool = (self._pool, command.script.sha1)
            if script_of_pool not in self._shared.scripts:
                # Most servers have it by then; but asking first would cost a round trip.
                self._shared.scripts.add(script_of_pool)
                command = command.by_text()
        # Up to version 3.5 at least, hiredis crashes if a signal handler raises while it formats a
        # number, as Ctrl-C does.
        if not _TEXT.issuperset(map(type, command)):
            command = [word if isinstance(word, bytes | str) else str(word) for word in command]
        return self._raw.pack_command(*command)

    def read(self, request: Command) -> Any:
        """Read the reply to a request; of a transaction, the list of its replies.

        An error reply is returned as redis-py's exception; of a transaction, the refusal of a
        command before EXEC, so that nothing ran.
        """
        if not isinstance(request, Transaction):
            return self.read_one()
        *queued, done = [self.read_one() for _ in range(len(request) + 2)]
        if isinstance(done, list):
            return done
        if isinstance(done, rx.NoPermissionError):
            # A user who may not run EXEC: the link would queue all further commands.
            self._raw.disconnect()
        return next((reply for reply in queued if isinstance(reply, rx.ResponseError)), done)

    def read_one(self, *, polls: bool = False) -> Any:
        timeout_s = self._set_timeout(_POLL_S if polls else self._timeouts.reply_s)
        try:
            reply = self._raw.read_response(disconnect_on_error=False)
        except rx.ResponseError as error:
            reply = error
        except rx.BusyLoadingError as error:
            # A refusal like others, which redis-py takes for a lost connection.
            reply = rx.ResponseError(f"LOADING {str(error).removeprefix('LOADING ')}")
        except REPLIES as error:
            raise translate(error, self._name) from error
        except (*FAILURES, MemoryError) as error:
            if isinstance(error, MemoryError) and self._shared.has_answered:
                raise
            if polls and isinstance(error, rx.TimeoutError):
                return NO_REPLY
            raise self._lost(error, timeout_s) from error
        self._outstanding -= 1
        if not self._outstanding and getattr(self._raw._parser, "has_unread", bool)():
            raise self._lost(rx.InvalidResponse("it sends more than was asked for"), timeout_s)
        self._shared.has_answered = True
        return reply

    def _lost(self, error: Exception, timeout_s: float) -> errors.ServerError:
        pool = None if self._shared.has_answered else self._pool
        return lost(error, self._name, timeout_s, pool)

    def fileno(self) -> int:
        """The socket's file descriptor, readable on a reply or a lost connection."""
        return int(self._raw._sock.fileno())

    def _set_timeout(self, timeout_s: float) -> float:
        timeout_s, sock = self._timeouts.deadline.limited(timeout_s), self._raw._sock
        if sock.gettimeout() != timeout_s:
            sock.settimeout(timeout_s)
        return timeout_s

    def release(self) -> None:
        """Give the connection back to its pool, without outstanding replies."""
        if not isinstance(self._raw, _InTime):
            # The client that it belongs to has a timeout of its own.
            self._raw._sock.settimeout(self._raw.socket_timeout)
        self._leave_cut()
        self._pool.release(self._raw)

    def close(self) -> None:
        """Close the connection, even if replies are outstanding, and give it back."""
        self._leave_cut()
        self._raw.disconnect()
        self._pool.release(self._raw)

    def _leave_cut(self) -> None:
        if self._cut_socket is not None:
            cut, sock = self._cut_socket
            cut.remove(sock)
