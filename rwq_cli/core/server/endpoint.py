"""A server that requests are sent to: its links, and what is sent again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

from redis import exceptions as rx
from redis.connection import SSLConnection

from rwq_cli.core import errors
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction, writes
from rwq_cli.core.server.error_mapping import REPLIES, code_of, recognized, translate, unreachable
from rwq_cli.core.server.link import FAILURES, Link, Shared
from rwq_cli.core.server.patience import (
    CASES,
    GRACE_S,
    READ_GRACE_S,
    CancelToken,
    Patience,
    limited,
    limits,
)


class Endpoint:
    """One server, whose connections redis-py's client pools."""

    # By Sentinel or a cluster, after a failover.
    is_found_again = False

    def __init__(
        self,
        client: Any,
        name: str,
        connect_timeout_s: float,
        reply_timeout_s: float,
        patience_s: float,
    ) -> None:
        self._client, self.name = client, name
        self.connect_timeout_s, self.reply_timeout_s = connect_timeout_s, reply_timeout_s
        self.patience_s = patience_s
        self.on_wait: Callable[[str], object] = lambda _message: None
        # Given an error of a link that could not be made, may change its hint.
        self.explain: Callable[[errors.ServerError], object] = lambda _error: None
        self.stop = CancelToken()
        self._shared = Shared()
        # If it was never reached, the address may be wrong.
        self.was_found = False
        self.has_written = False

    def client(self) -> Any:
        """The client of the server, looked up if necessary."""
        return self._client

    def forget(self) -> None:
        """Close the idle links; the next is resolved and authenticated anew."""
        self._shared.scripts.clear()
        self._client.connection_pool.disconnect(inuse_connections=False)

    # Links.

    def _take(self, *, writes: bool) -> Link:
        """A link that is ready for a command; the caller releases or closes it."""
        limits.grace_s = GRACE_S if writes else READ_GRACE_S
        limits.connect_s = self.connect_timeout_s
        pool = self.client().connection_pool
        try:
            link = Link(pool, self.name, self.reply_timeout_s, self._shared)
        except errors.RwqError:
            raise
        except (*FAILURES, ValueError) as error:
            raise self._failure(error) from error
        self.was_found = True
        try:
            link.set_modes()
        except BaseException as error:
            link.close()
            if isinstance(error, errors.ConnectionLost):
                error.hint = "try again in a moment"
            raise
        return link

    def take(self, *, writes: bool, patience: Patience | None = None) -> Link:
        """A link, which the caller closes; with patience, it is waited for."""
        while True:
            try:
                return self._take(writes=writes)
            except errors.ServerError as error:
                # Nothing was sent.
                if patience is None or not self._may_repeat(error, patience, writes=False):
                    self.explain(error)
                    raise

    @contextmanager
    def lend(self, *, writes: bool, patience: Patience | None = None) -> Iterator[Link]:
        """Lend a link; see `take`. It is closed if the block fails."""
        link = self.take(writes=writes, patience=patience)
        try:
            yield link
        except BaseException as error:
            # A reply may be outstanding.
            link.close()
            if isinstance(error, errors.AuthenticationFailed):
                # A server may ask for a password only now.
                self.explain(error)
            if isinstance(error, errors.ConnectionLost) and not writes:
                error.hint = "try again in a moment"
            raise
        else:
            link.release()

    def _failure(self, error: Exception) -> errors.RwqError:
        """The error for a link that could not be made."""
        # A provider of credentials that fails does so within redis-py's own error.
        if isinstance(error.__cause__, errors.RwqError):
            return error.__cause__
        for refusal in (error, error.__cause__):
            if isinstance(refusal, REPLIES):
                return translate(refusal, self.name)
        pool = self.client().connection_pool
        place = pool.connection_kwargs.get("host"), pool.connection_kwargs.get("port")
        has_tls = issubclass(pool.connection_class, SSLConnection)
        other = recognized(error, place, self.name, has_tls=has_tls)
        return other or unreachable(error, self.name, limited(self.connect_timeout_s))

    # What is repeated; see `patience`.

    def patience(self) -> Patience:
        return Patience(
            self.patience_s,
            self.stop,
            self._tell,
            is_found_again=self.is_found_again,
            has_written=self.has_written,
        )

    def note_once(self, line: str, kind: str = "") -> None:
        """Tell the caller something about the server: each kind once."""
        if kind not in self._shared.told:
            self._shared.told.add(kind)
            self.on_wait(f"rwq: {line}")

    def _tell(self, message: str, limit_s: float) -> None:
        limit = "" if limit_s == inf else f" up to {limit_s:g} s"
        self.note_once(f"waiting{limit}: {message}", "wait")

    def _may_repeat(self, error: errors.ServerError, patience: Patience, *, writes: bool) -> bool:
        """Wait after a failure; return whether to repeat the call, on a new link."""
        if error.refusal == "unreachable" and not self.was_found:
            return False
        if not patience.wait(error, writes=writes):
            return False
        self.forget()
        return True

    def did_not_run(self, reply: Any) -> bool:
        """Whether a reply says that its request did nothing, and may be sent again."""
        return isinstance(reply, rx.ResponseError) and code_of(reply) in CASES

    def send(self, requests: Sequence[Command], patience: Patience | None = None) -> list[Any]:
        """Send requests in one round trip; return the replies, and refusals as exceptions.

        What was refused for a moment is sent again, and only that, in order.
        """
        patience = patience or self.patience()
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
            self.has_written |= any(
                writes(requests[at]) and not isinstance(replies[at], Exception) for at in left
            )
            left = [at for at in left if self.did_not_run(replies[at])]
            if left:
                refusal = self.error_of(replies[left[0]], requests[left[0]])
                if not self._may_repeat(refusal, patience, writes=write):
                    break
        return replies

    def _exchange(self, requests: Sequence[Command], *, writes: bool) -> list[Any]:
        with self.lend(writes=writes) as link:
            link.send(requests)
            return [link.read(request) for request in requests]

    def send_again(
        self, requests: Sequence[Command], error: errors.ServerError, *, writes: bool
    ) -> list[Any] | None:
        """Send requests again after a refusal, or after the replies to reads were lost; None if
        they are not to be repeated."""
        patience = self.patience()
        if not self._may_repeat(error, patience, writes=writes):
            return None
        return self.send(requests, patience)

    def error_of(self, reply: Exception, request: Command) -> errors.ServerError:
        """The error for the refusal of a request."""
        if isinstance(request, ScriptCommand):
            return translate(reply, self.name, script=request.script)
        is_one = not isinstance(request, Transaction) and len(request) > 1
        return translate(reply, self.name, key=request[1] if is_one else None)
