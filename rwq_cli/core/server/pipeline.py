"""Sending calls ahead of their replies, so that the server never waits for its client.

Two calls are outstanding: the server runs one while the next is in its socket. More would gain
nothing.

A server that refuses a call because it is out of memory may still run the next one, which is
smaller. To prevent that, the client would have to wait for each reply before it sends the next
call, which halves the throughput on a network, or each call would have to check and advance a key,
which every other client of the queue would see, and which transactions cannot check. Instead it is
reported exactly: after a refusal, no more calls are sent, all outstanding replies are read, and
each call's place in the stream says whether it took effect; see `Acknowledged`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.lua import Script
from rwq_cli.core.server.commands import REFUSED, Command
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.packing import pack

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


class Flight:
    """The outstanding calls on one link.

    Args:
        link: The link.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sent: deque[Sequence[Any]] = deque()

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, call: Sequence[Any]) -> None:
        """Send one call."""
        raise NotImplementedError

    def receive(self) -> Any:
        """Read the reply to the oldest call; a refusal is returned as redis-py's exception."""
        raise NotImplementedError


class ScriptFlight(Flight):
    """Calls of one script; a call is its ARGV.

    Args:
        link: The link.
        script: The script.
        keys: Its KEYS.
    """

    def __init__(self, link: Link, script: Script, keys: Sequence[bytes]) -> None:
        super().__init__(link)
        self._by_sha = ("EVALSHA", script.sha1, len(keys), *keys)
        self._by_text = ("EVAL", script.text, len(keys), *keys)
        self._replies: deque[Any] = deque()
        self._is_refused = False

    def send(self, call: Sequence[Any]) -> None:
        self._link.send(pack((*self._by_sha, *call)))
        self._sent.append(call)

    def receive(self) -> Any:
        if not self._replies:
            self._replies.append(self._link.read())
            if isinstance(self._replies[0], rx.NoScriptError):
                self._run_again()
        self._sent.popleft()
        reply = self._replies.popleft()
        self._is_refused = self._is_refused or isinstance(reply, rx.ResponseError)
        return reply

    def _run_again(self) -> None:
        """After SCRIPT FLUSH, send the calls that did not run by text, until one is refused."""
        self._replies.extend(self._link.read() for _ in range(len(self._sent) - 1))
        for at, call in enumerate(self._sent):
            if self._is_refused:
                return
            if isinstance(self._replies[at], rx.NoScriptError):
                self._replies[at] = self._link.exchange(*self._by_text, *call)
            self._is_refused = isinstance(self._replies[at], rx.ResponseError)


class TransactionFlight(Flight):
    """Transactions; a call is its commands."""

    def send(self, call: Sequence[Command]) -> None:
        self._link.send(pack_transaction(call))
        self._sent.append(call)

    def receive(self) -> Any:
        replies = read_transaction(self._link, len(self._sent[0]))
        self._sent.popleft()
        if isinstance(replies, list):
            return next((r for r in replies if isinstance(r, rx.ResponseError)), replies)
        return replies


def pack_transaction(commands: Sequence[Command]) -> bytes:
    """Encode commands in MULTI and EXEC."""
    return b"".join(map(pack, (("MULTI",), *commands, ("EXEC",))))


def read_transaction(link: Link, count: int) -> list[Any] | rx.ResponseError:
    """Read the replies to the commands of a transaction.

    Args:
        link: The link on which it was sent.
        count: How many commands it has.

    Returns:
        The reply to EXEC; or the refusal of a command before EXEC, so that nothing ran.
    """
    *queued, done = [link.read() for _ in range(count + 2)]
    if isinstance(done, list):
        return done
    refusal: rx.ResponseError = next(
        (reply for reply in queued if isinstance(reply, rx.ResponseError)), done
    )
    return refusal


class Pipeline:
    """Sends calls ahead of their replies, and stops at the first refusal.

    A link is held only while calls are outstanding. So a link that was dropped while the source
    paused is replaced before the next call is sent.

    Args:
        lend: Lends a link that is ready for a command.
        flight: Makes the flight for the calls on a link.
        translate: Turns a refusal into a `ServerError`.
        stop: Checked before each call is read from the source.
    """

    def __init__(
        self,
        lend: Callable[[], AbstractContextManager[Link]],
        flight: Callable[[Link], Flight],
        translate: Callable[[Exception], errors.ServerError],
        stop: CancelToken,
    ) -> None:
        self._lend = lend
        self._flight = flight
        self._translate = translate
        self._stop = stop
        self._has_ended = False
        self._failure: BaseException | None = None

    def replies(self, calls: Iterable[Sequence[Any] | None]) -> Iterator[Any]:
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
                with self._lend() as link:
                    flight = self._flight(link)
                    while call is not None:
                        flight.send(call)
                        while len(flight) > SENT_AHEAD:
                            yield self._receive(flight)
                        call = self._next(source)
                    while flight:
                        yield self._receive(flight)
        finally:
            self._stop.is_polled = False
        if self._failure is not None:
            raise self._failure

    def _next(self, source: Iterator[Sequence[Any] | None]) -> Sequence[Any] | None:
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

    def _receive(self, flight: Flight) -> Any:
        try:
            reply = flight.receive()
        except errors.ServerError as error:
            error.in_doubt = True
            raise
        if isinstance(reply, rx.ResponseError):
            self._has_ended = True
            self._failure = self._failure or self._translate(reply)
            return REFUSED
        return reply
