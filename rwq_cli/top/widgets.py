"""The widgets of `rwq top`: the list with its cursor, and the modal screens."""

import shlex
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.visual import VisualType
from textual.widget import Widget
from textual.widgets import Input, Static

from rwq_cli.output.escape import escaped_text
from rwq_cli.top.terminal import Action, Runner


class Line(Static):
    """A text that is drawn again only if it has changed."""

    _shown: Text | None = None

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        if isinstance(content, Text):
            before, self._shown = self._shown, content
            if before is not None and not self.has_class("wrapped"):
                if before == content and before.spans == content.spans:
                    return
                # A new layout draws the whole screen.
                layout = before.plain.count("\n") != content.plain.count("\n")
        super().update(content, layout=layout)


class Listing(Widget, can_focus=True):
    """Lines of which one is chosen; only those that change are drawn again."""

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
        self.lines: Sequence[Text] = ()
        self._drawn: Sequence[Text] = ()
        self._moved = moved
        self._at = self._top = 0

    def fitting(self, keys: Sequence[bytes]) -> slice:
        """Take the keys of all lines, and return the range of those that are drawn."""
        key = self.selected_key
        self.keys = keys
        self._at = keys.index(key) if key in keys else max(0, min(self._at, len(keys) - 1))
        height = max(1, self.size.height)
        top = min(self._top, self._at, len(keys) - height)
        self._top = max(0, top, self._at - height + 1)
        return slice(self._top, self._top + height)

    def show(self, lines: Sequence[Text]) -> None:
        self.lines, before = lines, self._drawn
        self._drawn = [line.copy() for line in lines]
        if self._drawn:
            cursor = self._drawn[self._at - self._top]
            cursor.pad_right(max(0, self.size.width - cursor.cell_len))
            cursor.stylize("reverse")
        for y, (old, new) in enumerate(zip_longest(before, self._drawn)):
            if old != new or (old and new and old.spans != new.spans):
                self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        line = self._drawn[y] if y < len(self._drawn) else Text()
        strip = Strip(line.render(self.app.console), line.cell_len)
        return strip.adjust_cell_length(self.size.width)

    @property
    def selected_key(self) -> bytes | None:
        return self.keys[self._at] if self._at < len(self.keys) else None

    def action_move(self, lines: int) -> None:
        self._at = max(0, min(self._at + lines, len(self.keys) - 1))
        self._moved()

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height))


class CommandScreen(ModalScreen[list[str] | None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]

    def __init__(self, run: Runner, action: Action) -> None:
        super().__init__()
        self._runner, self._action = run, action
        self._question = Static(id="question")

    def compose(self) -> ComposeResult:
        yield self._question
        options = self._action.options
        yield Input(options, placeholder="options, such as --dry-run", select_on_focus=False)

    def on_mount(self) -> None:
        self._show(self._action.options)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, options: str, hint: str = "Enter runs it, Esc cancels. Options:") -> None:
        line = self._action.line(self._runner.lines, escaped_text(options.strip()))
        self._question.update(Text.assemble((f"$ {line}\n", "bold"), (hint, "dim")))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(shlex.split(event.value))
        except ValueError as error:
            self._show(event.value, f"{str(error).lower()}: a quotation mark is not closed")


_HELP = (
    ("arrows", "and PgUp, PgDn, Home, End: choose a line; so do j, k, g and G"),
    ("Enter", "open a queue, then an item"),
    ("Esc", "clear the filter; without one, go back"),
    ("Tab", "in a queue: leases, the soonest to end first; waiting; delayed; buried"),
    ("/", "filter by name, ID, state, holder, reason or data; * and ? are wildcards"),
    ("s  S", "sort by the next column; reverse the order"),
    ("space", "freeze, or resume"),
    ("r", "rwq release: of a queue, its abandoned items"),
    ("b", "rwq bury: of a queue, its abandoned items"),
    ("K", "rwq kick: of a queue, all buried items"),
    ("c", "rwq clean light, of the queue"),
    ("!", "only queues with trouble: abandoned or buried items, or nothing done for long"),
    ("e", "rwq edit, of an item"),
    ("d", "rwq doctor, of the queue"),
    ("Ctrl-Z", "suspend; fg resumes"),
    ("q", "leave"),
    ("RUNNING", "in processing, and not known to be abandoned"),
    ("NEXT AGE", "how long ago the next item was last used, which is about when it was added"),
)


class HelpScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter", "dismiss", show=False)
    ]

    def compose(self) -> ComposeResult:
        grid = Table.grid("", "", padding=(0, 2))
        for key, text in _HELP:
            grid.add_row(Text(key, "bold"), text)
        yield VerticalScroll(Static(grid))
