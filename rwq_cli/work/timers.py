"""Functions to be called at certain times."""

import heapq
from collections.abc import Callable
from itertools import count
from math import inf
from time import monotonic

Action = Callable[[], object]


class Timers:
    """Calls functions when they are due, by `time.monotonic`."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._numbers = count()

    def at(self, due_s: float, action: Action) -> None:
        """Call a function at this time. It is never cancelled, but checks if it still applies."""
        heapq.heappush(self._heap, (due_s, next(self._numbers), action))

    def after(self, seconds: float, action: Action) -> None:
        """Call a function after this many seconds."""
        self.at(monotonic() + seconds, action)

    @property
    def left_s(self) -> float:
        """Seconds until the next one is due; infinity for none."""
        return max(0.0, self._heap[0][0] - monotonic()) if self._heap else inf

    def run(self) -> None:
        """Call what is due."""
        while self._heap and self._heap[0][0] <= monotonic():
            heapq.heappop(self._heap)[2]()

    def shift(self, seconds: float) -> None:
        """Move all due times, because the process was suspended for this long."""
        self._heap = [(due_s + seconds, number, action) for due_s, number, action in self._heap]
