"""Tables and sections for people. The only module that knows rich."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any, TypeVar, cast

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rwq_cli.output.machine import plain
from rwq_cli.output.options import OutputOptions
from rwq_cli.output.report import COMMAND_STYLE, Column, Section, View

T = TypeVar("T")

# A thin rule under the header and nothing else.
_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
# Rows that are laid out together; a longer table is drawn in pieces.
_ROWS_AT_ONCE = 1000
_GUTTER = 2
# The least width of a column that shrinks.
_LEAST = 10


class _Screen(Console):
    """A console on stdout that prints text as it is.

    It is wider than any terminal: tables are fitted before, and the terminal wraps what cannot fit.
    The caller handles a closed stdout.
    """

    def __init__(self, options: OutputOptions) -> None:
        super().__init__(
            file=cast(IO[str], _TextOut(options)),
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=False,
            width=100_000,
            force_terminal=options.colour,
            no_color=not options.colour,
            color_system="standard" if options.colour else None,
            legacy_windows=False,
        )

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


# Spaces at the end of a line, before or between colour codes.
_TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)(?=\n)")


class _TextOut:
    """stdout as the text stream that rich needs."""

    encoding = "utf-8"

    def __init__(self, options: OutputOptions) -> None:
        self._out = options.environment.stdout
        self._is_terminal = options.environment.stdout_is_terminal

    def write(self, text: str) -> int:
        self._out.write(_TRAILING.sub(r"\1", text).encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def isatty(self) -> bool:
        return self._is_terminal


def write_table(view: View[T], records: Iterator[T], options: OutputOptions) -> None:
    """Write records as a table; nothing if there are none."""
    screen = _Screen(options)
    header = True
    while rows := list(islice(records, _ROWS_AT_ONCE)):
        screen.print(_table(view.columns, rows, header=header, width=options.environment.width))
        header = False


def _table(columns: Sequence[Column[T]], rows: list[T], *, header: bool, width: int) -> Table:
    cells = [[_cell(column, record) for column in columns] for record in rows]
    natural = [
        max(cell_len(column.title), *(cell_len(row[index]) for row in cells))
        for index, column in enumerate(columns)
    ]
    widths = _fit(natural, [column.shrinks for column in columns], width)
    table = Table(
        box=_RULE,
        show_edge=False,
        show_header=header,
        header_style="bold",
        border_style="dim",
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    shown = [index for index, room in enumerate(widths) if room]
    for index in shown:
        table.add_column(
            Text(columns[index].title),
            justify="right" if columns[index].right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=widths[index],
        )
    for record, row in zip(rows, cells, strict=True):
        table.add_row(
            *(Text(row[index], style=columns[index].style(record) or "") for index in shown)
        )
    return table


def _cell(column: Column[T], record: T) -> str:
    return column.human(record) if column.human is not None else plain(column.raw(record))


def _fit(natural: list[int], shrinks: list[int], width: int) -> list[int]:
    """The widths of columns that fit the terminal, 0 for a column that is left out.

    Columns shrink in the order of their numbers, down to a least width; if that is not enough,
    they are left out. IDs and states never shrink: a part of an ID is of no use. Rich would shrink
    all columns by the same ratio.
    """
    widths = list(natural)

    def excess() -> int:
        shown = [room for room in widths if room]
        return sum(shown) + _GUTTER * (len(shown) - 1) - width

    giving = sorted((rank, index) for index, rank in enumerate(shrinks) if rank)
    for _, index in giving:
        widths[index] = max(min(_LEAST, widths[index]), widths[index] - max(0, excess()))
    # The second is kept: it is the holder or the reason.
    for _, index in (*giving[:1], *giving[2:]):
        if excess() > 0:
            widths[index] = 0
    for _, index in giving[1:2]:
        widths[index] = min(natural[index], max(_LEAST, widths[index] - excess()))
    return widths


def write_sections(view: View[T], records: Iterator[T], options: OutputOptions) -> None:
    """Write detailed records."""
    assert view.sections is not None
    screen = _Screen(options)
    for number, record in enumerate(records):
        if number:
            screen.print()
        for index, section in enumerate(view.sections(record)):
            if index:
                screen.print()
            _write_section(screen, section, options.environment.width)


def _write_section(screen: Console, section: Section, width: int) -> None:
    """Write a title, then right-aligned labels with their values.

    Prose is wrapped; a command is not, because it is there to be copied.
    """
    if section.title:
        screen.print(Text(section.title, style="bold"))
    margin = max((cell_len(label) for label, _, _ in section.rows), default=0)
    room = max(20, width - margin - _GUTTER)
    digits = max((len(value) for _, value, _ in section.rows if value[:1].isdigit()), default=0)
    for label, value, style in section.rows:
        if section.numbers and value[:1].isdigit():
            value = value.rjust(digits)
        text = Text(value, style=style or "")
        lines: Any = text.split(allow_blank=True)
        if style != COMMAND_STYLE:
            lines = text.wrap(screen, room)
        for number, line in enumerate(lines):
            head = Text(label if number == 0 else "", style="dim")
            head.pad_left(margin - cell_len(head.plain))
            screen.print(Text.assemble(head, " " * _GUTTER, line))
