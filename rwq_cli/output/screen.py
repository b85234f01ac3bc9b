"""The rich console on stdout, and the lines that tables and sections hand to it."""

from collections.abc import Iterable
from typing import IO, cast

from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from rwq_cli.output.options import OutputOptions

# A piece of a line: a text and its style, such as `red`, or None.
Piece = tuple[str, str | None]


class Screen(Console):
    """A console on stdout that prints lines as they are: they were fitted before.

    The caller handles a closed stdout.

    Args:
        options: Where to write, and whether in colour.
    """

    def __init__(self, options: OutputOptions) -> None:
        super().__init__(
            file=cast(IO[str], _TextOut(options)),
            markup=False,
            emoji=False,
            highlight=False,
            width=options.environment.width,
            force_terminal=options.colour,
            color_system="standard" if options.colour else None,
            legacy_windows=False,
        )

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print_lines(self, lines: Iterable[Iterable[Piece]]) -> None:
        """Print lines, each without the spaces at its end."""
        self.print(_Lines(lines), crop=False, end="")


class _Lines:
    """Lines as rich renders them.

    A table of rich lays out every cell on its own: measured, 5,000 rows a second. Lines that are
    laid out already are printed at 230,000 and more.
    """

    def __init__(self, lines: Iterable[Iterable[Piece]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        styles: dict[str | None, Style | None] = {None: None}
        if console.color_system is None:
            for line in self._lines:
                yield Segment("".join(text for text, _ in line).rstrip(" ") + "\n")
            return
        for line in self._lines:
            pieces = list(line)
            while pieces and not (text := pieces[-1][0].rstrip(" ")):
                pieces.pop()
            if pieces:
                pieces[-1] = text, pieces[-1][1]
            for piece, name in pieces:
                if name not in styles:
                    styles[name] = console.get_style(name or "")
                yield Segment(piece, styles[name])
            yield Segment("\n")


def styled(text: str, style: str) -> str:
    """A text in a style, for a line that is not written by a `Screen`."""
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


class _TextOut:
    """stdout as the text stream that rich needs."""

    encoding = "utf-8"

    def __init__(self, options: OutputOptions) -> None:
        self._out = options.environment.stdout
        self._is_terminal = options.environment.stdout_is_terminal

    def write(self, text: str) -> int:
        self._out.write(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def isatty(self) -> bool:
        return self._is_terminal
