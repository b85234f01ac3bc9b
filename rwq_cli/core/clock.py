"""The client's clock, which tests can replace, and times as the server counts them."""

import time
from functools import partial
from math import inf

from rwq_cli.core.errors import InvalidArgument

# How long a lease lasts by default, seconds.
LEASE_S = 300.0
# How long an ID must look broken by default before it is acted on, seconds.
GRACE_S = 1.0
# How long a result is kept by default, seconds.
RESULT_TTL_S = 3600.0
# The longest time that may be given anywhere: a hundred years. Milliseconds of it are far from what
# a double or the server's expiries cannot hold.
LONGEST_S = 100 * 365 * 86400.0
# The latest point in time, unix ms: later than this, scores could not order items that are due at
# the same instant.
LATEST_MS = 7_258_118_400_000

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The machine's clock."""

    def monotonic(self) -> float:
        # As the server's clock, it goes on while this machine is asleep, and so do leases.
        return time.clock_gettime(_CLOCK)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def unix_ms(time_reply: tuple[int, int]) -> int:
    """The server's clock in a reply to TIME."""
    seconds, microseconds = map(int, time_reply)
    return seconds * 1000 + microseconds // 1000


def checked_s(what: str, seconds: float, *, may_be_endless: bool = False) -> float:
    """Return a time that was given, in seconds.

    Args:
        what: What lasts for that time, such as `a grace period`, for the message.
        may_be_endless: Infinity is allowed: it ends when something happens.

    Raises:
        InvalidArgument: It is negative, no number, or longer than a hundred years.
    """
    if 0 <= seconds <= LONGEST_S or (may_be_endless and seconds == inf):
        return seconds
    why = f"{what} of {seconds:g} s: it must be from 0 to a hundred years"
    raise InvalidArgument(why, "give seconds, such as 1.5")


def _time_ms(what: str, must: str, seconds: float) -> int:
    # With an expiry of 0, the server refuses to set a key, or deletes it.
    ms = round(checked_s(what, seconds) * 1000)
    if ms < 1:
        raise InvalidArgument(f"{what} must {must} at least 1 ms", "give a longer time")
    return ms


# How long a lease lasts, and a result is kept, in whole milliseconds.
lease_time_ms = partial(_time_ms, "a lease", "last")
result_time_ms = partial(_time_ms, "a result", "be kept for")
