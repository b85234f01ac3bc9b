"""The client's clock, which tests can replace, and times as the server counts them.

Dates come from the server's clock.
"""

import time
from typing import TYPE_CHECKING

from rwq_cli.core.errors import InvalidArgument

if TYPE_CHECKING:
    from datetime import datetime

# How long a lease lasts by default, seconds.
LEASE_S = 300.0
# How long an ID must look broken by default before it is acted on, seconds.
GRACE_S = 1.0
# How long a result is kept by default, seconds.
RESULT_TTL_S = 3600.0

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds since some fixed instant."""
        # As the server's clock, it goes on while this machine is asleep, and so do leases.
        return time.clock_gettime(_CLOCK)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def lease_time_ms(lease_s: float) -> int:
    """How long a lease lasts, in whole milliseconds: 1 at least."""
    return _at_least_1_ms(lease_s, "a lease must last")


def result_time_ms(ttl_s: float) -> int:
    """How long a result is kept, in whole milliseconds: 1 at least."""
    return _at_least_1_ms(ttl_s, "a result must be kept for")


def unix_ms(when: "datetime | float") -> int:
    """A point in time, an aware datetime or unix seconds, in whole unix milliseconds."""
    if not isinstance(when, (int, float)):
        if when.tzinfo is None:
            raise InvalidArgument("the time has no time zone", "give an aware datetime")
        when = when.timestamp()
    return round(when * 1000)


def _at_least_1_ms(seconds: float, what: str) -> int:
    # With an expiry of 0, the server refuses to set a key, or deletes it.
    rounded = round(seconds * 1000)
    if rounded < 1:
        raise InvalidArgument(f"{what} at least 1 ms", "give a longer time")
    return rounded
