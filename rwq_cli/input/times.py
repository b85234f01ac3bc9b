"""Times as users write them: `08:00`, `2026-11-22T08:00`, with or without a zone, `@1764000000`.

This machine's time zone is used, but not its clock: the current time is the server's.
"""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta

from rwq_cli.core.errors import InvalidArgument

# Later scores could not order items that are due at the same instant.
_LATEST_MS = 7_258_118_400_000
_UNIX = re.compile(r"@\d{1,12}(\.\d{1,9})?", re.ASCII)
# The unambiguous forms that `fromisoformat` accepts.
_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?"
_OF_DAY = re.compile(_CLOCK, re.ASCII)
_DATED = re.compile(rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}", re.ASCII)


def parse_time(text: str, now_ms: Callable[[], int]) -> int:
    """The unix ms of `@` and seconds, of a date and time (ISO 8601), or of the next time of day."""
    stripped = text.strip()
    try:
        if _UNIX.fullmatch(stripped):
            whole, _, fraction = stripped[1:].partition(".")
            unix_ms = int(whole) * 1000 + int(fraction.ljust(3, "0")[:3])
        elif _DATED.fullmatch(stripped):
            unix_ms = _unix_ms(datetime.fromisoformat(stripped))
        elif _OF_DAY.fullmatch(stripped):
            unix_ms = _next(time.fromisoformat(stripped), now_ms())
        else:
            raise ValueError
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(
            f"not a time: {text!r}", "write it like 08:00, 2026-11-22T08:00 or @1795334400"
        )
    if unix_ms >= _LATEST_MS:
        raise InvalidArgument(
            f"too far in the future: {text!r}", "give a time before the year 2200"
        )
    return unix_ms


def _next(of_day: time, now_ms: int) -> int:
    """The next instant with this time of day, unix ms."""
    today = datetime.fromtimestamp(now_ms / 1000, of_day.tzinfo)
    given = datetime.combine(today, of_day)
    # When clocks are set back, an hour occurs twice: the second one may still be ahead.
    return next(
        unix_ms
        for days in range(3)
        for fold in (0, 1)
        if (unix_ms := _unix_ms((given + timedelta(days)).replace(fold=fold))) > now_ms
    )


def _unix_ms(given: datetime) -> int:
    return round(given.timestamp() * 1000)
