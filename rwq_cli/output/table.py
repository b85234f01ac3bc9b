"""Tables and details for people. The only module that knows rich."""

import re
import textwrap
from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import IO, Any, cast

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rwq_cli.cli.settings import Settings
from rwq_cli.output.report import COMMAND_STYLE, Listing, Section

# A thin rule under the header and nothing else.
_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
# Rows laid out together; a listing without end is drawn in pieces of this many.
_ROWS_AT_ONCE = 1000
_GUTTER = 2
_WIDE = 100_000
# A column that gives way keeps at least so many characters.
_LEAST = 10


def console(settings: Settings, width: int | None = None) -> Console:
    """A console on stdout that interprets nothing in what it prints."""
    environment = settings.environment
    return _Screen(
        file=cast(IO[str], _TextOut(settings)),
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        width=width or environment.width,
        force_terminal=environment.stdout_is_terminal,
        no_color=not settings.colour,
        color_system="auto" if settings.colour and environment.stdout_is_terminal else None,
        legacy_windows=False,
    )


class _Screen(Console):
    """A console that leaves a closed stdout to whoever runs the command."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


# Spaces at the end of a line, before or between colour codes.
_TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)(?=\n)")


class _TextOut:
    """The text stream that rich wants, over the run's stdout."""

    encoding = "utf-8"

    def __init__(self, settings: Settings) -> None:
        self._out = settings.environment.stdout
        self._is_terminal = settings.environment.stdout_is_terminal

    def write(self, text: str) -> int:
        self._out.write(_TRAILING.sub(r"\1", text).encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def isatty(self) -> bool:
        return self._is_terminal


def write_table(listing: Listing[Any], settings: Settings) -> int:
    """Write a listing as a table, or its sentence if it is empty; returns the number of rows."""
    # Tables fit themselves to the screen; what cannot fit is wrapped by the terminal, not lost.
    screen = console(settings, _WIDE)
    records = iter(listing.records)
    first = list(islice(records, 1))
    if not first:
        screen.print(Text(listing.empty))
        return 0
    shown = 0
    records = chain(first, records)
    while rows := list(islice(records, _ROWS_AT_ONCE)):
        width = settings.environment.width
        screen.print(_table(listing, rows, header=not shown, width=width))
        shown += len(rows)
    footer = listing.footer(shown)
    if footer:
        settings.environment.flush()
        settings.environment.note(footer)
    return shown


def _table(listing: Listing[Any], rows: list[Any], *, header: bool, width: int) -> Table:
    columns = listing.view.columns
    cells = [[column.human(record) for column in columns] for record in rows]
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
        column = columns[index]
        table.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=widths[index],
        )
    for record, row in zip(rows, cells, strict=True):
        table.add_row(
            *(Text(row[index], style=columns[index].style(record) or "") for index in shown)
        )
    return table


def _fit(natural: list[int], shrinks: list[int], width: int) -> list[int]:
    """Widths of columns that fit the screen, 0 for one that is left out.

    Those that may shrink give way in the order of their number, each to a width that still says
    something, and the first is left out if that is not enough. IDs and states never give way: one
    that is cut off cannot be used.
    """
    widths = list(natural)

    def excess() -> int:
        shown = [room for room in widths if room]
        return sum(shown) + _GUTTER * (len(shown) - 1) - width

    giving = sorted((rank, index) for index, rank in enumerate(shrinks) if rank)
    for _, index in giving:
        widths[index] = max(min(_LEAST, widths[index]), widths[index] - max(0, excess()))
    # The first and the last of them are left out if that is not enough.
    for _, index in (*giving[:1], *giving[2:]):
        if excess() > 0:
            widths[index] = 0
    for _, index in giving[1:2]:
        widths[index] = min(natural[index], max(_LEAST, widths[index] - excess()))
    return widths


def write_at_length(listing: Listing[Any], settings: Settings) -> int:
    """Write a listing's records as sections, or its sentence; returns how many there were."""
    records = list(listing.records)
    if not records:
        console(settings, _WIDE).print(Text(listing.empty))
    elif listing.sections is not None:
        write_sections(listing.sections, records, settings)
    return len(records)


def write_sections(
    sections: Callable[[Any], list[Section]], records: Iterable[Any], settings: Settings
) -> None:
    """Write details: titled sections of right-aligned labels and their values.

    Prose is wrapped; a command is not, because it is there to be copied.
    """
    screen = console(settings, _WIDE)
    for number, record in enumerate(records):
        if number:
            screen.print()
        for index, section in enumerate(sections(record)):
            if index:
                screen.print()
            if section.title:
                screen.print(Text(section.title, style="bold"))
            _write_rows(screen, section, settings.environment.width)


def _write_rows(screen: Console, section: Section, width: int) -> None:
    margin = max((cell_len(label) for label, _, _ in section.rows), default=0)
    room = max(20, width - margin - _GUTTER)
    digits = max((len(text) for _, text, _ in section.rows if text[:1].isdigit()), default=0)
    for label, value, style in section.rows:
        lines = value.split("\n")
        if style != COMMAND_STYLE:
            lines = [piece for line in lines for piece in _wrapped(line, room)]
        indent = digits - len(value) if section.numbers and value[:1].isdigit() else 0
        for line in lines:
            shown = Text()
            shown.append(" " * (margin - cell_len(label)) + label, style="dim")
            shown.append(" " * (_GUTTER + indent))
            shown.append(line, style=style or "")
            screen.print(shown)
            label = ""


def _wrapped(line: str, room: int) -> list[str]:
    """Prose is broken between words, and a line of data that has none wherever it must be."""
    if len(line) <= room:
        return [line]
    return textwrap.wrap(
        line, room, replace_whitespace=False, drop_whitespace=True, break_on_hyphens=False
    ) or [""]
