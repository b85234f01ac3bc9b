"""Draws tables and sections: rich's tables of short ones, and the same lines joined of long ones.

rich takes some 200 us for a row, joining it a few. Nothing is cut here: the texts fit the columns,
except those of the last one, which may be longer.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from textwrap import indent
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from rwq_cli.output.console import apply_style, open_console, stream_writer
from rwq_cli.output.options import OutputOptions
from rwq_cli.output.sections import COMMAND_STYLE, Piece, Section

if TYPE_CHECKING:
    from rich.console import Console

# How many rows rich draws at most.
RICH_ROWS_MAX = 1_000
# How many cells are between two columns.
GUTTER = 2
# How many joined lines are written at once.
_LINES_WRITTEN = 1_000
# rich takes over two seconds for a megabyte of JSON.
_HIGHLIGHTED_MAX = 256 * 1024
_PROSE_WIDTH_MIN = 20
# A count, not a time such as `27ms`.
_NUMBER = re.compile(r">?\d[\d,]*(?![\w.,])")


class Column(NamedTuple):
    """A column of known width, in cells of the terminal."""

    width: int
    is_right: bool = False
    heading: str = ""


class Painter:
    """Draws what a run shows on stdout, with one console."""

    def __init__(self, options: OutputOptions) -> None:
        self._environment, self._colour = options.environment, options.colour

    @property
    def width(self) -> int:
        return self._environment.width

    def rows(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Piece]],
        *,
        by_rich: bool,
        has_header: bool = False,
    ) -> None:
        """Draw rows of cells.

        Args:
            columns: Their widths; none is cut or wrapped.
            rows: The texts and styles of their cells.
            by_rich: Whether rich draws them, or they are joined: both look the same.
            has_header: Whether the headings of the columns, and a rule, are above them.
        """
        if by_rich or has_header:
            table = _table(columns, has_header=has_header)
            for row in rows if by_rich else ():
                table.add_row(*(Text.assemble((text, style or "")) for text, style in row))
            total = sum(column.width for column in columns) + GUTTER * (len(columns) - 1)
            self._print_stripped(table, total)
        if not by_rich:
            self.lines(join_cells(columns, row) for row in rows)

    def section(self, section: Section, *, by_rich: bool) -> None:
        """Draw a titled part of a detailed record."""
        if section.title:
            self.lines([[(section.title, "bold")]])
        if section.is_data and self._colour and self._print_json(section.lines[0][1]):
            return
        columns, rows = lay_out_section(section, self.width, lambda: self._console)
        self.rows(columns, rows, by_rich=by_rich and len(rows) <= RICH_ROWS_MAX)

    def lines(self, lines: Iterable[Sequence[Piece]]) -> None:
        """Write lines of styled texts."""
        paint = apply_style if self._colour else lambda text, _style: text
        texts = ("".join(paint(*piece) for piece in line) for line in lines)
        while part := list(islice(texts, _LINES_WRITTEN)):
            self._environment.stdout.write(
                "\n".join((*part, "")).encode("utf-8", "backslashreplace")
            )

    def _print_json(self, text: str) -> bool:
        """Print JSON in colours; returns False for other text, and if it would take long."""
        if text[:1] not in ("{", "[") or len(text) > _HIGHLIGHTED_MAX:
            return False
        from rich.highlighter import JSONHighlighter

        self._console.print(JSONHighlighter()(indent(text, " " * GUTTER)), soft_wrap=True)
        return True

    def _print_stripped(self, table: Table, width: int) -> None:
        """Print a table at this width, without trailing spaces."""
        segments: list[Segment] = []
        console = self._console
        options = console.options.update(width=width)
        for line in console.render_lines(table, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                text, style, control = line[-1]
                line[-1] = Segment(text.rstrip(" "), style, control)
            segments += [*line, Segment.line()]
        console.print(Segments(segments), end="", soft_wrap=True)

    @property
    def _console(self) -> "Console":
        # With --watch, each frame is another stream; the terminal may have another size.
        console = self._only_console
        console.file, console.width = stream_writer(self._environment.stdout), self.width
        return console

    @cached_property
    def _only_console(self) -> "Console":
        return open_console(self._environment, colour=self._colour)


def _table(columns: Sequence[Column], *, has_header: bool) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_header=has_header,
        header_style="bold",
        border_style="dim",
    )
    for width, is_right, heading in columns:
        side: Literal["left", "right"] = "right" if is_right else "left"
        table.add_column(heading, justify=side, width=width, no_wrap=True)
    return table


def join_cells(columns: Sequence[Column], row: Iterable[Piece]) -> list[Piece]:
    """Return the pieces of a line: its cells and the spaces between them, none at the end."""
    pieces: list[Piece] = []
    spaces = 0
    for (width, is_right, _), (text, style) in zip(columns, row, strict=True):
        room = width - measure_cells(text)
        if text:
            before = spaces + room if is_right else spaces
            pieces += [(" " * before, None), (text, style)] if before else [(text, style)]
            spaces = GUTTER if is_right else room + GUTTER
        else:
            spaces += room + GUTTER
    while pieces and not (text := pieces[-1][0].rstrip(" ")):
        pieces.pop()
    if pieces:
        pieces[-1] = text, pieces[-1][1]
    return pieces


def measure_cells(text: str) -> int:
    # Texts are escaped: what is ASCII has no control characters.
    return len(text) if text.isascii() else cell_len(text)


def lay_out_section(
    section: Section, width: int, console: Callable[[], "Console"]
) -> tuple[list[Column], list[list[Piece]]]:
    """Lay out a section for a terminal's width: right-aligned labels, and values.

    Prose is wrapped, by what `console` returns. A command is not, because it is meant to be copied,
    nor are data.
    """
    margin = max((measure_cells(label) for label, _, _ in section.lines), default=0)
    room = max(_PROSE_WIDTH_MIN, width - margin - GUTTER)
    numbers = [_NUMBER.match(value) if section.numbers else None for _, value, _ in section.lines]
    digits = max((number.end() for number in numbers if number), default=0)
    rows: list[list[Piece]] = []
    for (label, value, style), number in zip(section.lines, numbers, strict=True):
        if number:
            value = " " * (digits - number.end()) + value
        is_prose = not section.is_data and style != COMMAND_STYLE
        for line in value.split("\n"):
            is_long = is_prose and measure_cells(line) > room
            for part in wrap_line(line, room, console()) if is_long else (line,):
                rows.append([(label, "dim"), (part, style)])
                label = ""
    widest = max((measure_cells(row[1][0]) for row in rows), default=0)
    return [Column(margin, is_right=True), Column(widest)], rows


def wrap_line(line: str, room: int, console: "Console") -> list[str]:
    return [part.plain.rstrip() for part in Text(line).wrap(console, room)]
