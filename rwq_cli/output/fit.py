"""Which columns of a table fit into a width, and how wide each of them is."""

from collections.abc import Iterator, Sequence
from typing import Any

from rwq_cli.output.report import LAST_EXTRA, Column

GUTTER = 2
# No column is cut to less.
_LEAST = 10


def fit(
    columns: Sequence[Column[Any]], natural: Sequence[int], filled: Sequence[int], room: int
) -> dict[int, int]:
    """The columns to show, by index, each with its width.

    Args:
        columns: All columns.
        natural: The widths that they need.
        filled: The indices of those that may be shown.
        room: The width of the terminal.
    """
    widths: dict[int, int] = {}
    for shown, cuttable in _layouts(columns, filled):
        # All that are cut get the same width.
        for most in range(room, _LEAST - 1, -1):
            widths = {
                index: min(natural[index], most) if index in cuttable else natural[index]
                for index in shown
            }
            if total_width(widths) <= room:
                return widths
    return widths


def total_width(widths: dict[int, int]) -> int:
    """The width of a table."""
    return sum(widths.values()) + GUTTER * (len(widths) - 1)


def _layouts(
    columns: Sequence[Column[Any]], filled: Sequence[int]
) -> Iterator[tuple[list[int], set[int]]]:
    """The columns to show, and those of them that may be cut, from the best layout to the last.

    Extras are left out, then other texts are cut, then names, then more columns are left out.
    """
    leaving = sorted(
        (index for index in filled if columns[index].rank), key=lambda index: columns[index].rank
    )
    extras = {index for index in leaving if columns[index].rank <= LAST_EXTRA}
    names = {index for index in filled if columns[index].cut and not columns[index].rank}
    texts = {index for index in leaving if columns[index].cut}
    for count in range(len(leaving) + 1):
        shown = [index for index in filled if index not in leaving[:count]]
        if extras.intersection(shown):
            yield shown, texts & extras
        else:
            if count == len(extras):
                yield shown, texts
            yield shown, texts | names
