"""The client's clock, which tests can replace. Dates come from the server's clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Measures time and sleeps."""

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
