"""Tables for people: rich draws them; here is which columns fit, and how wide they are."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from rwq_cli.output.cells import cut
from rwq_cli.output.console import print_stripped, stdout_console
from rwq_cli.output.field import Cut, Field
from rwq_cli.output.options import OutputOptions

T = TypeVar("T")

# Rows that are laid out together; a longer table is drawn in pieces, whose columns only grow.
_ROWS_AT_ONCE = 1_000
_GUTTER = 2
# Text beside which no ID has to be cut, and the least that a cut column keeps.
_ENOUGH = 20
_LEAST = 12
_EMPTY = frozenset({"", "-"})


class TableWriter:
    """Draws a table in pieces; the header is drawn again only if other columns fit.

    Args:
        columns: The columns, in the order in which they are shown.
        options: Where to draw.
        keeps_all: Whether columns without values are shown, too.
        is_wide: Whether nothing is cut or left out.
    """

    def __init__(
        self,
        columns: Sequence[Field[Any]],
        options: OutputOptions,
        *,
        keeps_all: bool = False,
        is_wide: bool = False,
    ) -> None:
        self._columns = columns
        self._options = options
        self._keeps_all, self._is_wide = keeps_all, is_wide
        self._needed = [cell_len(column.heading) for column in columns]
        self._headed: list[int] = []

    def write_all(self, records: Iterator[Any]) -> None:
        """Draw all records; nothing if there are none."""
        while rows := list(islice(records, _ROWS_AT_ONCE)):
            self.write(rows)

    def write(self, rows: Sequence[Any]) -> None:
        """Draw some rows."""
        cells = [list(map(column.cell, rows)) for column in self._columns]
        for index, texts in enumerate(cells):
            self._needed[index] = max(self._needed[index], *map(cell_len, texts))
        widths = dict(enumerate(self._needed))
        if not self._is_wide:
            shown = [index for index in widths if self._is_shown(index, cells[index], rows)]
            widths = fit(self._columns, self._needed, shown, self._options.environment.width)
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_header=list(widths) != self._headed,
            header_style="bold",
            border_style="dim",
        )
        self._headed = list(widths)
        for index, width in widths.items():
            column = self._columns[index]
            table.add_column(
                cut(column.heading, width),
                justify="right" if column.right else "left",
                width=width,
                no_wrap=True,
            )
        for number, row in enumerate(rows):
            table.add_row(
                *(
                    self._cell(self._columns[index], row, cells[index][number], width)
                    for index, width in widths.items()
                )
            )
        total = sum(widths.values()) + _GUTTER * (len(widths) - 1)
        console = stdout_console(self._options.environment, colour=self._options.colour)
        print_stripped(console, table, total)

    def _cell(self, column: Field[T], row: T, text: str, width: int) -> Text:
        style = column.style(row) if column.style else None
        return Text(cut(text, width, middle=column.cut is Cut.MIDDLE), style or "")

    def _is_shown(self, index: int, texts: Sequence[str], rows: Sequence[Any]) -> bool:
        """Whether a column has values, or may have some that are unknown."""
        column = self._columns[index]
        if self._keeps_all or not column.rank or column.may_be_unknown:
            return True
        # A payload may be `-` itself.
        return not _EMPTY.issuperset(texts) or any(column.get(row) in ("-", b"-") for row in rows)


def fit(
    columns: Sequence[Field[Any]], needed: Sequence[int], shown: Sequence[int], room: int
) -> dict[int, int]:
    """The columns that fit, by index, each with its width; at least one.

    Columns are left out from the least important on, while that lets IDs stay whole beside enough
    of the other texts. Then all that may be cut share the room.

    Args:
        columns: All columns.
        needed: The widths that they need.
        shown: The indices of those that may be shown.
        room: The width of the terminal.
    """
    leaving = sorted(shown, key=lambda index: (columns[index].rank or 100, -index))
    main = leaving.pop(leaving.index(_main(columns, shown)))
    texts = {index for index in shown if columns[index].cut is Cut.END}
    names = {index for index in shown if columns[index].cut is Cut.MIDDLE}
    extras = [index for index in leaving if columns[index].rank and index not in texts]
    for count in range(len(extras) + 1):
        left = [index for index in shown if index not in extras[:count]]
        if widths := _shared(needed, left, texts, room, _ENOUGH):
            return widths
    for count in range(len(leaving) + 1):
        left = [index for index in shown if index not in leaving[:count]]
        if widths := _shared(needed, left, texts | names, room, _LEAST):
            return widths
    return {main: min(needed[main], max(room, 1))}


def _main(columns: Sequence[Field[Any]], shown: Sequence[int]) -> int:
    """The column that always stays: the first of those that are never left out, if there is one."""
    return min(shown, key=lambda index: (columns[index].rank > 0, -columns[index].rank))


def _shared(
    needed: Sequence[int], shown: Sequence[int], cuttable: set[int], room: int, least: int
) -> dict[int, int] | None:
    """The widths of columns, the widest of which are cut to one width; None if that is too small.

    Args:
        needed: The widths that all columns need.
        shown: The indices of those that are shown.
        cuttable: The indices of those that may be cut.
        room: The width of the terminal.
        least: The least width of a column that is cut.
    """
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
