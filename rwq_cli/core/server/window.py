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
from typing import Any

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.server.commands import REFUSED, Command, Transaction
from rwq_cli.core.server.endpoint import Endpoint, Patience
from rwq_cli.core.server.patience import CancelToken

# How many calls may be outstanding: with 250 items a call, 100,000 items take 17 round trips, and
# a caller that stops waits for this many.
WINDOW_CALLS = 24
# How many bytes they may have, but for the first three, which keep the server busy.
WINDOW_BYTES = 1 << 20
_CALLS_OF_ANY_SIZE = 3


class Window:
    """Sends calls ahead of their replies, and stops at the first refusal.

    A link is held only while calls are outstanding. So a link that was dropped while the source
    paused is replaced before the next call is sent. Calls that change nothing (`reads_only`) are
    sent again if a reply is lost, and need not end at `stop`.
    """

    def __init__(self, endpoint: Endpoint, *, reads_only: bool) -> None:
        self._endpoint = endpoint
        self._reads_only = reads_only
        self._stop = CancelToken() if reads_only else endpoint.stop
        self._call: Command | None = None
        self._sent: deque[tuple[Command, int]] = deque()
        self._has_ended = self._is_refused = False
        self._failure: BaseException | None = None

    def replies(self, calls: Iterable[Command | None]) -> Iterator[Any]:
        """Send the calls; see `Connection.stream`."""
        # Notice an unreachable server before the source is read.
        with self._endpoint.lend(writes=False, patience=Patience(self._endpoint)):
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
        endpoint, read = self._endpoint, []
        try:
            patience = Patience(endpoint)
            with endpoint.lend(writes=not self._reads_only, patience=patience) as link:
                while self._call is not None or self._sent:
                    while self._call is not None and not (self._is_full() or self._has_ended):
                        call, self._call = self._call, None
                        # Outstanding even if sending fails: it must not be sent once more.
                        self._sent.append((call, 0))
                        self._sent[-1] = call, link.send([call])
                        self._next(source)
                    if not self._sent:
                        return
                    read = [link.read(self._sent[0][0])]
                    if endpoint.did_not_run(read[0]):
                        read += [link.read(call) for call, _ in list(self._sent)[1:]]
                        break
                    yield self._settled(read.pop())
        except errors.ServerError as error:
            if not (self._sent and self._reads_only and error.refusal in ("lost", "timeout")):
                error.in_doubt = bool(self._sent) and isinstance(error, errors.ConnectionLost)
                raise
            left = [call for call, _ in self._sent][len(read) :]
            if (again := self._send_again(left, error)) is None:
                raise
            read += again
        for reply in read:
            # After a refusal, nothing is sent again.
            if not self._is_refused and endpoint.did_not_run(reply):
                call = self._sent[0][0]
                refusal = endpoint.error_of(reply, call)
                reply = (self._send_again([call], refusal) or [reply])[0]
            yield self._settled(reply)

    def _send_again(
        self, calls: Sequence[Command], error: errors.ServerError
    ) -> Sequence[Any] | None:
        """Send calls again that did not run, or may run twice; None if they are not to be."""
        patience = Patience(self._endpoint)
        may_repeat = patience.may_repeat(error, writes=not self._reads_only)
        return self._endpoint.send(calls, patience) if may_repeat else None

    def _is_full(self) -> bool:
        calls = len(self._sent)
        return calls >= WINDOW_CALLS or (
            calls >= _CALLS_OF_ANY_SIZE and sum(size for _, size in self._sent) >= WINDOW_BYTES
        )

    def _settled(self, reply: Any) -> Any:
        """The reply to the oldest call, which is outstanding no more."""
        call, _ = self._sent.popleft()
        failure = reply
        if isinstance(call, Transaction) and isinstance(reply, list):
            failure = next((each for each in reply if isinstance(each, rx.ResponseError)), reply)
        if isinstance(failure, rx.ResponseError):
            self._has_ended = self._is_refused = True
            self._failure = self._failure or self._endpoint.error_of(failure, call)
            return REFUSED
        self._endpoint.shared.has_written |= not self._reads_only
        return reply
