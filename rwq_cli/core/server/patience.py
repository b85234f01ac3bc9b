"""What is sent again, and why nothing is ever done twice.

A server may refuse for a moment, and a connection may be lost. `CASES` says after which of these a
call is repeated, always on a new connection. A call in no case is not repeated. Neither is one that
may change something and whose reply was lost: its error says that it is in doubt.
"""

from contextlib import suppress
from math import inf
from socket import SHUT_RDWR, socket
from threading import local
from time import monotonic
from typing import NamedTuple

# The default timeouts.
CONNECT_TIMEOUT_S = 5.0
# Longer than any single call of ours takes the server.
REPLY_TIMEOUT_S = 30.0
# A failover takes a cluster its node timeout and a few seconds, 15 s by default.
PATIENCE_S = 30.0

# After which failures a call is repeated, by `ServerError.refusal`; and when, on a server that is
# named by its own address. Behind Sentinel and on a cluster, it always is.
CASES = {
    # A server checks these before it runs a command, script or EXEC: nothing ran. While a slot
    # moves, a key may be on either node. Each script names a key that never exists, so that it is
    # refused on both until all keys have moved.
    **dict.fromkeys(("BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOSCRIPT"), "always"),
    "TRYAGAIN": "always",
    "ASK": "never",
    "MOVED": "never",
    # The first write is refused, and a script has only read by then: nothing ran. A name or virtual
    # address may lead to what was the primary a moment ago: one that has taken no write before is
    # waited for only for a short time.
    "NOREPLICAS": "always",
    "READONLY": "demoted",
    # Only a wait is ended.
    "UNBLOCKED": "always",
    # Nothing was sent. It is waited for if the caller waits by design, and it was there before.
    "unreachable": "waiting",
    # Only reads are repeated.
    "lost": "once",
    "timeout": "never",
}
READS_ONLY = ("lost", "timeout")


class Cut:
    """Ends the calls of the connections that have it at once, for another thread."""

    def __init__(self) -> None:
        self._sockets: set[socket] = set()
        self.is_made = False

    def add(self, sock: socket) -> None:
        """Shut this socket down when the cut is made, or now if it was."""
        self._sockets.add(sock)
        if self.is_made:
            _shut_down(sock)

    def remove(self, sock: socket) -> None:
        self._sockets.discard(sock)

    def make(self) -> None:
        """End the calls that are under way; those that follow are not sent."""
        self.is_made = True
        for sock in list(self._sockets):
            _shut_down(sock)


def _shut_down(sock: socket) -> None:
    with suppress(OSError):
        # Not the method of a TLS socket, which forgets its state while another thread reads.
        socket.shutdown(sock, SHUT_RDWR)


class Deadline(NamedTuple):
    """By when the calls of a connection end, on the clock of `time.monotonic`.

    Attributes:
        ends_s: After this time plus a grace period, no reply is awaited; infinity for no limit.
        patience_ends_s: Until when a refusal that passes is waited for; None for as long as the
            connection says.
        waits: The caller waits by design: for a failover, or the move of a queue, beyond `ends_s`.
        grace_s: Extra time beyond `ends_s`, for a call that begins just before it.
    """

    ends_s: float = inf
    patience_ends_s: float | None = None
    waits: bool = False
    grace_s: float = 0.3

    def within(self, seconds: float, *, is_patient: bool = True) -> "Deadline":
        """This deadline, or one so many seconds from now if that is earlier, 0 for none.

        Infinity is none, too, for a caller that waits for as long as it takes until a refusal
        passes; one that is not patient does not wait for that beyond the deadline.
        """
        ends_s = min(self.ends_s, monotonic() + seconds if seconds else inf)
        is_bound = seconds == inf or not is_patient
        return Deadline(ends_s, ends_s if is_bound else self.patience_ends_s, is_patient)

    def limited(self, timeout_s: float) -> float:
        """A timeout, limited to the time until the deadline plus the grace period."""
        return min(timeout_s, max(0.0, self.ends_s - monotonic()) + self.grace_s)


class _Connecting(local):
    """Bounds the connection that this thread makes, as redis-py's pools hand on nothing to it, nor
    to what gives its password: its timeout, and the deadline of the call that needs it."""

    timeout_s = CONNECT_TIMEOUT_S
    ends_s = inf


connecting = _Connecting()


class CancelToken:
    """Asks a window to stop at its next safe point."""

    def __init__(self) -> None:
        # Send no more calls, read the outstanding replies, and raise KeyboardInterrupt.
        self.requested = False
        # Whether the window would notice now; not while it waits for its source.
        self.is_polled = False
