"""Which keys of a server change, by whomever, without a setting on the server and without MONITOR.

`CLIENT TRACKING ON BCAST PREFIX …` over RESP3 has the server name every key with a prefix that is
set, deleted, expires or is evicted, but not what happened to it. It names keys of all databases.

A client that does not read has the server keep what it sends. So the connection also subscribes to
a channel that nobody uses: the output of a subscriber is bounded, by 32 MiB unless the server's
`client-output-buffer-limit pubsub` says otherwise, and the server ends the connection beyond that.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
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
# Of a socket, 0 means that it does not wait at all.
_LEAST_TIMEOUT_S = 0.001
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
        self._reader = hiredis.Reader(
            notEnoughData=_NOTHING, replyError=rx.ResponseError, protocolError=rx.InvalidResponse
        )
        self._name = connection.name
        self._timeout_s = connection.reply_timeout_s
        self.prefixes: set[bytes] = set()
        self._keys: dict[bytes, Change] = {}
        self._missed, self._has_flushed = 0, False
        # All changes before this time have been read.
        self.certain_s = monotonic()
        self._raw = _connected(connection)
        self.database = int(self._raw.db or 0)
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
        return self._raw._sock is not None

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
        replies: list[Any] = []
        with self._closing_on_failure() as sock:
            sock.settimeout(self._timeout_s)
            sock.sendall(b"".join([self._pack(tuple(command)) for command in commands]))
            while len(replies) < len(commands):
                replies += self._receive(sock, began_s + self._timeout_s - monotonic())
        self.certain_s = began_s
        for index, reply in enumerate(replies):
            if isinstance(reply, rx.ResponseError):
                replies[index] = refusal = translate(reply, self._name, commands[index])
                if refusal.refusal in CASES:
                    raise refusal
        return replies

    def wait(self, seconds: float) -> None:
        """Wait at most so long until something changes."""
        if not (self._keys or self._missed or self._has_flushed):
            self._receive_within(seconds)

    def read_for(self, seconds: float) -> None:
        """Read what changes within this time, so that the times of the changes are exact."""
        ends_s = monotonic() + seconds
        while self._receive_within(ends_s - monotonic()):
            sleep(_PAUSE_S)

    def take(self) -> Changes:
        """What has changed since the last call, as far as it was read."""
        changes = Changes(self._keys, self._missed, self._has_flushed)
        self._keys, self._missed, self._has_flushed = {}, 0, False
        return changes

    def forget(self, keys: Iterable[bytes]) -> None:
        """Leave out changes of keys that the caller has looked at after them."""
        for key in keys:
            self._keys.pop(key, None)

    def close(self) -> None:
        self._raw.disconnect()

    @contextmanager
    def _closing_on_failure(self) -> Iterator[socket.socket]:
        """Lend the socket; after a failure, and after an interrupt, replies may be outstanding."""
        try:
            if self._raw._sock is None:
                raise rx.ConnectionError("it is closed")
            yield self._raw._sock
        except FAILURES as error:
            self.close()
            raise lost(error, self._name, self._timeout_s) from error
        except BaseException:
            self.close()
            raise

    def _receive_within(self, seconds: float) -> bool:
        with self._closing_on_failure() as sock, suppress(TimeoutError):
            self._receive(sock, seconds)
            return True
        return False

    def _receive(self, sock: socket.socket, timeout_s: float) -> list[Any]:
        """Wait for something to read; note the changes in it, and return the replies."""
        sock.settimeout(max(_LEAST_TIMEOUT_S, timeout_s))
        piece = sock.recv(_PIECE_BYTES)
        if not piece:
            raise rx.ConnectionError("Connection closed by server.")
        self._reader.feed(piece)
        messages = iter(self._reader.gets, _NOTHING)
        return [message for message in messages if not self._note(message)]

    def _note(self, message: Any) -> bool:
        """Note what the server says unasked; return False for a reply."""
        match message:
            # Not the IDs of a list.
            case [b"invalidate", list() | None as keys]:
                self._has_flushed |= keys is None
                self._note_keys(keys or ())
            case [b"message", channel, _] if channel == _CHANNEL:
                # Somebody publishes on it.
                pass
            case _:
                return False
        return True

    def _note_keys(self, changed: Iterable[bytes]) -> None:
        now_s, keys = monotonic(), self._keys
        for key in changed:
            if (change := keys.get(key)) is not None:
                keys[key] = Change(change.at_s, change.times + 1)
            elif len(keys) < KEYS_MAX:
                keys[key] = Change(now_s, 1)
            else:
                self._missed += 1


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
