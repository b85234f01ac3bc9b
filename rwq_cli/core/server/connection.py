"""The connection to a server, and the ways to send commands on it.

The core sends raw commands (`("LRANGE", key, 0, 9)`), so that the code shows what is sent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import tee
from math import inf
from typing import Any

import redis
from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.progress import ProgressListener
from rwq_cli.core.server.commands import REFUSED, Command, ScriptCommand, Transaction, writes
from rwq_cli.core.server.error_mapping import code_of, translate
from rwq_cli.core.server.link import Link, Modes
from rwq_cli.core.server.node import Node, Timeouts, using
from rwq_cli.core.server.patience import CASES, CancelToken, Patience, deadline
from rwq_cli.core.server.timeouts import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.core.server.window import Window


class Connection:
    """A connection to one server: a redis-py client, and what rwq adds to it.

    Threads and forked processes may share it: redis-py's pool makes a connection for each.

    Args:
        client: A redis-py client. Its pool makes the connections, with its address, credentials,
            TLS and limits; the timeouts for replies are rwq's. Once rwq has only looked at
            something, reads on the client's connections do not reset idle times any more.
        name: The server's name in messages, without a password.
        address: The server's URL without user and password; `name` if not given.
        connect_timeout_s: The timeout for testing an idle connection, and for opening one that is
            named in messages, seconds.
        reply_timeout_s: The timeout for one reply, seconds.
        patience_s: How long a refusal that passes is waited for, seconds; infinity for as long as
            it takes.

    Attributes:
        progress: The progress listener of operations.
        on_wait: Called with a message if a command waits for long.
        stop: Ends `run_each` and `transact_each` once all outstanding replies are read.
        is_cluster: Whether the server is a cluster.
        has_written: Whether the server has taken a write on this connection.

    Raises:
        InvalidArgument: The client decodes replies.
    """

    is_cluster = False

    def __init__(
        self,
        client: redis.Redis | Node,
        name: str = "the server",
        *,
        address: str | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        if not isinstance(client, Node):
            settings = client.connection_pool.connection_kwargs
            if settings.get("decode_responses"):
                raise errors.InvalidArgument(
                    "the redis client decodes replies, and IDs and data may be any bytes",
                    "make it without decode_responses",
                )
            client = Node(client, name, Timeouts(connect_timeout_s, reply_timeout_s))
        self.name = name
        self.address = name if address is None else address
        self.patience_s = patience_s
        self.progress = ProgressListener()
        self.on_wait: Callable[[str], object] = lambda _message: None
        self.stop = CancelToken()
        self._node = client
        self._modes = Modes()
        self.has_written = self._has_told = False

    @property
    def root(self) -> "Connection":
        """The connection to all nodes of a cluster, which its queues share; else this one."""
        return self

    @property
    def primary_url(self) -> str:
        """The URL that other programs can use, without user and password."""
        return self.address

    def for_queue(self, name: bytes) -> "Connection":  # noqa: ARG002
        """The connection for the commands of one queue."""
        return self

    def check_one_slot(self) -> None:
        """Check that scripts can run on the queue of this connection.

        Raises:
            InvalidArgument: On a cluster, the queue's keys are in several slots.
        """

    # Single calls.

    def call(self, *command: Any) -> Any:
        """Send one command.

        Raises:
            ServerError: The command failed; the subclass gives the reason.
        """
        (reply,) = self._send([command])
        parsed = self._parsed(command, reply)
        if isinstance(parsed, errors.ServerError):
            raise parsed
        return parsed

    def call_all(
        self, commands: Iterable[Command], *, atomic: bool = False, return_errors: bool = False
    ) -> list[Any]:
        """Send commands in one round trip.

        Args:
            commands: The commands, each a sequence of its arguments. Scripts that write are allowed
                only if the caller can find out what they did after a lost reply. The replies in a
                `Transaction` are not parsed.
            atomic: Send them in MULTI and EXEC, so that all see the same instant; not for scripts.
            return_errors: Return the `ServerError` of a refused command instead of raising it.

        Raises:
            ServerError: A command failed, and `return_errors` is off; the connection was lost; or
                an atomic call was refused as a whole.

        Returns:
            The replies, in order.
        """
        given = list(commands)
        if not given:
            return []
        replies = self._transact(given) if atomic else self._send(given)
        parsed = [self._parsed(*pair) for pair in zip(given, replies, strict=True)]
        failure = next((each for each in parsed if isinstance(each, errors.ServerError)), None)
        if failure is not None and not return_errors:
            raise failure
        return parsed

    def _transact(self, commands: Sequence[Command]) -> list[Any]:
        (replies,) = self._send([Transaction(commands)])
        if isinstance(replies, list):
            return replies
        refusal = translate(replies, self.name)
        if isinstance(refusal, errors.OutOfMemory):
            # Redis before 7.2 queues no commands while it is out of memory, not even reads. All
            # callers send reads, which it answers outside a transaction.
            return self._send(commands)
        raise refusal from replies

    def run(self, script_name: str, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        """Run a script of `core/lua/ops`, sending its text only if the server has not loaded it.

        Raises:
            ServerError: The server refused it, or the connection was lost.
        """
        request = ScriptCommand(script_name, keys, args)
        (reply,) = self._send([request])
        if isinstance(reply, rx.ResponseError):
            raise self.error_of(reply, request) from reply
        return reply

    def _send(self, requests: Sequence[Command], patience: Patience | None = None) -> list[Any]:
        """Send requests in one round trip; return the replies, and refusals as exceptions.

        What was refused for a moment is sent again, and only that, in order.
        """
        patience = patience or self._patience()
        replies: list[Any] = [None] * len(requests)
        left = list(range(len(requests)))
        while left:
            asked = [requests[at] for at in left]
            write = any(map(writes, asked))
            try:
                for at, reply in zip(left, self._exchange(asked, writes=write), strict=True):
                    replies[at] = reply
            except errors.ServerError as error:
                if not self._may_repeat(error, patience, writes=write):
                    raise
                continue
            self.has_written = self.has_written or any(
                writes(requests[at]) and not isinstance(replies[at], Exception) for at in left
            )
            left = [at for at in left if self.did_not_run(replies[at])]
            if left:
                refusal = self.error_of(replies[left[0]], requests[left[0]])
                if not self._may_repeat(refusal, patience, writes=write):
                    break
        return replies

    def _exchange(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:
        with using(self._node.take(self._modes, writes=writes), writes=writes) as link:
            link.send(requests)
            replies = [link.read(request) for request in requests]
            for at, (request, reply) in enumerate(zip(requests, replies, strict=True)):
                if isinstance(reply, rx.NoScriptError) and isinstance(request, ScriptCommand):
                    replies[at] = link.exchange(*request.by_text())
            return replies

    # What is repeated; see `patience`.

    def _patience(self) -> Patience:
        return Patience(
            self.patience_s,
            self.stop,
            self._tell,
            is_found_again=self._node.is_found_again,
            has_written=self.has_written,
        )

    def _tell(self, message: str) -> None:
        if not self._has_told:
            self._has_told = True
            limit = "" if self.patience_s == inf else f" up to {self.patience_s:g} s"
            self.on_wait(f"rwq: waiting{limit}: {message}")

    def _may_repeat(self, error: errors.ServerError, patience: Patience, *, writes: bool) -> bool:
        """Wait after a failure; return whether to repeat the call, on a new connection."""
        if error.refusal == "unreachable" and not self._node.was_found:
            return False
        if not patience.wait(error, writes=writes):
            return False
        self._node.forget()
        return True

    def did_not_run(self, reply: Any) -> bool:
        """Whether a reply says that its request did nothing, and may be sent again."""
        if not isinstance(reply, rx.ResponseError):
            return False
        return isinstance(reply, rx.NoScriptError) or code_of(reply) in CASES

    def send_again(self, request: Command, reply: Any) -> Any:
        """Send a request again that did not run; return the reply to the last attempt."""
        if isinstance(reply, rx.NoScriptError) and isinstance(request, ScriptCommand):
            return self._send([request.by_text()])[0]
        patience = self._patience()
        if not self._may_repeat(self.error_of(reply, request), patience, writes=True):
            return reply
        return self._send([request], patience)[0]

    def repeat(self, requests: Sequence[Command], error: errors.ServerError) -> list[Any]:
        """Send requests again that only read, after their replies were lost."""
        patience = self._patience()
        if not self._may_repeat(error, patience, writes=False):
            raise error
        return self._send(requests, patience)

    def recover(self, error: errors.ServerError) -> bool:
        """Prepare for another link after a blocking command failed; return whether that helps."""
        if not self._patience().allows(error, writes=False):
            return False
        self._node.forget()
        return True

    # Many calls.

    def run_each(
        self,
        script_name: str,
        keys: Sequence[bytes],
        calls: Iterable[Sequence[Any] | None],
        *,
        reads_only: bool = False,
    ) -> Iterator[Any]:
        """Run a script once for each ARGV in `calls`, ahead of the replies; see `stream`."""
        return self.stream(
            (None if args is None else ScriptCommand(script_name, keys, args) for args in calls),
            reads_only=reads_only,
        )

    def transact_each(self, transactions: Iterable[Sequence[Command] | None]) -> Iterator[Any]:
        """Run lists of commands, each in MULTI and EXEC, ahead of the replies; see `stream`.

        For work that needs no decision on the server: passing data through a script costs twice
        as much as storing it. If the server refuses a command before EXEC, nothing of the
        transaction has run; if a command fails in EXEC, the others still run.
        """
        return self.stream(None if each is None else Transaction(each) for each in transactions)

    def call_each(self, commands: Iterable[Command]) -> Iterator[Any]:
        """Send commands that only read, ahead of the replies; see `stream`."""
        ahead, asked = tee(commands)
        for reply, command in zip(self.stream(ahead, reads_only=True), asked, strict=False):
            if reply is not REFUSED:
                yield self._parsed(command, reply)

    def stream(
        self, requests: Iterable[Command | None], *, reads_only: bool = False
    ) -> Iterator[Any]:
        """Send requests, a few of them ahead of the replies.

        The server runs them in order, each atomically.

        Args:
            requests: Commands, script calls and transactions; None means that the source pauses, so
                that all replies are awaited.
            reads_only: The requests change nothing, so that those whose reply was lost are sent
                again, and `stop` need not end them.

        Raises:
            ServerError: A request was refused, or the connection was lost. A refusal is raised
                after the replies to all later requests are read.

        Yields:
            The replies as the server gives them; `REFUSED` for a refused request.
        """
        return Window(self, reads_only=reads_only).replies(requests)

    def scan(self, scan: Command, *options: Any) -> Iterator[list[bytes]]:
        """Pages of what SCAN, HSCAN or ZSCAN finds; again from the start if the server is lost.

        A cursor means nothing to another server, or after a restart.

        Args:
            scan: The command up to its cursor: `("SCAN",)` or `("ZSCAN", key)`.
            options: The words after the cursor.

        Raises:
            ServerError: The server refused, or was lost.
        """
        patience = self._patience()
        while True:
            try:
                for page in self._pages(scan, options):
                    patience = self._patience()
                    yield page
                return
            except errors.ServerError as error:
                if not self._may_repeat(error, patience, writes=False):
                    raise

    def _pages(self, scan: Command, options: Sequence[Any]) -> Iterator[list[bytes]]:
        cursor: Any = 0
        while True:
            command = (*scan, cursor, *options)
            (reply,) = self._exchange([command], writes=False)
            if isinstance(reply, rx.ResponseError):
                raise self.error_of(reply, command) from reply
            cursor, page = reply
            yield page
            if int(cursor) == 0:
                return

    # Links, times and modes.

    @contextmanager
    def lend(self, *, writes: bool) -> Iterator[Link]:
        """Lend a link that is ready for a command; see `Node.lend`."""
        with using(self._take(writes=writes), writes=writes) as link:
            yield link

    def open_link(self) -> Link:
        """A link for a blocking command; the caller closes it."""
        return self._take(writes=False)

    def _take(self, *, writes: bool) -> Link:
        patience = self._patience()
        while True:
            try:
                return self._node.take(self._modes, writes=writes)
            except errors.ServerError as error:
                # Nothing was sent.
                if not self._may_repeat(error, patience, writes=False):
                    raise

    def for_other_thread(self, *, reply_timeout_s: float) -> "Connection":
        """A connection for another thread, which must not wait for a failover."""
        other = copy(self)
        other._node = copy(self._node)
        connect_s = min(self._node.timeouts.connect_s, reply_timeout_s)
        other._node.timeouts = Timeouts(connect_s, reply_timeout_s)
        other.stop, other.patience_s = CancelToken(), 0
        return other

    def set_no_touch(self) -> bool:
        """Turn on CLIENT NO-TOUCH on every link, so that reads do not reset idle times.

        Returns:
            Whether the server supports it (Redis 7.2 and Valkey do). If not, reading an item's data
            or its size resets its idle time.
        """
        if self._modes.no_touch is False:
            self._modes.no_touch = True
            with self.lend(writes=False):
                pass
        return self._modes.no_touch is True

    deadline = staticmethod(deadline)

    def close(self) -> None:
        """Close all idle links; the next command opens one again."""
        self._node.forget()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Replies.

    def _parsed(self, command: Command, reply: Any) -> Any:
        """A reply as redis-py's client returns it; an error reply as a `ServerError`."""
        if isinstance(reply, rx.ResponseError):
            return self.error_of(reply, command)
        if isinstance(command, Transaction) or reply is None or isinstance(reply, Exception):
            return reply
        callbacks = self._node.client().response_callbacks
        return callbacks[command[0]](reply) if command[0] in callbacks else reply

    def error_of(self, reply: Exception, request: Command) -> errors.ServerError:
        """The error for the refusal of a request."""
        if isinstance(request, ScriptCommand):
            return translate(reply, self.name, script=request.script)
        is_one = not isinstance(request, Transaction) and len(request) > 1
        return translate(reply, self.name, key=request[1] if is_one else None)
