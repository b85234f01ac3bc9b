"""What `rwq history` shows: a line of blocks for each count, with least, most and now."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import COUNT, DURATION, ID, MOMENT, NAME, Fields, attribute, field
from rwq_cli.output.sections import Line, Section

_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None]) -> str:
    """Draw values as bars: the highest as a full bar, 0 as the lowest, None as a space."""
    highest = max((value for value in values if value is not None), default=0)
    steps = len(_LEVELS) - 1
    # Above 0, at least one step.
    return "".join(
        " "
        if value is None
        else _LEVELS[0 if not value else max(1, round(value / highest * steps))]
        for value in values
    )


class QueueHistory(NamedTuple):
    """The entries of a queue at each step of a time; None where there is none."""

    queue: bytes
    step_ms: int
    entries: Sequence[Any]


_MEASURES: dict[str, tuple[str, str, Callable[[Any], str]]] = {
    "waiting": ("waiting", "items that waited", human.count),
    "processing": ("processing", "items in processing", human.count),
    "abandoned": (
        "abandoned",
        "items that a clean found abandoned since the entry before",
        human.count,
    ),
    "delayed": ("delayed", "items that were delayed", human.count),
    "buried": ("buried", "items that were buried", human.count),
    "done_per_minute": (
        "done a minute",
        "items completed, removed or moved away a minute; null if unknown",
        lambda done: human.count(None if done is None else round(done)),
    ),
    "next_age_seconds": (
        "next item's age",
        "about how long the next item had waited",
        human.duration,
    ),
}
_PATHS = {name: name.replace("_seconds", "_s") for name in _MEASURES}
HISTORY_FIELDS: Fields[Any] = Fields(
    "An entry of a history",
    field("queue", "queue", "the queue's name", NAME),
    field("at_ms", "at_ms", "the minute, or the beginning of the step", MOMENT, "AT"),
    *(
        field(name, _PATHS[name], help, DURATION if "seconds" in name else COUNT)
        for name, (_, help, _) in _MEASURES.items()
    ),
    field("next_id", "next_id", "the item that was leased next; null if none waited", ID, "NEXT"),
)
PLAIN = ("at_ms", *_MEASURES, "next_id", "queue")
# What stands beside the blocks.
BESIDE_CELLS = 48


def history_sections(history: QueueHistory) -> list[Section]:
    rows: list[Line] = []
    for name, (label, _, show) in _MEASURES.items():
        value = attribute(_PATHS[name])
        values = [None if entry is None else value(entry) for entry in history.entries]
        if not any(values) and name not in ("waiting", "done_per_minute"):
            continue
        rows.append((label, f"{sparkline(values)}  {_ends(values, show)}", None))
    every = human.duration(history.step_ms / 1000)
    whole = human.duration(history.step_ms / 1000 * len(history.entries))
    return [Section(f"{escaped(history.queue)}: the last {whole}, a block for {every}", rows)]


def _ends(values: Sequence[float | None], show: Callable[[Any], str]) -> str:
    present = [number for number in values if number is not None]
    if not present:
        return "unknown"
    least, most, now = (show(value) for value in (min(present), max(present), values[-1]))
    return f"always {now}" if least == most == now else f"{least} to {most}, now {now}"
