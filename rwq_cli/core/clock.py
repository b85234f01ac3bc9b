"""The client's clock, which tests can replace, and times as the server counts them."""

import time
from functools import partial

from rwq_cli.core.errors import InvalidArgument

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
        # As the server's clock, it goes on while this machine is asleep, and so do leases.
        return time.clock_gettime(_CLOCK)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _time_ms(what: str, seconds: float) -> int:
    # With an expiry of 0, the server refuses to set a key, or deletes it.
    rounded = round(seconds * 1000)
    if rounded < 1:
        raise InvalidArgument(f"{what} at least 1 ms", "give a longer time")
    return rounded


# How long a lease lasts, and a result is kept, in whole milliseconds.
lease_time_ms = partial(_time_ms, "a lease must last")
result_time_ms = partial(_time_ms, "a result must be kept for")
