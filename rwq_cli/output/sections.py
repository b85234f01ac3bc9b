"""Detailed records for people: titled parts with labels and values."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The style of a value that is a command line.
COMMAND_STYLE = "cyan"
# A line of a section: its label, its value, and the value's style. An empty label continues the
# line before.
Row = tuple[str, str, str | None]
# A piece of a line: a text and its style, such as `red`, or None.
Piece = tuple[str, str | None]

_GAP = "  "
_NUMBER = re.compile(r">?\d[\d,]*")
_PROSE_WIDTH_MIN = 20


class Section(NamedTuple):
    """A titled part of a detailed record; with `numbers`, values are aligned at leading numbers."""

    title: str
    rows: Sequence[Row]
    numbers: bool = False


def section_lines(section: Section, width: int) -> Iterator[list[Piece]]:
    """Yield the title, then right-aligned labels with their values, for a terminal's width."""
    # Prose is wrapped; a command is not, because it is meant to be copied.
    from rich.cells import cell_len

    if section.title:
        yield [(section.title, "bold")]
    margin = max((cell_len(label) for label, _, _ in section.rows), default=0)
    room = max(_PROSE_WIDTH_MIN, width - margin - len(_GAP))
    numbers = [_NUMBER.match(value) if section.numbers else None for _, value, _ in section.rows]
    digits = max((number.end() for number in numbers if number), default=0)
    for (label, value, style), number in zip(section.rows, numbers, strict=True):
        if number:
            value = " " * (digits - number.end()) + value
        head = " " * (margin - cell_len(label)) + label
        for line in value.split("\n"):
            for part in [line] if style == COMMAND_STYLE else wrapped(line, room):
                yield [(head, "dim"), (_GAP, None), (part, style)]
                head = " " * margin


def wrapped(line: str, room: int) -> list[str]:
    from rich.console import Console
    from rich.text import Text

    return [part.plain.rstrip() for part in Text(line).wrap(Console(), room)] or [""]
