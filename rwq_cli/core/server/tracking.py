"""Which keys of a server change, by whomever, without a setting on the server and without MONITOR.

`CLIENT TRACKING ON BCAST PREFIX …` over RESP3 has the server name every key with a prefix that is
set, deleted, expires or is evicted, but not what happened to it. It names keys of all databases.

A client that does not read has the server keep what it sends. So the connection also subscribes to
a channel that nobody uses: the output of a subscriber is bounded, by 32 MiB unless the server's
`client-output-buffer-limit pubsub` says otherwise, and the server ends the connection beyond that.
Nothing else ends it: a thread of its own reads whatever comes, however slow the caller is.
"""

import socket
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import takewhile
from selectors import EVENT_READ, DefaultSelector
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.error_mapping import FAILURES, lost, translate
from rwq_cli.core.server.patience import CASES, connecting

# How many changed keys are kept for the caller; of more, only the number is.
KEYS_MAX = 200_000
# What a change costs the server grows with the number of prefixes; of more, one that they share.
PREFIXES_MAX = 64
_CHANNEL = b"rwq-follows"
# Reading in larger pieces costs less; it delays what is read by this much at most.
_PAUSE_S = 0.003
_PIECE_BYTES = 1 << 18
_CLOSE_WITHIN_S = 1.0
_NOTHING = object()


class TrackingRefused(errors.RwqError):
    """The server, a proxy or the user's permissions allow no tracking."""


class Change(NamedTuple):
    """When a key was first named since the last look, on the monotonic clock, and how often."""

    at_s: float
    times: int


class Changes(NamedTuple):
    """What changed since the last look.

    Attributes:
        keys: The changed keys, in the order in which they were first named.
        missed: How many further changes there were whose keys were not kept.
        has_flushed: Whether all keys of the server were deleted meanwhile.
    """

    keys: Mapping[bytes, Change]
    missed: int = 0
    has_flushed: bool = False


class Tracker:
    """Reads which keys with certain prefixes change on one server, from when it is made.

    Raises:
        TrackingRefused: The server does not track keys, or not for this user.
        ServerError: The server cannot be reached, or has ended the connection.
    """

    def __init__(self, connection: Connection, prefixes: Iterable[bytes]) -> None:
        try:
            import hiredis
        except ImportError as error:
            raise TrackingRefused("hiredis is not installed") from error
        self._pack = hiredis.pack_command
        self._reader = hiredis.Reader(notEnoughData=_NOTHING, replyError=rx.ResponseError)
        self._name = connection.name
        self._timeout_s = connection.reply_timeout_s
        self.prefixes: set[bytes] = set()
        self._lock = Lock()
        self._keys: dict[bytes, Change] = {}
        self._missed, self._has_flushed = 0, False
        # What is to be sent, with the replies that it gets; and what was sent.
        self._requests: deque[tuple[bytes, int, Future[list[Any]]]] = deque()
        self._sent: deque[tuple[int, list[Any], Future[list[Any]]]] = deque()
        self._failure: errors.ServerError | None = None
        # Set when something has changed, or the connection has ended.
        self.has_news = Event()
        # All changes before this time have been read.
        self.certain_s = monotonic()
        self._raw = _connected(connection)
        self.database = int(self._raw.db or 0)
        self._waker, self._woken = socket.socketpair()
        self._thread = Thread(target=self._read_forever, name="rwq-tracking", daemon=True)
        self._thread.start()
        try:
            subscribed = self.call_all([("SUBSCRIBE", _CHANNEL)])
            for refusal in (*subscribed, *self._track(prefixes)):
                if isinstance(refusal, errors.ServerError):
                    raise TrackingRefused(refusal.message) from refusal
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._failure is None

    def _track(self, prefixes: Iterable[bytes]) -> list[Any]:
        fresh = sorted(set(prefixes) - self.prefixes)
        words = [word for prefix in fresh for word in (b"PREFIX", prefix)]
        self.prefixes.update(fresh)
        return self.call_all([("CLIENT", "TRACKING", "ON", "BCAST", *words)]) if fresh else []

    def can_track(self, prefixes: Iterable[bytes]) -> bool:
        """Whether keys with these prefixes are named from now on, too, or already are."""
        return not any(isinstance(reply, errors.ServerError) for reply in self._track(prefixes))

    def call_all(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands, with a `ServerError` for each that was refused.

        A refusal that passes is raised. All that changed before the server ran the first of them
        has been read afterwards.
        """
        began_s = monotonic()
        packed = b"".join([self._pack(tuple(command)) for command in commands])
        future: Future[list[Any]] = Future()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._requests.append((packed, len(commands), future))
        self._wake()
        try:
            replies = future.result(self._timeout_s)
        except TimeoutError as error:
            self.close()
            failure = rx.TimeoutError("timed out")
            raise lost(failure, self._name, self._timeout_s) from error
        self.certain_s = began_s
        for index, reply in enumerate(replies):
            if isinstance(reply, rx.ResponseError):
                replies[index] = refusal = translate(reply, self._name, commands[index])
                if refusal.refusal in CASES:
                    raise refusal
        return replies

    def take(self) -> Changes:
        """What has changed since the last call."""
        with self._lock:
            changes = Changes(self._keys, self._missed, self._has_flushed)
            self._keys, self._missed, self._has_flushed = {}, 0, False
            if self._failure is None:
                self.has_news.clear()
        return changes

    def forget(self, keys: Iterable[bytes]) -> None:
        """Leave out changes of keys that the caller has looked at after them."""
        with self._lock:
            for key in keys:
                self._keys.pop(key, None)

    def close(self) -> None:
        self._end(errors.ConnectionLost(f"the connection to {self._name} is closed"))
        self._wake()
        self._thread.join(_CLOSE_WITHIN_S)

    def _wake(self) -> None:
        # The thread may have ended.
        with suppress(OSError):
            self._waker.send(b"x")

    def _end(self, failure: errors.ServerError) -> None:
        with self._lock:
            self._failure = self._failure or failure
            futures = [*(sent[-1] for sent in self._sent), *(asked[-1] for asked in self._requests)]
            self._sent.clear()
            self._requests.clear()
        for future in futures:
            if not future.done():
                future.set_exception(self._failure)
        self.has_news.set()

    def _read_forever(self) -> None:
        # In this thread alone: a TLS connection must not be read and written at once.
        try:
            with DefaultSelector() as selector:
                selector.register(self._woken, EVENT_READ, self._send)
                selector.register(self._raw._sock, EVENT_READ, self._receive)
                while self._failure is None:
                    for key, _ in selector.select():
                        key.data()
        except FAILURES as error:
            self._end(lost(error, self._name, self._timeout_s))
        except BaseException as error:
            self._end(errors.ServerError(f"reading from {self._name} failed: {error!r}"))
        finally:
            self._raw.disconnect()
            self._waker.close()
            self._woken.close()

    def _send(self) -> None:
        self._woken.recv(_PIECE_BYTES)
        while self._requests:
            with self._lock:
                packed, number, future = self._requests.popleft()
                self._sent.append((number, [], future))
            self._raw._sock.settimeout(self._timeout_s)
            self._raw._sock.sendall(packed)

    def _receive(self) -> None:
        """Read all that has come."""
        sock = self._raw._sock
        sock.settimeout(0)
        # For TLS, BlockingIOError is not what is raised.
        for piece in iter(partial(_piece, sock), None):
            if not piece:
                raise rx.ConnectionError("Connection closed by server.")
            self._reader.feed(piece)
            messages = list(iter(self._reader.gets, _NOTHING))
            with self._lock:
                for message in messages:
                    self._note(message)
            if self._keys or self._missed or self._has_flushed:
                self.has_news.set()
        sleep(_PAUSE_S)

    def _note(self, message: Any) -> None:
        if not isinstance(message, list) or not message or message[0] != b"invalidate":
            is_notice = isinstance(message, list) and message[:1] == [b"message"]
            if self._sent and not is_notice:
                number, replies, future = self._sent[0]
                replies.append(message)
                if len(replies) == number:
                    self._sent.popleft()
                    future.set_result(replies)
            return
        if message[1] is None:
            self._has_flushed = True
            return
        now_s, keys = monotonic(), self._keys
        for key in message[1]:
            if (change := keys.get(key)) is not None:
                keys[key] = Change(change.at_s, change.times + 1)
            elif len(keys) < KEYS_MAX:
                keys[key] = Change(now_s, 1)
            else:
                self._missed += 1


def _piece(sock: Any) -> bytes | None:
    try:
        piece: bytes = sock.recv(_PIECE_BYTES)
    except (BlockingIOError, TimeoutError):
        return None
    except OSError as error:
        # ssl's own.
        if type(error).__name__ == "SSLWantReadError":
            return None
        raise
    return piece


def _connected(connection: Connection) -> Any:
    """A connection as those of the pool, but with the protocol that has messages between replies,
    and with nothing that would turn a reply into something else."""
    pool = connection.client().connection_pool
    connecting.timeout_s = connection.connect_timeout_s
    try:
        raw = pool.connection_class(**{**pool.connection_kwargs, "protocol": 3})
        raw.connect()
    except (*FAILURES, ValueError) as error:
        if isinstance(error, rx.ResponseError) and not isinstance(error, rx.AuthenticationError):
            raise TrackingRefused(translate(error, connection.name).message) from error
        raise connection._failure(error) from error
    if not isinstance(raw._sock, socket.socket):
        raise TrackingRefused(f"{connection.name} has no socket")
    return raw


def prefixes_of(wanted: Iterable[bytes]) -> list[bytes]:
    """Prefixes that cover these, none of them the beginning of another, and not too many."""
    prefixes: list[bytes] = []
    for prefix in sorted(set(wanted)):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    if len(prefixes) <= PREFIXES_MAX:
        return prefixes
    # They are sorted, so what the first and the last share, all do.
    pairs = zip(prefixes[0], prefixes[-1], strict=False)
    return [bytes(byte for byte, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
