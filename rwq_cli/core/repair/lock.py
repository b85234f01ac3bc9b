"""The lock of a queue's cleans: one of ours is at work at a time."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from getpass import getuser
from os import getpid
from socket import gethostname
from types import TracebackType
from typing import TypeVar
from uuid import uuid4

from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue

T = TypeVar("T")

# It ends so long after its holder was killed.
LOCK_MS = 15_000
_RENEW_S = LOCK_MS / 3000
_POLL_S = 0.5


class CleanLock:
    """Holds `Q:clean-lock` within a `with` block; another clean is waited for.

    The scripts of a clean check everything again, so a lock that was lost, because its holder was
    stopped for a while, is only taken again. A dry run takes none.
    """

    def __init__(self, queue: Queue, *, dry_run: bool) -> None:
        self._queue = queue
        self._is_needed = not dry_run
        self._holder = b"%b:%d:%b" % (_user_and_host(), getpid(), uuid4().hex[:8].encode())
        self._renewed_s = 0.0

    def __enter__(self) -> "CleanLock":
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, traceback: TracebackType | None
    ) -> None:
        if self._is_needed:
            # If the server is lost, the lock ends by itself.
            with suppress(ServerError):
                self._queue.run("clean_lock", holder=self._holder, lock_ms=0)

    def renew(self) -> None:
        """Keep the lock; call this between batches."""
        if self._queue.clock.monotonic() - self._renewed_s >= _RENEW_S:
            self._take()

    def kept(self, entries: Iterable[T]) -> Iterator[T]:
        """The entries; the lock is kept while they are read."""
        for entry in entries:
            self.renew()
            yield entry

    def sleep(self, seconds: float) -> None:
        """Wait, and keep the lock."""
        longest_s = LOCK_MS / 1000 - _RENEW_S
        while seconds > 0:
            self._take()
            self._queue.clock.sleep(min(seconds, longest_s))
            seconds -= longest_s

    def _take(self) -> None:
        queue, said = self._queue, None
        while self._is_needed:
            other = queue.run("clean_lock", holder=self._holder, lock_ms=LOCK_MS)
            if other is None:
                break
            if other != said:
                name, who = (
                    each.decode("utf-8", "backslashreplace") for each in (queue.name, other)
                )
                queue.connection.on_wait(f"waiting for another clean of {name}, by {who}")
                said = other
            queue.clock.sleep(_POLL_S)
        self._renewed_s = queue.clock.monotonic()


def _user_and_host() -> bytes:
    try:
        user = getuser()
    except (KeyError, OSError):
        # A container may run as a user without a name.
        user = "?"
    return f"{user}@{gethostname()}".encode()
