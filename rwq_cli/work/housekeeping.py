"""What a worker does beside its commands: light cleans, and counting what waits."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from threading import Event, Lock, Thread
from time import monotonic

from rwq_cli.core.errors import ServerError
from rwq_cli.core.model import Repair
from rwq_cli.core.queue import WorkQueue
from rwq_cli.service.backoff import jittered

_JOIN_S = 0.2


class Housekeeper:
    """A thread that cleans and counts at intervals; after a server error, at the next one again.

    Args:
        queues: The queues, on a connection of their own.
        clean_s: How often to clean, seconds; None for never.
        count_s: How often to count what waits, seconds; None for never.
        notify: Called from the thread when there is something new; never after `close`.

    Attributes:
        waiting: How many items wait in all queues; None if unknown.
    """

    def __init__(
        self,
        queues: Sequence[WorkQueue],
        *,
        clean_s: float | None,
        count_s: float | None,
        notify: Callable[[], object],
    ) -> None:
        self._queues = queues
        self._clean_s = clean_s
        self._count_s = count_s
        self._notify = notify
        self._cleans: deque[tuple[bytes, Mapping[Repair, int]]] = deque()
        self._closed = Event()
        self._notifying = Lock()
        self.waiting: int | None = None
        self._thread = Thread(target=self._run, name="housekeeping", daemon=True)
        self._thread.start()

    def take_cleans(self) -> Iterator[tuple[bytes, Mapping[Repair, int]]]:
        """What cleans have done since the last call, by queue."""
        while self._cleans:
            yield self._cleans.popleft()

    def close(self) -> None:
        """End the thread, unless it is in the middle of a clean, which may be cut off anywhere."""
        with self._notifying:
            self._closed.set()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        clean_at_s = monotonic() if self._clean_s is not None else inf
        count_at_s = monotonic() if self._count_s is not None else inf
        while not self._closed.wait(max(0.0, min(clean_at_s, count_at_s) - monotonic())):
            if self._count_s is not None and monotonic() >= count_at_s:
                self._count()
                count_at_s = monotonic() + self._count_s
            if self._clean_s is not None and monotonic() >= clean_at_s:
                self._clean()
                # Workers that were started together must not clean at the same time.
                clean_at_s = monotonic() + jittered(self._clean_s)

    def _count(self) -> None:
        with suppress(ServerError):
            self.waiting = sum(queue.lengths().waiting for queue in self._queues)
            self._tell()

    def _clean(self) -> None:
        for queue in self._queues:
            if self._closed.is_set():
                return
            with suppress(ServerError):
                counts = Counter(action.action for action in queue.light_clean())
                if counts:
                    self._cleans.append((queue.name, counts))
                    self._tell()

    def _tell(self) -> None:
        # The caller may have closed what it is woken by; its number could be that of another file.
        with self._notifying:
            if not self._closed.is_set():
                self._notify()
