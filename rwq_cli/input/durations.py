"""Durations as users write them: `500ms`, `30s`, `5m`, `1h30m`, `2d`, or bare seconds."""

import re

from rwq_cli.core.errors import InvalidArgument

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
HUNDRED_YEARS_S = 100 * 365 * 86400.0
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_BARE = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def parse_duration(text: str, limit_s: float = HUNDRED_YEARS_S) -> float:
    stripped = text.strip()
    seconds = None
    if _BARE.fullmatch(stripped):
        seconds = float(stripped)
    elif stripped and _PART.sub("", stripped) == "":
        seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(stripped))
    if seconds is not None:
        return in_limits(seconds, limit_s)
    raise InvalidArgument(f"not a duration: {text!r}", "write it like 500ms, 30s, 5m, 1h30m or 2d")


def in_limits(seconds: float, limit_s: float = HUNDRED_YEARS_S) -> float:
    if seconds > limit_s:
        raise InvalidArgument("a duration longer than a hundred years", "give a shorter one")
    return float(seconds)
