"""Whether the main loop still runs: supervisors must not take a live thread for a live process."""

import time
from collections.abc import Callable

from rwq_cli.core.clock import Clock
from rwq_cli.core.progress import ProgressListener


class Heartbeat:
    """When the main loop last ran, and when it is to run next.

    Args:
        silence_s: How long it may be silent, besides announced pauses, seconds.
        monotonic: A clock, seconds.
    """

    def __init__(self, silence_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._silence_s = silence_s
        self._monotonic = monotonic
        self._due_s = monotonic() + silence_s

    def beat(self, pause_s: float = 0.0) -> None:
        """Record that the main loop is alive and will sleep for this long, seconds."""
        self._due_s = self._monotonic() + pause_s + self._silence_s

    @property
    def late_s(self) -> float:
        """How much later than announced the main loop is, seconds; 0 if it is not late."""
        return max(0.0, self._monotonic() - self._due_s)


class BeatingClock:
    """A clock whose sleeps are announced.

    Args:
        inner: The clock.
        beat: Called with the length of each sleep, seconds.
    """

    def __init__(self, inner: Clock, beat: Callable[[float], None]) -> None:
        self._inner = inner
        self._beat = beat

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self._beat(seconds)
        self._inner.sleep(seconds)


class BeatingProgress(ProgressListener):
    """Progress of an operation that takes many calls, as beats.

    Args:
        inner: The listener that it replaces.
        beat: Called at each step.
    """

    def __init__(self, inner: ProgressListener, beat: Callable[[], None]) -> None:
        self._inner = inner
        self._beat = beat

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        self._beat()
        self._inner.begin(what, total)

    def advance(self, count: int) -> None:
        self._beat()
        self._inner.advance(count)

    def hide(self) -> None:
        self._inner.hide()
