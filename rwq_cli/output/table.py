"""Tables and sections for people."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import TypeVar

from rwq_cli.output.cells import cut, width
from rwq_cli.output.fit import GUTTER, fit, total_width
from rwq_cli.output.machine import plain
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.report import Column, Cut, View
from rwq_cli.output.screen import Piece, print_lines
from rwq_cli.output.sections import section_lines as section_lines, wrapped as wrapped
from rwq_cli.output.tables import table_lines as table_lines

T = TypeVar("T")

# Rows that are read before the first one is written; longer tables are fitted piece by piece.
_ROWS_AT_ONCE = 10_000
_MIN_PROSE_WIDTH = 20
_EMPTY = frozenset({"", "-"})
_GAP = " " * GUTTER


def write_table(view: View[T], records: Iterator[T], options: OutputOptions) -> None:
    """Write records as a table; nothing if there are none.

    The header is repeated only if the columns that fit change.
    """
    is_wide = options.format is OutputFormat.WIDE
    columns = (view.all_columns if is_wide else ()) or view.columns
    natural = [width(column.title) for column in columns]
    headed: list[int] = []
    while rows := list(islice(records, _ROWS_AT_ONCE)):
        cells = [_cells(column, rows) for column in columns]
        for index, texts in enumerate(cells):
            natural[index] = max(natural[index], *map(width, texts))
        widths = dict(enumerate(natural))
        if not is_wide:
            filled = [
                index
                for index, column in enumerate(columns)
                if options.fields or not (column.rank and _is_empty(column, cells[index], rows))
            ]
            widths = fit(columns, natural, filled, options.environment.width)
        if list(widths) != headed:
            print_lines(_head(columns, widths), options)
            headed = list(widths)
        shown = [
            _fitted(columns[index], cells[index], room, rows, is_last=index == headed[-1])
            for index, room in widths.items()
        ]
        print_lines(map(chain.from_iterable, zip(*shown, strict=True)), options)


def _cells(column: Column[T], rows: Sequence[T]) -> list[str]:
    if column.human is not None:
        return list(map(column.human, rows))
    return [plain(column.raw(record)) for record in rows]


def _is_empty(column: Column[T], texts: Sequence[str], rows: Sequence[T]) -> bool:
    """Whether all cells are unknown; a payload may be `-` itself."""
    return _EMPTY.issuperset(texts) and all(plain(column.raw(record)) != "-" for record in rows)


def _head(columns: Sequence[Column[T]], widths: dict[int, int]) -> list[list[Piece]]:
    """The titles, and a rule below them."""
    titles = []
    for index, room in widths.items():
        title = cut(columns[index].title, room)
        titles.append(title.rjust(room) if columns[index].right else title.ljust(room))
    return [[(_GAP.join(titles), "bold")], [("─" * total_width(widths), "dim")]]


def _fitted(
    column: Column[T], texts: Sequence[str], room: int, rows: Sequence[T], *, is_last: bool
) -> list[tuple[Piece, Piece]]:
    """The cells of a column, cut and padded to its width, with the gap to the next column."""
    middle = column.cut is Cut.MIDDLE
    cut_texts = [cut(text, room, middle=middle) for text in texts]
    pads = [" " * (room - width(text)) for text in cut_texts]
    styles = map(column.style, rows) if column.style else repeat(None)
    gap = "" if is_last else _GAP
    cells = zip(pads, cut_texts, styles, strict=False)
    if column.right:
        return [((pad, None), (text + gap, style)) for pad, text, style in cells]
    return [((text, style), (pad + gap, None)) for pad, text, style in cells]


def write_sections(view: View[T], records: Iterator[T], options: OutputOptions) -> None:
    """Write detailed records."""
    assert view.sections is not None
    is_first = True
    if view.overview:
        records = iter(known := list(records))
        write_table(view._replace(columns=view.overview), iter(known), options)
        is_first = not known
    for record in records:
        for section in view.sections(record):
            if not is_first:
                print_lines([[]], options)
            print_lines(section_lines(section, options.environment.width), options)
            is_first = False
