"""Detailed records for people: titled parts with labels and values."""

from collections.abc import Sequence
from typing import NamedTuple

# The style of a value that is a command line.
COMMAND_STYLE = "cyan"
# A line of a section: its label, its value, and the value's style. An empty label continues the
# line before.
Line = tuple[str, str, str | None]
# A piece of a line: a text and its style, such as `red`, or None.
Piece = tuple[str, str | None]


class Section(NamedTuple):
    """A titled part of a detailed record."""

    # With `numbers`, values are aligned at leading numbers. With `is_data`, the only value is an
    # item's data, in as many lines as they have.
    title: str
    lines: Sequence[Line]
    numbers: bool = False
    is_data: bool = False
