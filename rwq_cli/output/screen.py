"""Lines in colour, as tables, sections and `rwq top` make them."""

from collections.abc import Iterable

from rwq_cli.output.options import OutputOptions

# A piece of a line: a text and its style, such as `red`, or None.
Piece = tuple[str, str | None]


def print_lines(lines: Iterable[Iterable[Piece]], options: OutputOptions) -> None:
    """Write lines to stdout as they are, each without the spaces at its end.

    A console of rich would lay out each line again.
    """
    text = "".join(_line(list(pieces), colour=options.colour) for pieces in lines)
    options.environment.stdout.write(text.encode("utf-8", "backslashreplace"))
    options.environment.stdout.flush()


def _line(pieces: list[Piece], *, colour: bool) -> str:
    while pieces and not pieces[-1][0].rstrip(" "):
        pieces.pop()
    if pieces:
        text, style = pieces[-1]
        pieces[-1] = text.rstrip(" "), style
    shown = (styled(text, style) if colour and style else text for text, style in pieces)
    return "".join(shown) + "\n"


def styled(text: str, style: str) -> str:
    """A text in a style, for a terminal."""
    from rich.color import ColorSystem
    from rich.style import Style

    # `parse` keeps the styles that it has parsed.
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)
