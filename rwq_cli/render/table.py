"""Tables and details for people. The only module that knows rich."""

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import IO, Any, cast

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rwq_cli.render.report import Listing, Section
from rwq_cli.settings import Settings

# A thin rule under the header and nothing else.
_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
# Rows laid out together; a listing without end is drawn in pieces of this many.
_ROWS_AT_ONCE = 1000


def console(settings: Settings) -> Console:
    """A console on stdout that interprets nothing in what it prints."""
    environment = settings.environment
    return Console(
        file=cast(IO[str], _TextOut(settings)),
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        width=environment.width,
        force_terminal=environment.stdout_is_terminal,
        no_color=not settings.colour,
        color_system="auto" if settings.colour and environment.stdout_is_terminal else None,
        legacy_windows=False,
    )


class _TextOut:
    """The text stream that rich wants, over the run's stdout."""

    encoding = "utf-8"

    def __init__(self, settings: Settings) -> None:
        self._out = settings.environment.stdout
        self._is_terminal = settings.environment.stdout_is_terminal

    def write(self, text: str) -> int:
        self._out.write(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def isatty(self) -> bool:
        return self._is_terminal


def write_table(listing: Listing[Any], settings: Settings) -> int:
    """Write a listing as a table, or its sentence if it is empty; returns the number of rows."""
    screen = console(settings)
    records = iter(listing.records)
    first = list(islice(records, 1))
    if not first:
        screen.print(Text(listing.empty))
        return 0
    shown = 0
    records = chain(first, records)
    while rows := list(islice(records, _ROWS_AT_ONCE)):
        screen.print(_table(listing, rows, header=not shown))
        shown += len(rows)
    footer = listing.footer(shown)
    if footer:
        settings.environment.flush()
        settings.environment.note(footer)
    return shown


def _table(listing: Listing[Any], rows: list[Any], *, header: bool) -> Table:
    table = Table(
        box=_RULE,
        show_edge=False,
        show_header=header,
        header_style="bold",
        border_style="dim",
        padding=(0, 2, 0, 0),
        pad_edge=False,
        collapse_padding=False,
    )
    for column in listing.view.columns:
        table.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=None,
            min_width=min(len(column.title), 8) if column.grows else len(column.title),
        )
    for record in rows:
        table.add_row(
            *(
                Text(column.human(record), style=column.style(record) or "")
                for column in listing.view.columns
            )
        )
    return table


def write_sections(
    sections: Callable[[Any], list[Section]], records: Iterable[Any], settings: Settings
) -> None:
    """Write details: titled sections of right-aligned labels and their values."""
    screen = console(settings)
    for number, record in enumerate(records):
        if number:
            screen.print()
        for index, section in enumerate(sections(record)):
            if index:
                screen.print()
            if section.title:
                screen.print(Text(section.title, style="bold"))
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(justify="right", style="dim", no_wrap=True)
            grid.add_column(overflow="fold")
            for label, value, style in section.rows:
                grid.add_row(Text(label), Text(value, style=style or ""))
            screen.print(grid)
