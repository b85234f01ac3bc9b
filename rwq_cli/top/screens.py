"""The screens of `rwq top`: all queues, one queue, one item."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rich.console import Group
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static

from rwq_cli.core.keys import glob_pattern, is_glob
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.sections import Piece, section_lines
from rwq_cli.output.tables import table_lines
from rwq_cli.top.dialogs import CommandScreen
from rwq_cli.top.running import Action, item_action, queue_action
from rwq_cli.top.session import ITEMS_SHOWN, LISTS, QueueDetail, Session, read_queue
from rwq_cli.views.item_report import Shown, show_sections
from rwq_cli.views.top import (
    SORT_COLUMNS,
    fitted,
    header,
    reason_parts,
    sort_columns,
    sorted_rows,
    state_parts,
    wrapped_parts,
)


class Listing(OptionList):
    """Lines to choose from; the cursor stays on the line with its key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "cursor_up", show=False),
        Binding("j", "cursor_down", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
    ]
    keys: Sequence[bytes] = ()

    def show(self, lines: Sequence[Text], keys: Sequence[bytes]) -> None:
        """Show these lines, each with what it stands for."""
        chosen, before = self.chosen, self.highlighted or 0
        self.keys = keys
        if len(lines) == self.option_count:
            for index, line in enumerate(lines):
                self.replace_option_prompt_at_index(index, line)
        else:
            top = self.scroll_offset.y
            self.set_options(lines)
            self.scroll_to(y=top, animate=False, immediate=True)
        at = keys.index(chosen) if chosen in keys else min(before, len(keys) - 1)
        self.highlighted = at if keys else None

    @property
    def chosen(self) -> bytes | None:
        """What the line with the cursor stands for."""
        at = self.highlighted
        return None if at is None or at >= len(self.keys) else self.keys[at]


class LiveScreen(Screen[None]):
    """A screen whose contents are read again and again; see `Page`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority, before the next key goes to the list: keys of a slow line come together.
        Binding("enter", "open", "open", key_display="Enter", priority=True),
        Binding("slash", "filter", "filter", key_display="/", priority=True),
        Binding("question_mark", "app.help", "help", key_display="?"),
        Binding("q", "app.leave", "leave"),
        Binding("escape", "back", show=False),
        Binding("space", "app.freeze", "freeze"),
        Binding("r", "command('release')", "release"),
        Binding("b", "command('bury')", "bury"),
        Binding("K", "command('kick')", "kick"),
        Binding("e", "command('edit')", "edit"),
        Binding("d", "command('doctor')", "doctor"),
    ]
    data: Any = None
    next_read_s = 0.0

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.filter = ""
        # Drawn to between compose and removal, when a query would not find them.
        self.header, self.notice, self.summary, self.titles = (Static() for _ in range(4))
        self.listing = Listing(compact=True)
        self.box = Input(placeholder="a part of a name, or a pattern: Enter, Esc")

    def compose(self) -> ComposeResult:
        yield from (self.header, self.notice, self.summary, self.titles, self.listing, self.box)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Start with the listing in focus."""
        self.box.display = False
        self.listing.focus()

    def on_screen_resume(self) -> None:
        """Read this screen from now on."""
        self.session.page = self
        self.redraw()
        self.session.read_soon()

    def on_screen_suspend(self) -> None:
        """Read it no more: something covers it, which may have resumed before."""
        if self.session.page is self:
            self.session.page = None

    def on_resize(self) -> None:
        """Lay everything out anew."""
        self.redraw()

    def read(self) -> Any:
        """Read the contents; called in the thread that alone uses the connection."""

    def redraw(self) -> None:
        """Lay out what is known for the width of the terminal."""
        if not (room := self.size.width) or not self.is_mounted:
            return
        session = self.session
        self.header.update(self.text(header(session.server, session.overview.status, room)))
        self.notice.update(self.text(fitted([*session.notices(), *self.notices()], room)))
        self.draw(room)

    def draw(self, room: int) -> None:
        """Draw what is special about this screen."""
        raise NotImplementedError

    def text(self, *lines: Iterable[Piece]) -> Text:
        """These lines as Textual draws them."""
        return Text("\n").join(
            Text.assemble(*((text, self._style(style)) for text, style in line)) for line in lines
        )

    def _style(self, name: str | None) -> Style:
        style = Style.parse(name or "")
        return style if self.session.colour else style.without_color + Style(bold=style.bold)

    def notices(self) -> list[Piece]:
        """The messages about the list."""
        return [(f"filter {escaped_text(self.filter)}", "bold")] if self.filter else []

    def matches(self, *texts: bytes) -> bool:
        """Return True if one of these texts matches the filter."""
        wanted = self.filter.encode("utf-8", "surrogateescape")
        if is_glob(wanted):
            return any(glob_pattern(wanted).match(text) for text in texts)
        return any(wanted in text or self.filter in escaped(text) for text in texts)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave Enter and slash to the filter while the user types it."""
        return not (action in ("filter", "open") and self.focused is self.box)

    def action_filter(self) -> None:
        """Let the user type a filter."""
        self.box.display = True
        self.box.value = self.filter
        self.set_focus(self.box)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        self.filter = event.value
        self.redraw()

    def on_input_submitted(self) -> None:
        """Keep the filter."""
        self.box.display = False
        self.listing.focus()

    def action_back(self) -> None:
        """Remove the filter, or return to the screen before."""
        if self.filter or self.box.display:
            self.filter = self.box.value = ""
            self.on_input_submitted()
            self.redraw()
        elif not isinstance(self, QueuesScreen):
            self.app.pop_screen()

    def action_for(self, verb: str) -> Action | None:
        """The command of a key for what is chosen; None if nothing is."""
        raise NotImplementedError

    def action_command(self, verb: str) -> None:
        """Run a command of rwq; unless it is ready, first show it, and let the user change it."""
        action = self.action_for(verb)
        if action is None:
            self.redraw()
            return

        def run(options: Sequence[str] | None) -> None:
            if options is not None:
                with self.app.suspend():
                    self.session.run(action, options)
                self.session.read_soon()

        if action.runs_at_once:
            run(())
        else:
            self.app.push_screen(CommandScreen(self.session.run, action), run)


class QueuesScreen(LiveScreen):
    """All queues."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort"),
        Binding("S", "reverse", "reverse"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sort, self._reverse = session.sort, session.reverse
        self._widest = [0] * len(sort_columns(self._sort, reverse=False))

    def draw(self, room: int) -> None:
        self.summary.display = False
        rows = [row for row in self.session.overview.rows if self.matches(row.queue)]
        rows = sorted_rows(rows, self._sort, reverse=self._reverse)
        columns = sort_columns(self._sort, reverse=self._reverse)
        titles, lines = table_lines(columns, rows, room - 1, self._widest)
        if not rows:
            nothing = "No such queues." if self.session.overview.rows else "No queues here."
            titles, lines = [(nothing, None)], []
        self.titles.update(self.text(titles))
        self.listing.show([self.text(line) for line in lines], [row.queue for row in rows])

    def notices(self) -> list[Piece]:
        number = len(self.session.overview.rows)
        noun = "queue" if number == 1 else "queues"
        return [*super().notices(), (f"{human.count(number)} {noun}", None)]

    def action_open(self) -> None:
        """Go into a queue."""
        if (name := self.listing.chosen) is not None:
            self.app.push_screen(QueueScreen(self.session, name))

    def action_sort(self) -> None:
        """Sort by the next column."""
        names = [column.name for column in SORT_COLUMNS]
        self._sort = SORT_COLUMNS[(names.index(self._sort.name) + 1) % len(names)]
        self._reverse = False
        self._widest = [0] * len(self._widest)
        self.redraw()

    def action_reverse(self) -> None:
        """Reverse the order of the rows."""
        self._reverse = not self._reverse
        self.redraw()

    def action_for(self, verb: str) -> Action | None:
        if (name := self.listing.chosen) is None:
            return None
        action = queue_action(verb, name)
        if action is None:
            self.session.note(f"{verb}: choose an item; Enter opens the queue")
        return action


class QueueScreen(LiveScreen):
    """One queue: its states, and one of its lists."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", key_display="Esc"),
        Binding("tab", "list(1)", "next list", key_display="Tab", priority=True),
        Binding("shift+tab", "list(-1)", show=False, priority=True),
    ]
    data: QueueDetail | None

    def __init__(self, session: Session, name: bytes) -> None:
        super().__init__(session)
        self._queue = session.handle(name)
        self._which = next(iter(LISTS))
        self._widest: list[int] = []

    def read(self) -> QueueDetail:
        return read_queue(self._queue, self._which)

    def draw(self, room: int) -> None:
        name: Piece = escaped(self._queue.name), "bold"
        if (detail := self.data) is None:
            self.summary.update(self.text([name, ("  reading…", "dim")]))
            self.titles.update(self.text(self._lists(room)))
            return
        self.summary.update(
            self.text(
                *wrapped_parts([name, *state_parts(detail.counts)], room),
                *wrapped_parts(reason_parts(detail.buried, detail.counts.buried), room),
            )
        )
        items = self._items()
        columns = list(detail.columns)
        if len(self._widest) != len(columns):
            self._widest = [0] * len(columns)
        titles, lines = table_lines(columns, items, room - 1, self._widest)
        self.titles.update(self.text(self._lists(room), *([titles] if items else [])))
        self.listing.show([self.text(line) for line in lines], [item.item_id for item in items])

    def _items(self) -> list[Item]:
        """The items of the list that is shown, as far as it was read."""
        if self.data is None or self.data.which != self._which:
            return []
        return [
            item
            for item in self.data.items
            if self.matches(item.item_id, item.preview or b"", item.reason or b"")
        ]

    def _lists(self, room: int) -> list[Piece]:
        """The names of the lists, the current one marked, and how many items it has."""
        names: list[Piece] = [
            (name.upper(), "bold reverse" if name == self._which else "dim") for name in LISTS
        ]
        if self.data is not None and self.data.which == self._which:
            shown, total = len(self._items()), self.data.total
            count = human.count(total)
            names.append((f"{human.count(shown)} of {count}" if shown < total else count, None))
            if total > ITEMS_SHOWN:
                names.append((f"only the first {ITEMS_SHOWN} are read", "dim"))
            if self.data.is_long and self._which == "leases":
                names.append(("too many to sort: the oldest first", "yellow"))
        return fitted(names, room)

    def action_list(self, step: int) -> None:
        """Show another list."""
        if not self.box.display:
            names = list(LISTS)
            self._which = names[(names.index(self._which) + step) % len(names)]
            self._widest = []
            self.listing.highlighted = None
            self.redraw()
            self.session.read_soon()

    def action_open(self) -> None:
        """Go into an item."""
        if (item_id := self.listing.chosen) is not None:
            self.app.push_screen(ItemScreen(self.session, self._queue, item_id))

    def action_for(self, verb: str) -> Action | None:
        if verb == "doctor":
            return queue_action(verb, self._queue.name)
        for item in self._items():
            if item.item_id == self.listing.chosen:
                return item_action(verb, item)
        self.session.note(f"{verb}: no item is chosen; Tab shows the other lists")
        return None


class ItemScreen(LiveScreen):
    """One item, as `rwq show` shows it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back", key_display="Esc")]
    data: Shown | None

    def __init__(self, session: Session, queue: WorkQueue, item_id: bytes) -> None:
        super().__init__(session)
        self._queue, self._item_id = queue, item_id
        self._contents = Static(id="contents")

    def compose(self) -> ComposeResult:
        yield from (self.header, self.notice, VerticalScroll(self._contents))
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self.query_one(VerticalScroll).focus()

    def read(self) -> Shown:
        return self.session.show(self._queue, self._item_id)

    def draw(self, room: int) -> None:
        if self.data is None:
            name: Piece = escaped(self._item_id), "bold"
            self._contents.update(self.text([name], [("reading…", "dim")]))
            return
        lines: list[Iterable[Piece]] = []
        for section in show_sections(self.data):
            lines += [[]] if lines else []
            # The column beside the scroll bar stays free.
            lines += section_lines(section, max(1, room - 2))
        self._contents.update(Group(*(self.text(line) for line in lines)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """There is nothing to filter or to open."""
        return action not in ("filter", "open")

    def action_for(self, verb: str) -> Action | None:
        if verb == "doctor":
            return queue_action(verb, self._queue.name)
        return None if self.data is None else item_action(verb, self.data.item)
