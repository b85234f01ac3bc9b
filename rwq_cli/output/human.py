"""Numbers for people: `3m ago`, `4m59s`, `1.2 MiB`, `12,345`; `-` for what is unknown."""


def count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number of things, such as `1 client` and `2,000 clients`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(number: int | None) -> str:
    if number is None:
        return "-"
    if number < 1024:
        return f"{number} B"
    amount, units = number / 1024, ["KiB", "MiB", "GiB", "TiB"]
    # A larger amount would be rounded to 1024.0.
    while amount >= 1023.95 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.1f} {units[0]}"


def rate(per_s: float | None) -> str:
    """Format a rate per second; `?` for one that nobody can know."""
    if per_s is None:
        return "?"
    return f"{per_s:.1f}" if 0 < per_s < 9.95 else f"{round(per_s):,}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if 0 < seconds < 0.05:
        return f"{max(1, round(1000 * seconds))}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s" if seconds % 1 else f"{int(seconds)}s"
    minutes, secs = divmod(max(10, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (secs, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    return "".join(f"{amount}{unit}" for amount, unit in parts[:2] if amount)


def ago(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


def due(ahead_s: float | None) -> str:
    if ahead_s is None:
        return "-"
    if ahead_s >= 1:
        return f"in {duration(ahead_s)}"
    return "due now" if ahead_s > -1 else f"due {duration(-ahead_s)} ago"


def when(unix_ms: int, now_ms: int) -> str:
    ahead_s = (unix_ms - now_ms) / 1000
    relative = f"in {duration(ahead_s)}" if ahead_s > 0 else ago(-ahead_s)
    return f"{relative}, {moment(unix_ms)}"


def moment(unix_ms: int) -> str:
    """Format an instant in local time, to the second, with zone: `2026-11-22 08:00:00 +01:00`."""
    from datetime import datetime

    try:
        local = datetime.fromtimestamp(unix_ms / 1000).astimezone()
        zone = local.isoformat()[-6:] if local.utcoffset() else "UTC"
        return f"{local:%Y-%m-%d %H:%M:%S} {zone}"
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"
