"""Connections that find their server again: a primary behind Sentinel, a node of a cluster."""

from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Any, Protocol

import redis
from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.error_mapping import translate
from rwq_cli.core.server.link import Link, LinkOptions
from rwq_cli.core.server.node import Node
from rwq_cli.core.server.pipeline import CancelToken
from rwq_cli.core.server.resend import Case, case_of

# The pause between two attempts grows from the first value to the second.
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5
# A wait is reported when it has lasted this long.
_REPORT_AFTER_S = 1.0


class Locator(Protocol):
    """Finds the node that runs the commands of a connection."""

    @property
    def was_found(self) -> bool:
        """Whether the node was ever found; if not, the address may be wrong."""

    def node(self) -> Node:
        """The node, as far as known.

        Raises:
            ServerError: It could not be found: `Unavailable` if that may change in a moment.
        """

    def note_moved(self, refusal: rx.MovedError) -> None:
        """Note the node that a MOVED names."""

    def forget(self) -> None:
        """Look the node up again when it is needed next."""

    def close(self) -> None:
        """Close the links that are not in use."""


class SharedState:
    """What all connections to one cluster, or through one Sentinel, share.

    Attributes:
        client: Its reply callbacks are used; it never connects.
        name: The name in messages, without a password.
        address: The URL without user and password.
        options: The options of all links.
        patience_s: How long to wait for a node that can run a command, seconds.
        stop: See `Connection`.
        for_other_thread: Makes another connection to the same, with this reply timeout.
        has_reported: Whether a long wait was reported; it is reported once.
    """

    def __init__(
        self,
        name: str,
        address: str,
        options: LinkOptions,
        patience_s: float,
        for_other_thread: Callable[[float], Connection],
    ) -> None:
        self.name = name
        self.address = address
        self.options = options
        self.patience_s = patience_s
        self.stop = CancelToken()
        self.for_other_thread = for_other_thread
        self.client = redis.Redis()
        self.has_reported = False


class Patience:
    """Waits between attempts, until all of them together have taken too long.

    Args:
        shared: What the connections share.
        tell: Called with what is waited for, if it takes long.
    """

    def __init__(self, shared: SharedState, tell: Callable[[str], object]) -> None:
        self._shared = shared
        self._tell = tell
        self._began_s = monotonic()
        self._pause_s = 0.0
        self._because: errors.ServerError | None = None

    def wait(self, because: errors.ServerError) -> bool:
        """Wait before the next attempt, first not at all, then ever longer.

        Args:
            because: Why the last attempt failed. After a MOVED, the pause is short.

        Raises:
            KeyboardInterrupt: The caller was asked to stop.

        Returns:
            Whether there is time for another attempt.
        """
        shared, waited_s = self._shared, monotonic() - self._began_s
        left_s = min(shared.patience_s, shared.options.limits.patience_s - self._began_s) - waited_s
        if shared.stop.requested:
            raise KeyboardInterrupt
        if left_s <= 0:
            return False
        is_moved = isinstance(because, errors.WrongNode)
        if self._because is None or not is_moved:
            self._because = because
        pause_s = min(self._pause_s, left_s, _FIRST_PAUSE_S if is_moved else _LONGEST_PAUSE_S)
        if waited_s < _REPORT_AFTER_S:
            pause_s = min(pause_s, _REPORT_AFTER_S - waited_s)
        elif not shared.has_reported:
            shared.has_reported = True
            self._tell(f"rwq: waiting up to {shared.patience_s:g} s: {self._because.message}")
        sleep(pause_s)
        self._pause_s = min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, 2 * self._pause_s))
        return True


class FollowingConnection(Connection):
    """A connection to a server that is found by a locator, and found again when it has changed.

    What is sent again, and why that is safe, is in `resend.CASES`.

    Args:
        shared: What it shares with others.
        locator: Finds the server.
    """

    def __init__(self, shared: SharedState, locator: Locator) -> None:
        super().__init__(shared.client, shared.name, address=shared.address)
        self._options = shared.options
        self._shared = shared
        self._locator = locator
        self.stop = shared.stop
        self._resend = _Resend(self)

    def send_again(self, request: Command, refusal: Any) -> Any:
        """Send a request that was refused to the node that can run it; return the reply."""
        (reply,) = self._until_accepted([request], [refusal], writes=True)
        return reply

    def recover(self, error: errors.ServerError) -> bool:
        cause = error.__cause__
        if isinstance(cause, rx.MovedError):
            self._locator.note_moved(cause)
            return True
        # What a blocked client hears when its server becomes a replica.
        is_demoted = isinstance(cause, rx.ResponseError) and str(cause).startswith("UNBLOCKED")
        cases = (case_of(failure, writes=False) for failure in (error, cause))
        if not is_demoted and not any(cases):
            return False
        self._locator.forget()
        # A server that ends closes its links one after the other: a command on one that it has not
        # closed yet would be lost, and leave open whether it ran.
        self._locator.close()
        return True

    def for_other_thread(self, *, reply_timeout_s: float) -> Connection:
        return self._shared.for_other_thread(reply_timeout_s)

    def close(self) -> None:
        self._locator.close()

    def _take(self, *, fresh: bool = False) -> tuple[Node, Link]:
        patience = self._patience()
        while True:
            try:
                node = self._locator.node()
                return node, node.take(fresh=fresh)
            except errors.ServerError as error:
                # Nothing was sent.
                if not self._wait_to_retry(error, patience):
                    raise

    def _patience(self) -> Patience:
        return Patience(self._shared, self.on_wait)

    def _wait_to_retry(self, error: errors.ServerError, patience: Patience) -> bool:
        """Wait after a failure that changed nothing; return whether to try again."""
        case = case_of(error, writes=False)
        if case is None or not (self._locator.was_found and patience.wait(error)):
            return False
        if case.finds_again:
            self._locator.forget()
        return True

    def _send(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:
        replies = self._attempt(requests, self._patience(), writes=writes)
        return self._until_accepted(requests, replies, writes=writes)

    def _attempt(
        self, requests: Sequence[Command], patience: Patience, *, writes: bool
    ) -> list[Any]:
        """Send requests until the server answers."""
        while True:
            try:
                return super()._send(requests, writes=writes)
            except errors.ServerError as error:
                # `_take` was patient.
                if isinstance(error, errors.Unreachable | errors.Unavailable):
                    raise
                if case_of(error, writes=writes) is None or not patience.wait(error):
                    raise
                self._locator.forget()

    def _until_accepted(
        self, requests: Sequence[Command], replies: list[Any], *, writes: bool
    ) -> list[Any]:
        """Send the requests that were refused again, and only those, in order."""
        patience = self._patience()
        while True:
            left = [at for at, reply in enumerate(replies) if case_of(reply, writes=True)]
            if not left:
                return replies
            refusal = replies[left[0]]
            self._follow(refusal)
            if not patience.wait(translate(refusal, self.name)):
                return replies
            again = self._attempt([requests[at] for at in left], patience, writes=writes)
            for at, reply in zip(left, again, strict=True):
                replies[at] = reply

    def _follow(self, refusal: Any) -> None:
        case = case_of(refusal, writes=True)
        assert isinstance(case, Case)
        if isinstance(refusal, rx.MovedError):
            self._locator.note_moved(refusal)
        elif case.finds_again:
            self._locator.forget()


class _Resend:
    """Sends the requests of a pipeline again; see `pipeline.Resend`."""

    def __init__(self, connection: FollowingConnection) -> None:
        self._connection = connection

    def allows(self, reply: Any) -> bool:
        return case_of(reply, writes=True) is not None

    def send(self, request: Command, refusal: Any) -> Any:
        return self._connection.send_again(request, refusal)
