"""The list of `rwq top`: a line with the cursor among any number of lines."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Static


class Listing(Static, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "page(-1000000)", show=False),
        Binding("end,G", "page(1000000)", show=False),
    ]

    def __init__(self, moved: Callable[[], None]) -> None:
        super().__init__()
        self.keys: Sequence[bytes] = ()
        self.shown: Sequence[Text] = ()
        self._moved = moved
        self._at = self._top = 0

    def fitting(self, keys: Sequence[bytes]) -> slice:
        """Take the keys of all lines, and return the range of those that are drawn."""
        chosen = self.chosen
        self.keys = keys
        self._at = keys.index(chosen) if chosen in keys else max(0, min(self._at, len(keys) - 1))
        height = max(1, self.size.height)
        top = min(self._top, self._at, len(keys) - height)
        self._top = max(0, top, self._at - height + 1)
        return slice(self._top, self._top + height)

    def show(self, lines: Sequence[Text]) -> None:
        self.shown = lines
        drawn = [line.copy() for line in lines]
        if drawn:
            cursor = drawn[self._at - self._top]
            cursor.pad_right(max(0, self.size.width - cursor.cell_len))
            cursor.stylize("reverse")
        self.update(Text("\n").join(drawn))

    @property
    def chosen(self) -> bytes | None:
        return self.keys[self._at] if self._at < len(self.keys) else None

    def action_move(self, lines: int) -> None:
        self._at = max(0, min(self._at + lines, len(self.keys) - 1))
        self._moved()

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height))
