"""A server that requests are sent to: its links, and what is sent again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic, sleep
from typing import Any

from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.batches import LONG_LINE_S, ProgressListener
from rwq_cli.core.server.commands import Command, ScriptCommand, writes
from rwq_cli.core.server.error_mapping import FAILURES, code_of, translate, unreachable
from rwq_cli.core.server.link import WAIT, Link, Shared, Timeouts
from rwq_cli.core.server.patience import (
    CASES,
    CONNECT_TIMEOUT_S,
    PATIENCE_S,
    READS_ONLY,
    REPLY_TIMEOUT_S,
    CancelToken,
    Cut,
    Deadline,
    connecting,
)

# How long a replica is waited for that was not seen as a primary: it may be meant to be one.
DEMOTED_S = 5.0
# The grace period of a write's deadline: without the reply, nobody knows what it has done.
GRACE_S = 2.0
# Less data are not asked for at once.
_REPLY_BYTES_MIN = 1 << 14
# The pause between two attempts grows from the first value to the second.
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5
# A wait is reported when it has lasted this long.
_REPORT_AFTER_S = 1.0


class Endpoint:
    """One server, whose connections redis-py's client pools."""

    # By Sentinel or a cluster, after a failover.
    is_found_again = False
    # Of all its calls: see `Connection.within`.
    deadline = Deadline()
    cut: Cut | None = None
    connect_timeout_s, reply_timeout_s, patience_s = CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S, PATIENCE_S

    def __init__(self, client: Any, name: str = "the server") -> None:
        if client and client.connection_pool.connection_kwargs.get("decode_responses"):
            raise errors.InvalidArgument(
                "the redis client decodes replies, and IDs and data may be any bytes",
                "make it without decode_responses",
            )
        self._client, self.name, self.address = client, name, name
        # Called with a message if a command waits for long.
        self.on_wait: Callable[[str], object] = lambda _message: None
        # Called with the error of a connection that cannot be made; may change its hint.
        self.explain: Callable[[errors.ServerError], object] = lambda _error: None
        # Ends what is sent ahead of its replies, once all outstanding ones are read.
        self.stop = CancelToken()
        self.progress = ProgressListener()
        self.shared = Shared()

    def client(self) -> Any:
        return self._client

    def close(self) -> None:
        """Close all idle links; the next command opens one, resolved and authenticated anew."""
        self.shared.scripts.clear()
        self._client.connection_pool.disconnect(inuse_connections=False)

    def tell(self, line: str, kind: str = "") -> None:
        """Tell the caller something about the server: each kind once, a wait once an outage."""
        if kind not in self.shared.reported:
            self.shared.reported.add(kind)
            self.on_wait(f"rwq: {line}")

    def open_link(self, *, writes: bool, patience: "Patience | None" = None) -> Link:
        """A link that is ready, which the caller closes; with patience, it is waited for."""
        while True:
            try:
                return self._open_link(writes=writes)
            except errors.ServerError as error:
                # Nothing was sent.
                if patience is None or not patience.may_repeat(error, writes=False):
                    self.explain(error)
                    raise

    def _open_link(self, *, writes: bool) -> Link:
        deadline = self.deadline._replace(grace_s=GRACE_S) if writes else self.deadline
        pool = self.client().connection_pool
        try:
            timeouts = Timeouts(self.connect_timeout_s, self.reply_timeout_s, deadline)
            link = Link(pool, self.name, self.shared, timeouts, self.cut)
        except (*FAILURES, ValueError) as error:
            raise self._failure(error) from error
        self.shared.was_found = True
        try:
            link.set_modes()
        except BaseException:
            link.close()
            raise
        return link

    @contextmanager
    def lend(self, *, writes: bool, patience: "Patience | None" = None) -> Iterator[Link]:
        """Lend a link, which is closed if the block fails."""
        link = self.open_link(writes=writes, patience=patience)
        try:
            yield link
        except BaseException as error:
            # A reply may be outstanding.
            link.close()
            if isinstance(error, errors.AuthenticationFailed):
                # A server may ask for a password only now.
                self.explain(error)
            if isinstance(error, errors.ConnectionLost) and writes:
                error.hint = "check what was done before you repeat it"
            raise
        else:
            link.release()

    def _failure(self, error: Exception) -> errors.RwqError:
        pool = self.client().connection_pool
        return unreachable(error, self.name, connecting.timeout_s, pool)

    def did_not_run(self, reply: Any) -> bool:
        return isinstance(reply, rx.ResponseError) and code_of(reply) in CASES

    def send(self, requests: Sequence[Command], patience: "Patience | None" = None) -> list[Any]:
        """Send requests in one round trip; return the replies, and refusals as exceptions.

        What was refused for a moment is sent again, and only that, in order.
        """
        patience = patience or Patience(self)
        replies: list[Any] = [None] * len(requests)
        pending = list(range(len(requests)))
        while pending:
            batch = [requests[index] for index in pending]
            is_write = any(map(writes, batch))
            try:
                answers = self._exchange(batch, writes=is_write)
            except errors.ServerError as error:
                if not (patience.may_repeat(error, writes=is_write) or self._may_cut(error, batch)):
                    self.name_limit(error)
                    raise
                continue
            for index, reply in zip(pending, answers, strict=True):
                replies[index] = reply
            succeeded = [requests[i] for i in pending if not isinstance(replies[i], Exception)]
            if succeeded:
                self.shared.note_success(writes=any(map(writes, succeeded)))
            pending = [index for index in pending if self.did_not_run(replies[index])]
            if pending:
                refusal = self.error_of(replies[pending[0]], requests[pending[0]])
                if not patience.may_repeat(refusal, writes=is_write):
                    break
        return replies

    def _exchange(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:
        began_s = monotonic()
        with self.lend(writes=writes) as link:
            link.send(requests)
            replies = [link.read(request) for request in requests]
        self.shared.is_slow_line = monotonic() - began_s > LONG_LINE_S
        return replies

    def _may_cut(self, error: errors.ServerError, requests: Sequence[Command]) -> bool:
        """Whether to ask for less data a reply: the server may have ended the link for that."""
        is_bounded = any(isinstance(one, ScriptCommand) and one.is_bounded for one in requests)
        if error.refusal != "lost" or not is_bounded or self.shared.reply_bytes <= _REPLY_BYTES_MIN:
            return False
        self.shared.reply_bytes //= 8
        return True

    def name_limit(self, error: errors.ServerError) -> None:
        """Add to the error of a lost connection the setting for which the server may end it."""
        is_closed = isinstance(error, errors.ConnectionLost) and error.refusal != "timeout"
        if not is_closed or self.deadline.ends_s < inf:
            return
        with suppress(errors.ServerError, ValueError, LookupError, TypeError):
            command = "CONFIG", "GET", "client-output-buffer-limit"
            ((name, value),) = self._exchange([command], writes=False)
            words = value.decode().split()
            if limit := int(words[words.index("normal") + 1]):
                message, *_ = error.message.partition(", perhaps ")
                reason = f"its {name.decode()} for normal clients is {limit:,} bytes"
                error.message = f"{message}; {reason}"

    def error_of(self, reply: Exception, request: Command) -> errors.ServerError:
        return translate(reply, self.name, request)


class Patience:
    """Waits between the attempts of one call, unless it is told not to."""

    def __init__(self, endpoint: Endpoint, *, waits: bool = True) -> None:
        self._endpoint, self._waits = endpoint, waits
        self._began_s = monotonic()
        self._allowed = {"always", "once", "demoted"}
        if endpoint.deadline.waits:
            self._allowed.add("waiting")
        self._pause_s = 0.0

    def may_repeat(self, error: errors.ServerError, *, writes: bool) -> bool:
        """Wait after a failure, first not at all, then ever longer; return whether to repeat the
        call, on a new link."""
        endpoint, on_one_server = self._endpoint, CASES.get(error.refusal)
        if on_one_server is None or (writes and error.refusal in READS_ONLY):
            return False
        if error.refusal == "unreachable" and not endpoint.shared.was_found:
            return False
        if not (endpoint.is_found_again or on_one_server in self._allowed):
            return False
        if error.refusal == "lost":
            self._allowed.discard("once")
        if endpoint.stop.requested:
            raise KeyboardInterrupt
        if error.refusal != "NOSCRIPT" and not (self._waits and self._wait(error, on_one_server)):
            return False
        endpoint.close()
        return True

    def _wait(self, error: errors.ServerError, on_one_server: str) -> bool:
        endpoint = self._endpoint
        waited_s = monotonic() - self._began_s
        remaining_s = endpoint.patience_s - waited_s
        # A server that is gone may be gone for good.
        may_be_gone = on_one_server == "waiting" and not endpoint.is_found_again
        if endpoint.deadline.patience_ends_s is not None and not may_be_gone:
            remaining_s = endpoint.deadline.patience_ends_s - monotonic()
        is_primary = endpoint.shared.has_written or endpoint.is_found_again
        if on_one_server == "demoted" and not is_primary:
            remaining_s = min(remaining_s, DEMOTED_S - waited_s)
        if remaining_s <= 0:
            return False
        # After MOVED the reply of the next node is soon right.
        pause_s = min(self._pause_s, _FIRST_PAUSE_S if error.refusal == "MOVED" else remaining_s)
        if waited_s < _REPORT_AFTER_S:
            pause_s = min(pause_s, _REPORT_AFTER_S - waited_s)
        else:
            limit = "" if remaining_s == inf else f" up to {waited_s + remaining_s:g} s"
            endpoint.tell(f"waiting{limit}: {error.message}", WAIT)
        sleep(min(pause_s, remaining_s))
        self._pause_s = min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, 2 * self._pause_s))
        return True
