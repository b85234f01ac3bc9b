"""Times as users write them: `08:00`, `2026-11-22T08:00`, with a zone or without, `@1764000000`.

No clock of this machine is asked, only its time zone: what the time is now the server says.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

from rwq_cli.core.errors import InvalidArgument

# Beyond it a score cannot tell apart the items of one instant.
_LATEST_MS = 7_258_118_400_000
_UNIX = re.compile(r"@(\d{1,12})(?:\.(\d{1,9}))?", re.ASCII)
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_ZONE = r"(Z|[+-]\d\d(?::?\d\d)?)?"
_OF_DAY = re.compile(_CLOCK + _ZONE, re.ASCII)
_DATED = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)[T ]{_CLOCK}{_ZONE}", re.ASCII)


def parse_time(text: str, now_ms: Callable[[], int]) -> int:
    """The instant that is meant.

    Args:
        text: `@` and unix seconds; a date and a time of day as in ISO 8601, in the zone given or in
            the local one; or a time of day alone, which is the next such there.
        now_ms: What the time is, unix ms; asked only where it matters.

    Raises:
        InvalidArgument: It is none of them, no such time exists, or it is too far off.

    Returns:
        Unix ms.
    """
    stripped = text.strip()
    try:
        unix_ms = _read(stripped, now_ms)
    except (ValueError, OverflowError, OSError):
        unix_ms = None
    if unix_ms is None:
        raise InvalidArgument(
            f"not a time: {text!r}", "it looks like 08:00, 2026-11-22T08:00 or @1795334400"
        )
    if unix_ms >= _LATEST_MS:
        raise InvalidArgument(f"too far off: {text!r}", "give a time before the year 2200")
    return unix_ms


def _read(text: str, now_ms: Callable[[], int]) -> int | None:
    if found := _UNIX.fullmatch(text):
        return int(found[1]) * 1000 + _microseconds(found[2]) // 1000
    if found := _DATED.fullmatch(text):
        *date, hour, minute, second, fraction, zone = found.groups()
        year, month, day = map(int, date)
        given = datetime(
            *(year, month, day, int(hour), int(minute), int(second or 0)),
            _microseconds(fraction),
            _zone(zone),
        )
        return _unix_ms(given)
    if found := _OF_DAY.fullmatch(text):
        hour, minute, second, fraction, zone = found.groups()
        now = now_ms()
        given = datetime.fromtimestamp(now / 1000, _zone(zone)).replace(
            hour=int(hour),
            minute=int(minute),
            second=int(second or 0),
            microsecond=_microseconds(fraction),
        )
        # Where the clocks are put back an hour comes twice: the second may be still ahead.
        return next(
            unix_ms
            for days in range(3)
            for fold in (0, 1)
            if (unix_ms := _unix_ms((given + timedelta(days)).replace(fold=fold))) > now
        )
    return None


def _unix_ms(given: datetime) -> int:
    return round(given.timestamp() * 1000)


def _microseconds(fraction: str | None) -> int:
    return int((fraction or "").ljust(6, "0")[:6])


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))
