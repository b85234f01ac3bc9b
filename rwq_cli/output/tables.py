"""Tables for people: which columns fit, and how wide they are."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any, TypeVar

from rwq_cli.output.console import cut
from rwq_cli.output.field import Cut, Field
from rwq_cli.output.painter import GUTTER, RICH_ROWS_MAX, Column, Painter, join_cells, measure_cells
from rwq_cli.output.sections import Piece

T = TypeVar("T")

# How many rows are measured together.
_ROWS_MEASURED = 10_000
# How many cells each cut column keeps beside a whole ID, and how many it keeps at least.
_ENOUGH = 16
_LEAST = 10
# Columns up to this rank are left out before an ID is cut, the first ones also before text is.
_EXTRA_RANK = 3
_EMPTY = frozenset({"", "-"})


def write_table(
    columns: Sequence[Field[Any]],
    records: Iterator[Any],
    painter: Painter,
    *,
    keeps_all: bool = False,
    is_wide: bool = False,
) -> int:
    """Draw a table in parts; the header is drawn again only if other columns fit.

    Args:
        keeps_all: Whether columns without values are kept, too.
        is_wide: Whether all columns are drawn, and nothing is cut.
    """
    needed, headings, count = [measure_cells(column.heading) for column in columns], None, 0
    while records_read := list(islice(records, _ROWS_MEASURED)):
        count += len(records_read)
        rows, cells = _cells(columns, records_read, needed)
        widths = dict(enumerate(needed))
        if not is_wide:
            visible = [
                at for at in widths if keeps_all or _has_values(columns[at], cells[at], rows)
            ]
            widths = fit(columns, needed, visible, painter.width)
        painter.rows(
            lay_out(columns, widths),
            cut_cells(columns, widths, rows, cells),
            by_rich=count <= RICH_ROWS_MAX,
            has_header=list(widths) != headings,
        )
        headings = list(widths)
    return count


def _has_values(column: Field[T], texts: Sequence[str], rows: Sequence[T]) -> bool:
    """Return True if a column has values, or may have some that are unknown."""
    if not column.rank or not _EMPTY.issuperset(texts):
        return True
    # A payload may be `-` itself.
    as_values = ("-", b"-", *([None] if column.may_be_unknown else []))
    return any(value in as_values for value in map(column.get, rows))


def _cells(
    columns: Sequence[Field[T]], records: Sequence[T], needed: list[int]
) -> tuple[Sequence[T], list[list[str]]]:
    """Return the record of each row, and the texts of each column; widths that grow are `needed`.

    A list has lines; each is a row of its own.
    """
    cells = [list(map(column.cell, records)) for column in columns]
    if any("\n" in text for texts in cells for text in texts):
        heights = [max(text.count("\n") for text in row) + 1 for row in zip(*cells, strict=True)]
        cells = [
            [
                line
                for text, height in zip(texts, heights, strict=True)
                for line in islice(chain(text.split("\n"), repeat("")), height)
            ]
            for texts in cells
        ]
        records = [
            record for record, height in zip(records, heights, strict=True) for _ in range(height)
        ]
    for index, texts in enumerate(cells):
        needed[index] = max(needed[index], *map(measure_cells, texts), 0)
    return records, cells


def lay_out(columns: Sequence[Field[T]], widths: dict[int, int]) -> list[Column]:
    """Return the columns that have these widths, with headings that fit."""
    return [
        Column(
            width, columns[index].right, _cut(columns[index], [columns[index].heading], width)[0]
        )
        for index, width in widths.items()
    ]


def cut_cells(
    columns: Sequence[Field[T]],
    widths: dict[int, int],
    rows: Sequence[T],
    cells: Sequence[Sequence[str]],
) -> Iterator[Sequence[Piece]]:
    """Yield the cells of each row, cut to these widths, with their styles."""
    visible = [
        _column_pieces(columns[index], width, rows, cells[index]) for index, width in widths.items()
    ]
    return zip(*visible, strict=True)


def _column_pieces(
    column: Field[T], width: int, rows: Sequence[T], texts: Sequence[str]
) -> Iterator[Piece]:
    style_of = column.style or (lambda _record: None)
    for text, record in zip(_cut(column, texts, width), rows, strict=True):
        yield text, style_of(record)


def _cut(column: Field[T], texts: Sequence[str], width: int) -> Sequence[str]:
    """The texts of a column, cut to a width: where most of those that differ still do."""
    if column.cut is not Cut.MIDDLE:
        return [cut(text, width) for text in texts]
    different, middle, best = set(texts), (width - 1) // 2, dict[str, str]()
    # Names often begin alike.
    for head in (*range(middle, -1, -1), *range(middle + 1, width)):
        cuts = {text: cut(text, width, head) for text in different}
        best = max(best, cuts, key=lambda cuts: len(set(cuts.values())))
        if len(set(cuts.values())) == len(different):
            break
    return [best[text] for text in texts]


def draw_lines(
    columns: Sequence[Field[T]], rows: Sequence[T], room: int, widest: list[int]
) -> tuple[list[Piece], list[list[Piece]]]:
    """Return the pieces of a heading and of rows that are drawn again and again.

    Args:
        widest: The widths that the columns needed before, which grow.
    """
    widest[:] = map(max, widest, (measure_cells(column.heading) for column in columns))
    rows, cells = _cells(columns, rows, widest)
    widths = fit(columns, widest, range(len(columns)), room)
    layout = lay_out(columns, widths)
    heading = join_cells(layout, [(column.heading, "bold") for column in layout])
    return heading, [join_cells(layout, row) for row in cut_cells(columns, widths, rows, cells)]


def fit(
    columns: Sequence[Field[Any]], needed: Sequence[int], candidates: Sequence[int], room: int
) -> dict[int, int]:
    """Choose the columns that fit, at least one; returns their widths by index."""
    # The least important columns are left out first, if that lets the ID stay whole beside enough
    # of the others. Otherwise all that may be cut share the room.
    # The column that is never left out comes last in this order.
    *leaving, main = sorted(
        candidates,
        key=lambda index: (columns[index].rank or 100, columns[index].cut is Cut.MIDDLE, -index),
    )
    cuttable = {index for index in candidates if columns[index].cut}
    extras = [index for index in leaving if 0 < columns[index].rank <= _EXTRA_RANK]
    first = sum(index not in cuttable for index in extras)
    attempts = [(extras[:count], cuttable - {main}, _ENOUGH) for count in range(len(extras) + 1)]
    attempts += [(leaving[:count], cuttable, _LEAST) for count in range(first, len(leaving) + 1)]
    for without, cut_columns, least in attempts:
        visible = [index for index in candidates if index not in without]
        if widths := _shared(needed, visible, cut_columns, room, least):
            return widths
    return {main: min(needed[main], max(room, 1))}


def _shared(
    needed: Sequence[int], visible: Sequence[int], cuttable: set[int], room: int, least: int
) -> dict[int, int] | None:
    """Share the room, cutting the widest columns to one width; None if that is below `least`."""
    rest = room - GUTTER * (len(visible) - 1)
    rest -= sum(needed[index] for index in visible if index not in cuttable)
    widths = {index: needed[index] for index in visible}
    waiting = sorted(cuttable.intersection(visible), key=lambda index: needed[index])
    while waiting:
        share = rest // len(waiting)
        index = waiting.pop(0)
        if needed[index] > share and share < least:
            return None
        widths[index] = min(needed[index], share)
        rest -= widths[index]
    return widths if rest >= 0 else None
