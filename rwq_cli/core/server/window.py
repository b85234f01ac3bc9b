"""Sending calls ahead of their replies, so that neither the server nor the line is waited for.

A server that refuses a call because it is out of memory may still run the next one, which is
smaller. To prevent that, the client would have to wait for each reply before it sends the next
call, or each call would have to check and advance a key, which every other client of the queue
would see, and which transactions cannot check. Instead it is reported exactly: after a refusal, no
more calls are sent, all outstanding replies are read, and each call's place in the stream says
whether it took effect; see `Acknowledged`.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.server.commands import REFUSED, Command, Transaction
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.patience import CancelToken

# How many calls may be outstanding: with 250 items a call, 100,000 items take 50 round trips, and
# a caller that stops waits for this many.
WINDOW_CALLS = 8
# How many bytes they may have, but for the first three, which keep the server busy.
WINDOW_BYTES = 1 << 20
_CALLS_OF_ANY_SIZE = 3


class Sender(Protocol):
    """What a window needs of a connection; see `Connection`."""

    stop: CancelToken
    has_written: bool

    def lend(self, *, writes: bool) -> AbstractContextManager[Link]: ...
    def did_not_run(self, reply: Any) -> bool: ...
    def send_again(self, request: Command, reply: Any) -> Any: ...
    def repeat(self, requests: Sequence[Command], error: errors.ServerError) -> list[Any]: ...
    def error_of(self, reply: Exception, request: Command) -> errors.ServerError: ...


class Window:
    """Sends calls ahead of their replies, and stops at the first refusal.

    A link is held only while calls are outstanding. So a link that was dropped while the source
    paused is replaced before the next call is sent. Calls that change nothing (`reads_only`) are
    sent again if a reply is lost, and need not end at `stop`.
    """

    def __init__(self, connection: Sender, *, reads_only: bool) -> None:
        self._connection = connection
        self._reads_only = reads_only
        self._stop = CancelToken() if reads_only else connection.stop
        self._call: Command | None = None
        self._sent: deque[tuple[Command, int]] = deque()
        self._bytes = 0
        self._has_ended = self._is_refused = False
        self._failure: BaseException | None = None

    def replies(self, calls: Iterable[Command | None]) -> Iterator[Any]:
        """Send the calls; see `Connection.stream`."""
        # Notice an unreachable server before the source is read.
        with self._connection.lend(writes=False):
            pass
        source = iter(calls)
        try:
            while not self._has_ended:
                self._next(source)
                while self._call is not None and not self._has_ended:
                    yield from self._burst(source)
        finally:
            self._stop.is_polled = False
        if self._failure is not None:
            raise self._failure

    def _next(self, source: Iterator[Command | None]) -> None:
        """Read the next call; None if the source pauses or has ended, or none may be sent."""
        self._call = None
        if self._has_ended:
            return
        self._stop.is_polled = False
        try:
            if self._stop.requested:
                raise KeyboardInterrupt
            self._call = next(source)
        except StopIteration:
            self._has_ended = True
        except BaseException as error:
            # Raised after the outstanding replies: what was sent is reported first.
            self._has_ended, self._failure = True, error
        finally:
            self._stop.is_polled = True

    def _burst(self, source: Iterator[Command | None]) -> Iterator[Any]:
        """Send calls on one link, until the source pauses or the link cannot be used any more."""
        read: list[Any] = []
        try:
            with self._connection.lend(writes=not self._reads_only) as link:
                while self._call is not None or self._sent:
                    while self._call is not None and not (self._is_full() or self._has_ended):
                        self._sent.append((self._call, 0))
                        size = link.send([self._call])
                        self._sent[-1], self._bytes = (self._call, size), self._bytes + size
                        self._next(source)
                    if not self._sent:
                        return
                    read = [link.read(self._sent[0][0])]
                    if self._connection.did_not_run(read[0]):
                        read += [link.read(call) for call, _ in list(self._sent)[1:]]
                        break
                    yield self._settled(read.pop())
        except errors.ServerError as error:
            if not (self._sent and self._reads_only and error.refusal in ("lost", "timeout")):
                # These servers run nothing.
                refused = (errors.Loading, errors.AuthenticationFailed, errors.Unreachable)
                error.in_doubt = bool(self._sent) and not isinstance(error, refused)
                raise
            calls = [call for call, _ in self._sent]
            read += self._connection.repeat(calls[len(read) :], error)
        for reply in read:
            # After a refusal, nothing is sent again.
            if not self._is_refused and self._connection.did_not_run(reply):
                reply = self._connection.send_again(self._sent[0][0], reply)
            yield self._settled(reply)

    def _is_full(self) -> bool:
        calls = len(self._sent)
        return calls >= WINDOW_CALLS or (
            calls >= _CALLS_OF_ANY_SIZE and self._bytes >= WINDOW_BYTES
        )

    def _settled(self, reply: Any) -> Any:
        """The reply to the oldest call, which is outstanding no more."""
        call, size = self._sent.popleft()
        self._bytes -= size
        failure = reply
        if isinstance(call, Transaction) and isinstance(reply, list):
            failure = next((each for each in reply if isinstance(each, rx.ResponseError)), reply)
        if isinstance(failure, rx.ResponseError):
            self._has_ended = self._is_refused = True
            self._failure = self._failure or self._connection.error_of(failure, call)
            return REFUSED
        self._connection.has_written |= not self._reads_only
        return reply
