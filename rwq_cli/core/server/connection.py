"""The connection to a server, and the ways to send raw commands such as `("LLEN", key)` on it."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.batches import BUDGET
from rwq_cli.core.server.commands import REFUSED, Command, Transaction
from rwq_cli.core.server.endpoint import Endpoint, Patience
from rwq_cli.core.server.error_mapping import is_unknown, translate
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.patience import READS_ONLY, CancelToken

# Keys that one call examines: few stay in the processor's cache, many take the server some five
# milliseconds. The cursor of the next call is in the reply, so each costs a round trip.
SCAN_COUNTS = 3000, 12_000
# How many calls may be outstanding: with 250 items a call, 100,000 items take 17 round trips, and
# a caller that stops waits for this many.
WINDOW_CALLS = 24
# How many bytes they may have, but for the first three, which keep the server busy.
WINDOW_BYTES = 1 << 20
_CALLS_OF_ANY_SIZE = 3
# What a call of a scan found, after the command.
Page = tuple[Command, list[bytes]]


class _Window:
    """Sends calls ahead of their replies, and stops at the first refusal.

    A server that is out of memory may refuse a call and run the next one, which is smaller. So
    after a refusal no more are sent, all outstanding replies are read, and each call's place in the
    stream says whether it took effect: see `Acknowledged`. A link is held only while calls are
    outstanding: one that was dropped while the source paused is replaced. Calls that change nothing
    (`reads_only`) are sent again if a reply is lost, and need not end at `stop`.
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
        self._endpoint.open_link(writes=False, patience=Patience(self._endpoint)).release()
        source = iter(calls)
        try:
            while not self._has_ended:
                self._next(source)
                while self._call is not None and not self._has_ended:
                    yield from self._replies_on_one_link(source)
        finally:
            self._stop.is_polled = False
        if self._failure is not None:
            raise self._failure

    def _next(self, source: Iterator[Command | None]) -> None:
        """Read the next call; it stays None if the source pauses or ends, or none may be sent."""
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

    def _replies_on_one_link(self, source: Iterator[Command | None]) -> Iterator[Any]:
        """Send calls on one link, until the source pauses or the link cannot be used any more."""
        endpoint, read = self._endpoint, []
        try:
            patience = Patience(endpoint)
            with endpoint.lend(writes=not self._reads_only, patience=patience) as link:
                while self._call is not None or self._sent:
                    self._send_ahead(link, source)
                    if not self._sent:
                        return
                    read = [link.read(self._sent[0][0])]
                    if endpoint.did_not_run(read[0]):
                        read += [link.read(call) for call, _ in list(self._sent)[1:]]
                        break
                    try:
                        yield self._settled(read.pop())
                    except GeneratorExit:
                        if self._sent:
                            raise
                        # The reader needs no more: with no reply outstanding, the link is as new.
                        return
        except errors.ServerError as error:
            if not (self._sent and self._reads_only and error.refusal in READS_ONLY):
                error.in_doubt = bool(self._sent) and isinstance(error, errors.ConnectionLost)
                endpoint.name_limit(error)
                raise
            unanswered = [call for call, _ in self._sent][len(read) :]
            if (replies := self._send_again(unanswered, error)) is None:
                raise
            read += replies
        for reply in read:
            # After a refusal, nothing is sent again.
            if not self._is_refused and endpoint.did_not_run(reply):
                call = self._sent[0][0]
                refusal = endpoint.error_of(reply, call)
                reply = (self._send_again([call], refusal) or [reply])[0]
            yield self._settled(reply)

    def _send_ahead(self, link: Link, source: Iterator[Command | None]) -> None:
        """Send calls until the window is full, or the source pauses or ends."""
        while self._call is not None and not (self._is_full() or self._has_ended):
            call, self._call = self._call, None
            # Outstanding even if sending fails: it must not be sent once more.
            self._sent.append((call, 0))
            self._sent[-1] = call, link.send([call])
            self._next(source)

    def _send_again(
        self, calls: Sequence[Command], error: errors.ServerError
    ) -> Sequence[Any] | None:
        """Send calls again that did not run, or may run twice; None if they are not to be."""
        patience = Patience(self._endpoint)
        if not patience.may_repeat(error, writes=not self._reads_only):
            return None
        # One by one: the server may have ended the link because of too large replies.
        return [self._endpoint.send([call], patience)[0] for call in calls]

    def _is_full(self) -> bool:
        calls = len(self._sent)
        is_cut = self._endpoint.shared.reply_bytes < BUDGET.bytes
        return calls >= (1 if is_cut else WINDOW_CALLS) or (
            calls >= _CALLS_OF_ANY_SIZE and sum(size for _, size in self._sent) >= WINDOW_BYTES
        )

    def _settled(self, reply: Any) -> Any:
        """The reply to the oldest call, which is outstanding no more."""
        call, _ = self._sent.popleft()
        failure = reply
        if isinstance(call, Transaction) and isinstance(reply, list):
            failure = next((part for part in reply if isinstance(part, rx.ResponseError)), reply)
        if isinstance(failure, rx.ResponseError):
            self._has_ended = self._is_refused = True
            self._failure = self._failure or self._endpoint.error_of(failure, call)
            return REFUSED
        self._endpoint.shared.note_success(writes=not self._reads_only)
        return reply


class Connection(Endpoint):
    """A connection to one server: a redis-py client, and what rwq adds to it.

    Threads and forked processes may share it: redis-py's pool makes a connection for each.

    The pool of the client, which must not decode replies, makes the connections, with its address,
    credentials, TLS and limits; the timeouts for replies are rwq's. Once rwq has only looked at
    something, reads on them do not reset idle times any more. `name` is the server's in messages,
    without a password; `address` its URL without user and password. The timeouts and the patience
    are those of `Server`, and can be set.
    """

    is_cluster = False
    # Sent with each call of a scan, which their refusal refuses.
    _probes: Sequence[Command] = ()

    @property
    def root(self) -> "Connection":
        """The connection to all nodes of a cluster, which its queues share; else this one."""
        return self

    @property
    def primary_url(self) -> str:
        """The URL that other programs can use, without user and password."""
        return self.address

    def nodes(self) -> "Sequence[tuple[Connection, bytes]]":
        """The nodes that have slots, each with a hash tag of one of its slots."""
        return [(self, b"")]

    def for_queue(self, name: bytes) -> "Connection":  # noqa: ARG002
        """The connection for the commands of one queue."""
        return self

    def within(self, seconds: float, *, is_patient: bool = True) -> Self:
        """This connection, whose calls have a deadline: see `Deadline.within`."""
        other = copy(self)
        other.deadline = self.deadline.within(seconds, is_patient=is_patient)
        return other

    def for_other_thread(self, *, reply_timeout_s: float) -> "Connection":
        """A connection for another thread, which must not wait for a failover."""
        other = copy(self)
        other.connect_timeout_s = min(self.connect_timeout_s, reply_timeout_s)
        other.reply_timeout_s = reply_timeout_s
        other.stop, other.patience_s = CancelToken(), 0
        return other

    def call(self, *command: Any) -> Any:
        return self.call_all([command])[0]

    def call_all(
        self, commands: Iterable[Command], *, atomic: bool = False, return_errors: bool = False
    ) -> list[Any]:
        """Send commands in one round trip; if `atomic`, in MULTI and EXEC, without scripts.

        The replies in a `Transaction` are not parsed. `return_errors` returns the `ServerError` of
        a refused command in place of its reply.
        """
        commands = list(commands)
        if not commands:
            return []
        replies = self._transact(commands) if atomic else self.send(commands)
        parsed = list(map(self._parsed, commands, replies))
        failure = next((reply for reply in parsed if isinstance(reply, errors.ServerError)), None)
        if failure is not None and not return_errors:
            raise failure
        return parsed

    def _transact(self, commands: Sequence[Command]) -> list[Any]:
        (replies,) = self.send([Transaction(commands)])
        if isinstance(replies, list):
            return replies
        refusal = translate(replies, self.name)
        # Redis before 7.2 queues no commands while it is out of memory, not even reads; and a user
        # or a proxy may have no MULTI. All callers send reads, which are answered without it, too.
        may_answer = isinstance(refusal, (errors.OutOfMemory, errors.PermissionDenied))
        if may_answer or is_unknown(replies, "MULTI"):
            return self.send(commands)
        raise refusal from replies

    def _parsed(self, command: Command, reply: Any) -> Any:
        """A reply as redis-py's client returns it; an error reply as a `ServerError`."""
        if isinstance(reply, rx.ResponseError):
            return self.error_of(reply, command)
        if isinstance(command, Transaction) or reply is None or isinstance(reply, Exception):
            return reply
        return self.client().response_callbacks.get(command[0], lambda same: same)(reply)

    def stream(
        self, requests: Iterable[Command | None], *, reads_only: bool = False
    ) -> Iterator[Any]:
        """Send commands, script calls and transactions, a few of them ahead of the replies.

        None means that the source pauses, so that all replies are awaited. Yields the replies as
        the server gives them, and `REFUSED` for a refused request, which is raised after the
        replies to all later ones.
        """
        return _Window(self, reads_only=reads_only).replies(requests)

    def scan(self, scan: Command, *options: Any) -> Iterator[Page]:
        """Non-empty pages of what a command finds, such as `("HSCAN", key)`, each after the command
        that read it; some of it twice.

        A cursor means nothing to another server, or after a restart: then it begins again.
        """
        patience, most = Patience(self), 0
        while True:
            try:
                for number, (command, page) in enumerate(self._pages(scan, options), 1):
                    # Not what was read before: each time, other nodes may answer before one fails.
                    if number > most:
                        patience, most = Patience(self), number
                    if page:
                        yield command, page
                return
            except errors.ServerError as error:
                if not patience.may_repeat(error, writes=False):
                    raise

    def scan_keys(
        self, pattern: bytes | None = None, *, kind: str | None = None
    ) -> Iterator[list[bytes]]:
        """Pages of the keys that match a glob or have a type; see `scan`.

        They are those of all primaries of a cluster, if the connection is not that of a queue.
        """
        options: list[object] = [] if pattern is None else ["MATCH", pattern]
        options += [] if kind is None else ["TYPE", kind]
        return (page for _, page in self.scan(("SCAN",), *options))

    def _pages(self, scan: Command, options: Sequence[Any]) -> Iterator[Page]:
        cursor: Any = 0
        while True:
            command = (*scan, cursor, "COUNT", SCAN_COUNTS[self.shared.is_slow_line], *options)
            replies = self._exchange([command, *self._probes], writes=False)
            for reply in replies:
                if isinstance(reply, rx.ResponseError):
                    raise self.error_of(reply, command) from reply
            cursor, page = replies[0]
            yield command, page
            if int(cursor) == 0:
                return

    def set_no_touch(self) -> bool:
        """Turn on CLIENT NO-TOUCH on every link, so that reading data or a size does not reset an
        idle time; return whether the server supports it (Redis 7.2 and Valkey do)."""
        if self.shared.no_touch is False:
            self.shared.no_touch = True
            self.open_link(writes=False, patience=Patience(self)).release()
        return self.shared.no_touch is True

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
