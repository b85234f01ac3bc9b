"""The connection to a server, and the ways to send commands on it.

The core sends raw commands (`("LRANGE", key, 0, 9)`), so that the code shows what is sent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

import redis
from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.lua import load_script
from rwq_cli.core.progress import ProgressListener
from rwq_cli.core.server import link as links
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction
from rwq_cli.core.server.error_mapping import translate
from rwq_cli.core.server.link import Link, LinkOptions
from rwq_cli.core.server.node import Node
from rwq_cli.core.server.pipeline import CancelToken, Pipeline, Resend
from rwq_cli.core.server.requests import pack_request, read_reply, run_again, writes
from rwq_cli.core.server.timeouts import CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S

__all__ = ["CONNECT_TIMEOUT_S", "REPLY_TIMEOUT_S", "Connection"]


class Connection:
    """A connection to one server.

    It opens a link when it needs one, keeps it for the next command, and opens another while that
    link is in use: by calls sent ahead, by a blocking command, or by another thread.

    Args:
        client: A redis-py client with `protocol=2`, without `decode_responses` and retries.
        name: The server's name in messages, without a password.
        address: The server's URL without user and password; `name` if not given.
        connect_timeout_s: The timeout for opening a link, seconds.
        reply_timeout_s: The timeout for one reply, seconds.

    Attributes:
        progress: The progress listener of operations.
        on_wait: Called with a message if a command waits for a failover or a moving queue.
        stop: Ends `run_each` and `transact_each` once all outstanding replies are read.
        is_cluster: Whether the server is a cluster.
    """

    is_cluster = False
    # Sends requests again; None: on one server, nothing is ever sent twice.
    _resend: Resend | None = None

    def __init__(
        self,
        client: redis.Redis,
        name: str = "the server",
        *,
        address: str | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
    ) -> None:
        # redis-py annotates its own calls, not those of its users.
        self._client: Any = client
        self.name = name
        self.address = name if address is None else address
        self.progress = ProgressListener()
        self.on_wait: Callable[[str], object] = lambda _message: None
        self.stop = CancelToken()
        self._options = LinkOptions(connect_timeout_s, reply_timeout_s)
        self._node = Node(client, self._options, name)

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

    def call(self, *command: Any) -> Any:
        """Send one command.

        Raises:
            ServerError: The command failed; the subclass gives the reason.
        """
        (reply,) = self._send([command], writes=writes(command))
        return _raised(self._parsed(command, reply))

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
        try:
            replies = self._transaction(given) if atomic else self._batch(given)
        except errors.OutOfMemory:
            # Redis before 7.2 queues no commands while it is out of memory, not even reads. All
            # callers send reads, which it answers outside a transaction.
            replies = self._batch(given)
        parsed = list(map(self._parsed, given, replies))
        return parsed if return_errors else list(map(_raised, parsed))

    def _batch(self, commands: Sequence[Command]) -> list[Any]:
        return self._send(commands, writes=any(map(writes, commands)))

    def _transaction(self, commands: Sequence[Command]) -> list[Any]:
        request = Transaction(commands)
        (replies,) = self._send([request], writes=any(map(writes, commands)))
        if isinstance(replies, list):
            return replies
        raise translate(replies, self.name) from replies

    def _send(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:
        """Send requests in one round trip; return the replies, and refusals as exceptions."""
        with self._lend(writes=writes) as link:
            link.send(b"".join(pack_request(request, link) for request in requests))
            replies = [read_reply(link, request) for request in requests]
            for at, reply in enumerate(replies):
                if isinstance(reply, rx.ResponseError):
                    replies[at] = run_again(link, requests[at], reply)
            return replies

    def run(self, script_name: str, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        """Run a script, sending its text only if the server has not loaded it.

        Args:
            script_name: The file's name in `core/lua/ops`, without `.lua`.
            keys: The KEYS of the script.
            args: The ARGV of the script.

        Raises:
            ServerError: The server refused it, or the connection was lost.
        """
        request = ScriptCommand(script_name, keys, args)
        (reply,) = self._send([request], writes=writes(request))
        if isinstance(reply, rx.ResponseError):
            raise translate(reply, self.name, script=request.script) from reply
        return reply

    def run_each(
        self,
        script_name: str,
        keys: Sequence[bytes],
        calls: Iterable[Sequence[Any] | None],
        *,
        reads_only: bool = False,
    ) -> Iterator[Any]:
        """Run a script once for each list of arguments, sending ahead of the replies.

        The server runs the calls in order, each atomically.

        Args:
            script_name: The file's name in `core/lua/ops`, without `.lua`.
            keys: The KEYS of the script.
            calls: The ARGV of each call, read at most two ahead of the replies; None means that the
                source pauses, so that all replies are awaited.
            reads_only: Whether the script writes nothing, so that `stop` need not end it.

        Raises:
            ServerError: A call was refused, or the connection was lost. A refusal is raised after
                the replies to all later calls are read.

        Yields:
            The replies; `REFUSED` for a refused call.
        """
        script = load_script(script_name)
        return Pipeline(
            self._lend,
            lambda refusal: translate(refusal, self.name, script=script),
            CancelToken() if reads_only else self.stop,
            self._resend,
        ).replies(
            None if args is None else ScriptCommand(script_name, keys, args) for args in calls
        )

    def transact_each(self, transactions: Iterable[Sequence[Command] | None]) -> Iterator[Any]:
        """Run lists of commands, each in MULTI and EXEC, sending ahead of the replies.

        For work that needs no decision on the server: passing data through a script costs twice
        as much as storing it.

        Args:
            transactions: The commands of each; None means that the source pauses.

        Raises:
            ServerError: As for `run_each`. If the server refuses a command before EXEC, nothing of
                the transaction has run; if a command fails in EXEC, the others still run.

        Yields:
            The list of replies of each transaction; `REFUSED` for a failed one.
        """
        return Pipeline(
            self._lend,
            lambda refusal: translate(refusal, self.name),
            self.stop,
            self._resend,
        ).replies(None if each is None else Transaction(each) for each in transactions)

    def scan(self, *options: Any) -> Iterator[list[bytes]]:
        """Pages of all keys that SCAN finds with these options.

        Raises:
            ServerError: The server refused, or was lost.
        """
        cursor = 0
        while True:
            cursor, page = self.call("SCAN", cursor, *options)
            yield page
            if cursor == 0:
                return

    def open_link(self) -> Link:
        """Open another link to this server for a blocking command; the caller closes it.

        Raises:
            ServerError: It could not be opened.
        """
        return self._take(fresh=True)[1]

    def recover(self, error: errors.ServerError) -> bool:  # noqa: ARG002
        """Prepare for another link after a blocking command failed; return whether that helps."""
        return False

    def for_other_thread(self, *, reply_timeout_s: float) -> "Connection":
        """Another connection to this server, for another thread.

        Args:
            reply_timeout_s: Its timeout for one reply, seconds.
        """
        return Connection(
            self._client,
            self.name,
            address=self.address,
            connect_timeout_s=min(self._options.connect_timeout_s, reply_timeout_s),
            reply_timeout_s=reply_timeout_s,
        )

    def set_no_touch(self) -> bool:
        """Turn on CLIENT NO-TOUCH on every link, so that reads do not reset idle times.

        Returns:
            Whether the server supports it (Redis 7.2 and Valkey do). If not, reading an item's data
            or its size resets its idle time.
        """
        if self._options.no_touch is False:
            self._options.no_touch = True
            with self._lend(writes=False):
                pass
        return self._options.no_touch is True

    @contextmanager
    def deadline(self, seconds: float, *, is_patient: bool = True) -> Iterator[None]:
        """Within the block, limit the thread's wait for a reply to a deadline plus a grace period.

        A write has a grace period of 2 s, anything else one of 0.3 s.

        Args:
            seconds: The deadline, from now; 0 or infinity for none.
            is_patient: Whether a failover, or the move of a queue, is waited for beyond it.
        """
        limits = self._options.limits
        outer = limits.deadline_s, limits.patience_s
        limits.deadline_s = min(limits.deadline_s, monotonic() + seconds if seconds else inf)
        if not is_patient:
            limits.patience_s = limits.deadline_s
        try:
            yield
        finally:
            limits.deadline_s, limits.patience_s = outer

    def close(self) -> None:
        """Close all idle links; the next command opens one again."""
        self._node.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _lend(self, *, writes: bool = True) -> Iterator[Link]:
        """Lend a link that is ready for a command.

        Args:
            writes: Whether a command that is sent on it may write.
        """
        # Without its reply, nobody knows what a write has done.
        self._options.limits.grace_s = links.GRACE_S if writes else links.READ_GRACE_S
        node, link = self._take()
        try:
            with node.taken(link):
                yield link
        except errors.ConnectionLost as error:
            if not writes:
                error.hint = "try again in a moment"
            raise

    def _take(self, *, fresh: bool = False) -> tuple[Node, Link]:
        """The node for the next command, and a link to it that is ready; `fresh`: a new one."""
        return self._node, self._node.take(fresh=fresh)

    def _parsed(self, command: Command, reply: Any) -> Any:
        """A reply as redis-py's client returns it; an error reply as a `ServerError`."""
        if isinstance(reply, errors.ServerError):
            return reply
        if isinstance(reply, rx.ResponseError):
            if isinstance(command, ScriptCommand):
                return translate(reply, self.name, script=command.script)
            key = command[1] if len(command) > 1 else None
            return translate(reply, self.name, key=key)
        if isinstance(command, Transaction):
            return reply
        callbacks = self._client.response_callbacks
        return callbacks[command[0]](reply) if command[0] in callbacks else reply


def _raised(reply: Any) -> Any:
    if isinstance(reply, errors.ServerError):
        raise reply
    return reply
