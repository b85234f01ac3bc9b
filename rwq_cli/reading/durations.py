"""Durations as users write them: `500ms`, `30s`, `5m`, `1h30m`, `2d`, or bare seconds."""

import re

from rwq_cli.core.errors import InvalidArgument

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_BARE = re.compile(r"\d+(?:\.\d+)?")


def parse_duration(text: str) -> float:
    """Seconds of a duration.

    Args:
        text: Parts such as `1h30m`, or a bare number of seconds.

    Raises:
        InvalidArgument: It is neither.
    """
    stripped = text.strip()
    if _BARE.fullmatch(stripped):
        return float(stripped)
    if stripped and _PART.sub("", stripped) == "":
        return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(stripped))
    raise InvalidArgument(f"not a duration: {text!r}", "it looks like 500ms, 30s, 5m, 1h30m or 2d")
