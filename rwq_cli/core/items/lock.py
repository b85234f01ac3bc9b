"""The locks of a queue: `lua/ops/lock.lua`."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from getpass import getuser
from os import getpid
from socket import gethostname
from typing import Any, Literal, Self, TypeVar
from uuid import uuid4

from rwq_cli.core.errors import LockLost, ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.server.commands import Command

T = TypeVar("T")
# A lock ends so long after its holder was killed.
LOCK_MS = 15_000
_RENEW_S = LOCK_MS / 3000
_POLL_S = 0.5


class QueueLock:
    """Holds `Q:clean-lock` or `Q:move-lock` within `with` blocks: one clean of a queue is at work
    at a time, and one move out of it. Another is waited for. A dry run takes none.

    A process that was stopped for long loses its lock. What checks everything again in the script
    that acts, as cleans do, only takes it again (`renew`); what does not, stops (`keep`).
    """

    def __init__(
        self, queue: Queue, work: Literal["clean", "move"], *, dry_run: bool = False
    ) -> None:
        self._queue, self._work = queue, work
        self._is_needed = not dry_run
        # A container may run as a user without a name.
        user = "?"
        with suppress(KeyError, OSError):
            user = getuser()
        self.holder = f"{user}@{gethostname()}:{getpid()}:{uuid4().hex[:8]}".encode()
        self._renewed_s = float("-inf")
        # The key of `Q:moved:…` that ends with the lock if this holder has begun it.
        self.moved: bytes | None = None
        # Whom a message has named.
        self._awaited: bytes | None = None

    def __enter__(self) -> Self:
        self._wait_for()
        return self

    def __exit__(self, *_: object) -> None:
        if self._renewed_s > float("-inf"):
            # If the server is lost, the lock ends by itself.
            with suppress(ServerError):
                self.release()

    def release(self, *more: Command) -> list[Any]:
        """Give up the lock; the same call sends more commands, and returns the reply to each or its
        `ServerError`."""
        self._renewed_s = float("-inf")
        return self._queue.call_all([self._command(0), *more], return_errors=True)[1:]

    def renew(self) -> None:
        """Keep the lock, or wait for it if it was lost; call this between batches."""
        if self._is_due():
            self._wait_for()

    def keep(self) -> None:
        """Keep the lock.

        Raises:
            LockLost: If another has it.
        """
        if self._is_due() and (other := self._take()):
            raise self.lost(other)

    def lost(self, other: bytes | None = None) -> LockLost:
        """The error to raise if another has had the lock since."""
        by = f" by {text_of(other)}" if other else ""
        return LockLost(f"another {self._work} of {text_of(self._queue.name)}{by} has taken over")

    def kept(self, entries: Iterable[T]) -> Iterator[T]:
        """The entries; the lock is renewed while they are read."""
        for entry in entries:
            self.renew()
            yield entry

    def sleep(self, seconds: float) -> None:
        """Wait, and keep the lock."""
        longest_s = LOCK_MS / 1000 - _RENEW_S
        while seconds > 0:
            self._wait_for()
            self._queue.clock.sleep(min(seconds, longest_s))
            seconds -= longest_s

    def _is_due(self) -> bool:
        return self._queue.clock.monotonic() - self._renewed_s >= _RENEW_S

    def _wait_for(self) -> None:
        queue = self._queue
        while self._is_needed and (other := self._take()):
            if other != self._awaited:
                self._awaited = other
                name = text_of(queue.name)
                queue.connection.on_wait(
                    f"waiting for another {self._work} of {name}, by {text_of(other)}"
                )
            queue.clock.sleep(_POLL_S)

    def _take(self) -> bytes | None:
        """Take or renew the lock; return who else has it."""
        began_s = self._queue.clock.monotonic()
        other: bytes | None
        (other,) = self._queue.call_all([self._command(LOCK_MS)])
        if other is None:
            self._renewed_s = began_s
        return other

    def _command(self, lock_ms: int) -> Command:
        """The command that takes the lock for so long; for 0 ms, that gives it up."""
        return self._queue.script(
            "lock",
            lock=f"{self._work}-lock",
            holder=self.holder,
            lock_ms=lock_ms,
            moved=None if lock_ms else self.moved,
        )
