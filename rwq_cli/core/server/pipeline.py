"""Sending calls ahead of their replies, so that the server never waits for its client.

Up to three calls are outstanding while a reply is awaited: two are sent ahead, so that the server
always has the next one in its socket. More would gain nothing.

A server that refuses a call because it is out of memory may still run the next one, which is
smaller. To prevent that, the client would have to wait for each reply before it sends the next
call, which halves the throughput on a network, or each call would have to check and advance a key,
which every other client of the queue would see, and which transactions cannot check. Instead it is
reported exactly: after a refusal, no more calls are sent, all outstanding replies are read, and
each call's place in the stream says whether it took effect; see `Acknowledged`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.server.commands import REFUSED, Command, Transaction
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.requests import did_not_run, pack_request, read_reply, run_again

SENT_AHEAD = 2


class CancelToken:
    """Asks a pipeline to stop at its next safe point.

    Attributes:
        requested: Set by the caller: send no more calls, read the outstanding replies, and raise
            KeyboardInterrupt.
        is_polled: Whether the pipeline would notice now; not while it waits for its source.
    """

    def __init__(self) -> None:
        self.requested = False
        self.is_polled = False


class OutstandingCalls:
    """The outstanding requests on one link.

    Args:
        link: The link.
        resend: Sends a request again after a refusal that allows it; None if none does.

    Attributes:
        is_stale: Whether a request had to be sent again: this link is to the wrong node.
    """

    def __init__(self, link: Link, resend: "Resend | None") -> None:
        self._link = link
        self._resend = resend
        self._sent: deque[Command] = deque()
        self._replies: deque[Any] = deque()
        self._is_refused = False
        self.is_stale = False

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, request: Command) -> None:
        """Send one request."""
        self._link.send(pack_request(request, self._link))
        self._sent.append(request)

    def receive(self) -> Any:
        """Read the oldest request's reply; a refusal is returned as redis-py's exception."""
        if not self._replies:
            self._replies.append(read_reply(self._link, self._sent[0]))
            if self._repeats(self._replies[0]):
                self._run_again()
        request, reply = self._sent.popleft(), self._replies.popleft()
        if isinstance(request, Transaction) and isinstance(reply, list):
            reply = next((each for each in reply if isinstance(each, rx.ResponseError)), reply)
        self._is_refused = self._is_refused or isinstance(reply, rx.ResponseError)
        return reply

    def _repeats(self, reply: Any) -> bool:
        """Whether a reply says that the request did not run, and may be sent again."""
        if did_not_run(reply):
            return True
        return self._resend is not None and self._resend.allows(reply)

    def _run_again(self) -> None:
        """Send the outstanding requests that did not run once more, until one is refused.

        That is after SCRIPT FLUSH, by text; on a server before Redis 7, when its permissions are
        checked; and in a cluster or after a failover, by `resend`.
        """
        pending = list(self._sent)
        self._replies.extend(read_reply(self._link, request) for request in pending[1:])
        for at, request in enumerate(pending):
            if self._is_refused:
                return
            self._replies[at] = run_again(self._link, request, self._replies[at])
            if self._resend is not None and self._resend.allows(self._replies[at]):
                self._replies[at] = self._resend.send(request, self._replies[at])
                self.is_stale = True
            self._is_refused = isinstance(self._replies[at], rx.ResponseError)


class Resend(Protocol):
    """Sends requests again that were refused by a node that cannot run them now."""

    def allows(self, reply: Any) -> bool:
        """Whether a reply is such a refusal."""

    def send(self, request: Command, refusal: Any) -> Any:
        """Send a refused request to the node that can run it, waiting for it; return the reply."""


class Pipeline:
    """Sends calls ahead of their replies, and stops at the first refusal.

    A link is held only while calls are outstanding. So a link that was dropped while the source
    paused is replaced before the next call is sent.

    Args:
        lend: Lends a link that is ready for a command.
        translate: Turns a refusal into a `ServerError`.
        stop: Checked before each request is read from the source.
        resend: Sends a request again after a refusal that allows it; None if none does.
    """

    def __init__(
        self,
        lend: Callable[[], AbstractContextManager[Link]],
        translate: Callable[[Exception], errors.ServerError],
        stop: CancelToken,
        resend: Resend | None = None,
    ) -> None:
        self._lend = lend
        self._translate = translate
        self._stop = stop
        self._resend = resend
        self._has_ended = False
        self._failure: BaseException | None = None

    def replies(self, calls: Iterable[Command | None]) -> Iterator[Any]:
        """Send the calls.

        Args:
            calls: The calls; None means that the source pauses, so that all replies are awaited.

        Raises:
            ServerError: A call was refused, which is raised after all replies are read; or the
                connection was lost, with calls `in_doubt`.

        Yields:
            The replies in order; `REFUSED` for each refused call.
        """
        # Notice an unreachable server before the source is read.
        with self._lend():
            pass
        source = iter(calls)
        try:
            while not self._has_ended:
                call = self._next(source)
                if call is None:
                    continue
                while call is not None and not self._has_ended:
                    with self._lend() as link:
                        outstanding = OutstandingCalls(link, self._resend)
                        while call is not None and not outstanding.is_stale:
                            outstanding.send(call)
                            while len(outstanding) > SENT_AHEAD:
                                yield self._receive(outstanding)
                            call = self._next(source)
                        while outstanding:
                            yield self._receive(outstanding)
        finally:
            self._stop.is_polled = False
        if self._failure is not None:
            raise self._failure

    def _next(self, source: Iterator[Command | None]) -> Command | None:
        """The next call; None if the source pauses or has ended, or nothing more may be sent."""
        if self._has_ended:
            return None
        self._stop.is_polled = False
        try:
            if self._stop.requested:
                raise KeyboardInterrupt
            return next(source)
        except StopIteration:
            self._has_ended = True
        except BaseException as error:
            # Raised after the outstanding replies: what was sent is reported first.
            self._has_ended, self._failure = True, error
        finally:
            self._stop.is_polled = True
        return None

    def _receive(self, outstanding: OutstandingCalls) -> Any:
        try:
            reply = outstanding.receive()
        except errors.ServerError as error:
            # These servers run nothing.
            refused = (errors.Loading, errors.AuthenticationFailed)
            error.in_doubt = not isinstance(error, refused)
            raise
        if isinstance(reply, rx.ResponseError):
            self._has_ended = True
            self._failure = self._failure or self._translate(reply)
            return REFUSED
        return reply
