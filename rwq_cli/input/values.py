"""Values as users write them: durations, times and regular expressions.

A duration is `500ms`, `30s`, `5m`, `1h30m`, `2d`, or bare seconds; a time is `08:00` or
`2026-11-22T08:00`, with or without a zone, or `@1764000000`. This machine's time zone is used, but
not its clock: the current time is the server's.
"""

import re
import warnings
from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import AnyStr

from rwq_cli.core.clock import LATEST_MS, LONGEST_S
from rwq_cli.core.errors import InvalidArgument

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/([smhd]))?", re.ASCII)
_BARE = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_UNIX = re.compile(r"@\d{1,12}(\.\d{1,9})?", re.ASCII)
# The unambiguous forms that `fromisoformat` accepts.
_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?"
_OF_DAY = re.compile(_CLOCK, re.ASCII)
_DATED = re.compile(rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}", re.ASCII)


def parse_duration(text: str, limit_s: float = LONGEST_S) -> float:
    stripped = text.strip()
    seconds = None
    if _BARE.fullmatch(stripped):
        seconds = float(stripped)
    elif stripped and _PART.sub("", stripped) == "":
        seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(stripped))
    if seconds is not None:
        return in_limits(seconds, limit_s)
    raise InvalidArgument(f"not a duration: {text!r}", "write it like 500ms, 30s, 5m, 1h30m or 2d")


def in_limits(seconds: float, limit_s: float = LONGEST_S) -> float:
    if seconds > limit_s:
        raise InvalidArgument("a duration longer than a hundred years", "give a shorter one")
    return float(seconds)


def parse_rate(text: str) -> float:
    """Parse `50/s`, `3000/m`, `100/h` or bare items a second."""
    if (match := _RATE.fullmatch(text.strip())) and float(match[1]) > 0:
        return float(match[1]) / _UNITS_S[match[2] or "s"]
    raise InvalidArgument(f"not a rate: {text!r}", "write it like 50/s, 0.5/s or 100/m")


def parse_time(text: str, now_ms: Callable[[], int]) -> int:
    """Parse `@` and seconds, date and time (ISO 8601), or the next time of day into unix ms."""
    stripped = text.strip()
    try:
        if _UNIX.fullmatch(stripped):
            whole, _, fraction = stripped[1:].partition(".")
            unix_ms = int(whole) * 1000 + int(fraction.ljust(3, "0")[:3])
        elif _DATED.fullmatch(stripped):
            unix_ms = round(1000 * datetime.fromisoformat(stripped).timestamp())
        elif _OF_DAY.fullmatch(stripped):
            unix_ms = _next(time.fromisoformat(stripped), now_ms())
        else:
            raise ValueError
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(
            f"not a time: {text!r}", "write it like 08:00, 2026-11-22T08:00 or @1795334400"
        )
    if unix_ms >= LATEST_MS:
        raise InvalidArgument(
            f"too far in the future: {text!r}", "give a time before the year 2200"
        )
    return unix_ms


def time_note(text: str, unix_ms: int, now_ms: int) -> str | None:
    """What is to be noted of a time that `parse_time` has parsed; None for nothing."""
    from rwq_cli.output import human

    stripped = text.strip()
    if unix_ms < now_ms:
        return f"{stripped} was {human.duration((now_ms - unix_ms) / 1000)} ago"
    if _UNIX.fullmatch(stripped):
        return None
    instant = datetime.fromtimestamp(unix_ms / 1000)
    is_dated = _DATED.fullmatch(stripped) is not None
    wanted = datetime.fromisoformat(stripped).timetz() if is_dated else time.fromisoformat(stripped)
    # Where clocks are set forward, an hour does not exist.
    if wanted.tzinfo is None and instant.time().replace(microsecond=0) != wanted.replace(
        microsecond=0
    ):
        return f"{stripped} does not exist on that day here: it is {instant:%H:%M}"
    return None


def _next(of_day: time, now_ms: int) -> int:
    """Return the next instant with this time of day, unix ms."""
    today = datetime.fromtimestamp(now_ms / 1000, of_day.tzinfo)
    start = datetime.combine(today, of_day)
    # When clocks are set back, an hour occurs twice: the second one may still be ahead.
    return next(
        unix_ms
        for days in range(3)
        for fold in (0, 1)
        if (unix_ms := round(1000 * (start + timedelta(days)).replace(fold=fold).timestamp()))
        > now_ms
    )


def parse_regex(text: AnyStr, option: str) -> "re.Pattern[AnyStr]":
    try:
        with warnings.catch_warnings():
            # It warns about the syntax of future versions of Python.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidArgument(
            f"{option} is not a regular expression: {reason}",
            "escape characters that are meant literally",
        ) from error
