"""The client's clock, injected so that tests can replace it. Dates are the server's."""

import time
from typing import Protocol


class Clock(Protocol):
    """Measures time, and waits."""

    def monotonic(self) -> float:
        """Seconds since some fixed instant."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
