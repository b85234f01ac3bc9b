"""Lines of pieces, drawn as they are: no text is read as markup."""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from rwq_cli.output.screen import Piece

_CURSOR = Style(reverse=True)


@cache
def _style(name: str | None, colour: bool) -> Style:
    style = Style.parse(name or "")
    return style if colour else style.without_color + Style(bold=style.bold or None)


def _strip(pieces: Sequence[Piece], width: int, *, colour: bool, style: Style | None) -> Strip:
    segments = [Segment(text, _style(name, colour)) for text, name in pieces]
    strip = Strip(segments).adjust_cell_length(width)
    return strip if style is None else strip.apply_style(style)


class Lines(Widget):
    """A few lines; their number is its height.

    Args:
        colour: Whether to use colour.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "Lines { height: 1; width: 1fr; }"

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour
        self.lines: Sequence[Sequence[Piece]] = ()

    def show(self, lines: Sequence[Sequence[Piece]]) -> None:
        """Show these lines."""
        if len(lines) != len(self.lines):
            self.styles.height = len(lines)
        self.lines = lines
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line."""
        if y >= len(self.lines):
            return Strip.blank(self.size.width)
        return _strip(self.lines[y], self.size.width, colour=self._colour, style=None)


class Listing(ScrollView, can_focus=True):
    """Lines that scroll, with a cursor if they can be chosen.

    Args:
        colour: Whether to use colour.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Listing { height: 1fr; width: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "end(-1)", show=False),
        Binding("end,G", "end(1)", show=False),
    ]

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour
        self.lines: Sequence[Sequence[Piece]] = ()
        self.keys: Sequence[Any] | None = None
        self.cursor = 0

    def show(self, lines: Sequence[Sequence[Piece]], keys: Sequence[Any] | None = None) -> None:
        """Show these lines; the cursor stays on the line with its key.

        Args:
            lines: The lines.
            keys: What each line stands for; None if lines cannot be chosen.
        """
        chosen = self.chosen
        self.lines, self.keys = lines, keys
        if keys is not None:
            if chosen is not None and chosen in keys:
                self.cursor = keys.index(chosen)
            self.cursor = max(0, min(self.cursor, len(lines) - 1))
        self.virtual_size = Size(self.size.width, len(lines))
        self._scroll_to_cursor()
        self.refresh()

    @property
    def chosen(self) -> Any:
        """What the line with the cursor stands for; None for none."""
        if not self.keys or self.cursor >= len(self.keys):
            return None
        return self.keys[self.cursor]

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= len(self.lines):
            return Strip.blank(width)
        style = _CURSOR if self.keys is not None and at == self.cursor else None
        return _strip(self.lines[at], width, colour=self._colour, style=style)

    def action_move(self, steps: int) -> None:
        """Move the cursor, or scroll."""
        if self.keys is None:
            self.scroll_relative(y=steps, animate=False)
            return
        self.cursor = max(0, min(self.cursor + steps, len(self.lines) - 1))
        self._scroll_to_cursor()
        self.refresh()

    def action_page(self, pages: int) -> None:
        """Move the cursor, or scroll, by a page."""
        self.action_move(pages * max(1, self.size.height - 1))

    def action_end(self, direction: int) -> None:
        """Move the cursor, or scroll, to the first or the last line."""
        self.action_move(direction * len(self.lines))

    def _scroll_to_cursor(self) -> None:
        if self.keys is None:
            return
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)
