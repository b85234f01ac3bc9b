"""Tables and sections for people."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

from rwq_cli.output.cells import cut, painted, width, wrapped
from rwq_cli.output.fit import GUTTER, fit, total_width
from rwq_cli.output.machine import plain
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.report import COMMAND_STYLE, Column, Cut, Section, View

T = TypeVar("T")

# Rows that are read before the first one is written; longer tables are fitted piece by piece.
_ROWS_AT_ONCE = 10_000
# The least width of prose.
_LEAST_PROSE = 20
_EMPTY = frozenset({"", "-"})


def write_table(view: View[T], records: Iterator[T], options: OutputOptions) -> None:
    """Write records as a table; nothing if there are none.

    The header is repeated only where other columns fit than before.
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
        lines = [] if list(widths) == headed else _head(columns, widths, colour=options.colour)
        headed = list(widths)
        shown = [
            _fitted(columns[index], cells[index], room, rows, colour=options.colour)
            for index, room in widths.items()
        ]
        lines += map((" " * GUTTER).join, zip(*shown, strict=True))
        _write_lines(lines, options)


def _cells(column: Column[T], rows: Sequence[T]) -> list[str]:
    if column.human is not None:
        return list(map(column.human, rows))
    return [plain(column.raw(record)) for record in rows]


def _is_empty(column: Column[T], texts: Sequence[str], rows: Sequence[T]) -> bool:
    """Whether all cells are unknown; a payload may be `-` itself."""
    return _EMPTY.issuperset(texts) and all(plain(column.raw(record)) != "-" for record in rows)


def _head(columns: Sequence[Column[T]], widths: dict[int, int], *, colour: bool) -> list[str]:
    """The titles, and a rule below them."""
    titles = [
        columns[index].title.rjust(room)
        if columns[index].right
        else columns[index].title.ljust(room)
        for index, room in widths.items()
    ]
    return [
        painted((" " * GUTTER).join(titles).rstrip(), "bold", colour=colour),
        painted("─" * total_width(widths), "dim", colour=colour),
    ]


def _fitted(
    column: Column[T], texts: Sequence[str], room: int, rows: Sequence[T], *, colour: bool
) -> list[str]:
    """The cells of a column, cut and padded to its width."""
    middle = column.cut is Cut.MIDDLE
    cut_texts = [cut(text, room, middle=middle) for text in texts]
    pads = [" " * (room - width(text)) for text in cut_texts]
    if colour and column.style is not None:
        styles = map(column.style, rows)
        cut_texts = [
            painted(text, style, colour=True) for text, style in zip(cut_texts, styles, strict=True)
        ]
    pairs = zip(pads, cut_texts, strict=True)
    return [pad + text if column.right else text + pad for pad, text in pairs]


def _write_lines(lines: Sequence[str], options: OutputOptions) -> None:
    text = "".join(f"{line.rstrip()}\n" for line in lines)
    options.environment.stdout.write(text.encode("utf-8", "backslashreplace"))


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
                _write_lines([""], options)
            _write_lines(list(_section_lines(section, options)), options)
            is_first = False


def _section_lines(section: Section, options: OutputOptions) -> Iterator[str]:
    """A title, then right-aligned labels with their values.

    Prose is wrapped; a command is not, because it is there to be copied.
    """
    colour = options.colour
    if section.title:
        yield painted(section.title, "bold", colour=colour)
    margin = max((width(label) for label, _, _ in section.rows), default=0)
    room = max(_LEAST_PROSE, options.environment.width - margin - GUTTER)
    digits = max((len(value) for _, value, _ in section.rows if value[:1].isdigit()), default=0)
    for label, value, style in section.rows:
        if section.numbers and value[:1].isdigit():
            value = value.rjust(digits)
        head = " " * (margin - width(label)) + painted(label, "dim", colour=colour)
        for line in value.split("\n"):
            for part in [line] if style == COMMAND_STYLE else wrapped(line, room):
                yield f"{head}{' ' * GUTTER}{painted(part, style, colour=colour)}"
                head = " " * margin
