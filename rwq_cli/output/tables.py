"""Tables for people: rich draws them; this decides which columns fit, and how wide they are."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from rwq_cli.output.console import cut, open_console, print_stripped
from rwq_cli.output.field import Cut, Field
from rwq_cli.output.options import OutputOptions
from rwq_cli.output.sections import Piece

T = TypeVar("T")

# How many rows are measured together, and how many rich draws together.
_ROWS_MEASURED = 10_000
_ROWS_DRAWN = 1_000
_GUTTER = 2
# How many cells each cut column keeps beside a whole ID, and how many it keeps at least.
_ENOUGH = 16
_LEAST = 10
# Columns up to this rank are left out before an ID is cut, the first ones also before text is.
_EXTRA_RANK = 3
_EMPTY = frozenset({"", "-"})


def write_table(
    columns: Sequence[Field[Any]],
    records: Iterator[Any],
    options: OutputOptions,
    *,
    keeps_all: bool = False,
    is_wide: bool = False,
) -> int:
    """Draw a table in pieces; the header is drawn again only if other columns fit."""
    # With `keeps_all`, columns without values are shown, too; with `is_wide`, nothing is cut.
    console = open_console(options.environment, colour=options.colour)
    needed, headed, count = [cell_len(column.heading) for column in columns], None, 0
    while rows := list(islice(records, _ROWS_MEASURED)):
        count += len(rows)
        cells = _cells(columns, rows, needed)
        widths = dict(enumerate(needed))
        if not is_wide:
            shown = [at for at in widths if keeps_all or _has_values(columns[at], cells[at], rows)]
            widths = fit(columns, needed, shown, console.width)
        lines = _lines(columns, widths, rows, cells)
        for _ in range(0, len(rows), _ROWS_DRAWN):
            table = Table(
                box=box.SIMPLE_HEAD,
                show_edge=False,
                pad_edge=False,
                padding=(0, 1, 0, 0),
                show_header=list(widths) != headed,
                header_style="bold",
                border_style="dim",
            )
            headed = list(widths)
            for index, width in widths.items():
                column = columns[index]
                justify: Any = "right" if column.right else "left"
                heading = cut(column.heading, width)
                table.add_column(heading, justify=justify, width=width, no_wrap=True)
            for pieces in islice(lines, _ROWS_DRAWN):
                table.add_row(*(Text(text, style or "") for text, style in pieces))
            total = sum(widths.values()) + _GUTTER * (len(widths) - 1)
            print_stripped(console, table, total)
    return count


def _has_values(column: Field[T], texts: Sequence[str], rows: Sequence[T]) -> bool:
    """Return True if a column has values, or may have some that are unknown."""
    if not column.rank or not _EMPTY.issuperset(texts):
        return True
    # A payload may be `-` itself.
    as_values = ("-", b"-", *([None] if column.may_be_unknown else []))
    return any(value in as_values for value in map(column.get, rows))


def _cells(columns: Sequence[Field[T]], rows: Sequence[T], needed: list[int]) -> list[list[str]]:
    cells = [list(map(column.cell, rows)) for column in columns]
    for index, texts in enumerate(cells):
        needed[index] = max(needed[index], *map(cell_len, texts), 0)
    return cells


def _lines(
    columns: Sequence[Field[T]],
    widths: dict[int, int],
    rows: Sequence[T],
    cells: Sequence[Sequence[str]],
) -> Iterator[list[Piece]]:
    """Yield the cells of each row, cut to these widths, with their styles."""
    shown = [(columns[at], cells[at], width) for at, width in widths.items()]
    for number, row in enumerate(rows):
        yield [
            (
                cut(texts[number], width, middle=column.cut is Cut.MIDDLE),
                column.style(row) if column.style else None,
            )
            for column, texts, width in shown
        ]


def table_lines(
    columns: Sequence[Field[T]], rows: Sequence[T], room: int, widest: list[int]
) -> tuple[list[Piece], list[list[Piece]]]:
    widest[:] = map(max, widest, (cell_len(column.heading) for column in columns))
    cells = _cells(columns, rows, widest)
    widths = fit(columns, widest, range(len(columns)), room)

    def line(shown: Iterable[Piece]) -> list[Piece]:
        pieces: list[Piece] = []
        for (index, width), piece in zip(widths.items(), shown, strict=True):
            pad = " " * (width - cell_len(piece[0]))
            pair: list[Piece] = [piece, (pad, None)]
            pieces += [*(reversed(pair) if columns[index].right else pair), (" " * _GUTTER, None)]
        return pieces[:-1]

    def title(index: int, width: int) -> Piece:
        column = columns[index]
        return cut(column.heading, width, middle=column.cut is Cut.MIDDLE), "bold"

    titles = line(title(index, width) for index, width in widths.items())
    return titles, list(map(line, _lines(columns, widths, rows, cells)))


def fit(
    columns: Sequence[Field[Any]], needed: Sequence[int], shown: Sequence[int], room: int
) -> dict[int, int]:
    """Choose the columns that fit, at least one; returns their widths by index."""
    # The least important columns are left out first, if that lets the ID stay whole beside enough
    # of the others. Otherwise all that may be cut share the room.
    # What always stays is the first column with names, or what comes closest to it.
    *leaving, main = sorted(
        shown,
        key=lambda index: (columns[index].rank or 100, columns[index].cut is Cut.MIDDLE, -index),
    )
    cuttable = {index for index in shown if columns[index].cut}
    extras = [index for index in leaving if 0 < columns[index].rank <= _EXTRA_RANK]
    first = sum(index not in cuttable for index in extras)
    attempts = [(extras[:count], cuttable - {main}, _ENOUGH) for count in range(len(extras) + 1)]
    attempts += [(leaving[:count], cuttable, _LEAST) for count in range(first, len(leaving) + 1)]
    for without, cut_columns, least in attempts:
        left = [index for index in shown if index not in without]
        if widths := _shared(needed, left, cut_columns, room, least):
            return widths
    return {main: min(needed[main], max(room, 1))}


def _shared(
    needed: Sequence[int], shown: Sequence[int], cuttable: set[int], room: int, least: int
) -> dict[int, int] | None:
    """Share the room, cutting the widest columns to one width; None if that is below `least`."""
    left = room - _GUTTER * (len(shown) - 1)
    left -= sum(needed[index] for index in shown if index not in cuttable)
    widths = {index: needed[index] for index in shown}
    waiting = sorted(cuttable.intersection(shown), key=lambda index: needed[index])
    while waiting:
        share = left // len(waiting)
        index = waiting.pop(0)
        if needed[index] > share and share < least:
            return None
        widths[index] = min(needed[index], share)
        left -= widths[index]
    return widths if left >= 0 else None
