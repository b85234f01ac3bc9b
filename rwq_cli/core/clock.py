"""The one clock of this side, so that tests can bring their own. Dates are the server's."""

import time
from typing import Protocol


class Clock(Protocol):
    """Measures waiting and waits."""

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
