"""Which columns of a table fit into a width, and how wide each of them is."""

from collections.abc import Iterator, Sequence
from typing import Any

from rwq_cli.output.report import LAST_EXTRA, Column, Cut

GUTTER = 2
# No column is cut to less, except the last one that is left.
_LEAST = 10


def fit(
    columns: Sequence[Column[Any]], natural: Sequence[int], filled: Sequence[int], room: int
) -> dict[int, int]:
    """The columns to show, by index, each with its width; at least the most important one.

    Args:
        columns: All columns.
        natural: The widths that they need.
        filled: The indices of those that may be shown.
        room: The width of the terminal.
    """
    main = _most_important(columns, filled)
    for shown, cuttable in _layouts(columns, filled, main):
        # All that are cut get the same width.
        for most in range(max(room, _LEAST), _LEAST - 1, -1):
            widths = {
                index: min(natural[index], most) if index in cuttable else natural[index]
                for index in shown
            }
            if total_width(widths) <= room:
                return widths
    return {main: min(natural[main], max(room, 1))}


def total_width(widths: dict[int, int]) -> int:
    """The width of a table."""
    return sum(widths.values()) + GUTTER * (len(widths) - 1)


def _most_important(columns: Sequence[Column[Any]], filled: Sequence[int]) -> int:
    """The column that always stays: the first with names, or what comes closest to it."""

    def place(index: int) -> tuple[bool, int, bool]:
        column = columns[index]
        return column.rank > 0, -column.rank, column.cut is not Cut.MIDDLE

    return min(filled, key=place)


def _layouts(
    columns: Sequence[Column[Any]], filled: Sequence[int], main: int
) -> Iterator[tuple[list[int], set[int]]]:
    """The columns to show, and those of them that may be cut, from the best layout to the last.

    Extras are left out, then other texts are cut, then names, then more columns are left out; at
    last also those that otherwise never are, except the most important one.
    """
    leaving = sorted(
        (index for index in filled if columns[index].rank and index != main),
        key=lambda index: columns[index].rank,
    )
    extras = {index for index in leaving if columns[index].rank <= LAST_EXTRA}
    names = {index for index in filled if columns[index].cut and index not in leaving}
    texts = {index for index in leaving if columns[index].cut}
    for count in range(len(leaving) + 1):
        shown = [index for index in filled if index not in leaving[:count]]
        if extras.intersection(shown):
            yield shown, texts & extras
        else:
            if count == len(extras):
                yield shown, texts
            yield shown, texts | names
    others = [index for index in filled if index not in leaving and index != main]
    while others:
        others.pop()
        yield [index for index in filled if index == main or index in others], names
