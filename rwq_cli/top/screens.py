"""The screens of `rwq top`: all queues, one queue, one item, the keys, and a command to run."""

from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar, cast

from rich.cells import chop_cells
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from rwq_cli.core.inspect.queue_watch import Overview
from rwq_cli.core.keys import glob_pattern, is_glob
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.cells import width
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.screen import Piece
from rwq_cli.output.table import section_lines, table_lines, wrapped
from rwq_cli.top.running import Action, parse_options
from rwq_cli.top.session import (
    ITEMS_SHOWN,
    LISTS,
    QueueDetail,
    Session,
    item_action,
    queue_action,
    read_queue,
)
from rwq_cli.top.widgets import Lines, Listing
from rwq_cli.views.item_report import Shown, show_report
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

T = TypeVar("T")

_ALWAYS = ("? help", "q leave")
_ACTIONS = ("space freeze", "r release", "b bury", "K kick", "e edit", "d doctor")


class Host(Protocol):
    """What the screens need of the app.

    Attributes:
        overview: What is known of all queues.
    """

    overview: Overview

    def notices(self) -> list[Piece]:
        """The messages above the keys."""

    def show_message(self, text: str) -> None:
        """Show a message for a few seconds."""

    def read_soon(self) -> None:
        """Read again now."""

    def run_command(self, action: Action, options: Sequence[str]) -> None:
        """Run a command on the terminal, and return."""


class LiveScreen(Screen[None], Generic[T]):
    """A screen whose contents are read again and again.

    Attributes:
        data: What was read last; None if nothing was read yet.
        next_read_s: When it is read again, on the app's clock.
    """

    KEYS: Sequence[str] = ()
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        # Before the next key goes to the list: keys of a slow line come together.
        Binding("slash", "filter", show=False, priority=True),
        Binding("r", "command('release')", show=False),
        Binding("b", "command('bury')", show=False),
        Binding("K", "command('kick')", show=False),
        Binding("e", "command('edit')", show=False),
        Binding("d", "command('doctor')", show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.data: T | None = None
        self.next_read_s = 0.0
        self.filter = ""
        # Drawn to between compose and removal, when a query would not find them.
        colour = session.colour
        self.header = Lines(colour=colour)
        self.notice = Lines(colour=colour)
        self.summary = Lines(colour=colour)
        self.titles = Lines(colour=colour)
        self.listing = Listing(colour=colour)
        self.box = Input(placeholder="a part of a name, or a pattern: Enter, Esc")
        self.footer = Lines(colour=colour)

    @property
    def top(self) -> "Host":
        """The app."""
        return cast("Host", self.app)

    def compose(self) -> ComposeResult:
        yield from (self.header, self.notice, self.summary, self.titles, self.listing)
        yield from (self.box, self.footer)

    def on_mount(self) -> None:
        """Start with the listing in focus."""
        self.box.display = False
        self.listing.focus()
        self.redraw()
        self.top.read_soon()

    def read(self) -> T:
        """Read the contents; called in a thread that does nothing else."""
        raise NotImplementedError

    def on_resize(self, _event: events.Resize) -> None:
        """Lay everything out anew."""
        self.redraw()

    def on_screen_resume(self) -> None:
        """Show what was read meanwhile."""
        self.redraw()

    def redraw(self) -> None:
        """Lay out what is known for the width of the terminal."""
        room = self.size.width
        if not room or not self.is_mounted:
            return
        overview = self.top.overview
        self.header.show([header(self.session.server, overview.status, room)])
        self.notice.show([fitted([*self.top.notices(), *self.notices()], room)])
        self.footer.show([fitted([(key, "dim") for key in self.keys], room)])
        self.draw(room)

    def draw(self, room: int) -> None:
        """Draw what is special about this screen."""
        raise NotImplementedError

    def notices(self) -> list[Piece]:
        """The messages about the list."""
        return [(f"filter {escaped_text(self.filter)}", "bold")] if self.filter else []

    @property
    def keys(self) -> Sequence[str]:
        """The keys, the most important first."""
        return (*_ALWAYS, *self.KEYS, *_ACTIONS)

    def matches(self, *texts: bytes) -> bool:
        """Whether one of these texts matches the filter."""
        if not self.filter:
            return True
        wanted = self.filter.encode("utf-8", "surrogateescape")
        if is_glob(wanted):
            return any(glob_pattern(wanted).match(text) for text in texts)
        return any(wanted in text or self.filter in escaped(text) for text in texts)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """A slash is a character while the user types the filter."""
        return not (action == "filter" and self.focused is self.box)

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
        self._close_filter()

    def _close_filter(self) -> None:
        self.box.display = False
        self.listing.focus()

    def action_back(self) -> None:
        """Remove the filter, or return to the screen before."""
        if self.filter or self.box.display:
            self.filter = ""
            self.box.value = ""
            self._close_filter()
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
            return
        if action.runs_at_once:
            self.top.run_command(action, ())
            return

        def run(options: Sequence[str] | None) -> None:
            if options is not None:
                self.top.run_command(action, options)

        self.app.push_screen(CommandScreen(self.session, action), run)


class QueuesScreen(LiveScreen[None]):
    """All queues."""

    KEYS = ("Enter open", "/ filter", "s sort", "S reverse")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", show=False),
        Binding("s", "sort", show=False),
        Binding("S", "reverse", show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sort, self._reverse = session.sort, session.reverse
        self._widest = [0] * len(sort_columns(self._sort, reverse=False))

    def read(self) -> None:
        """Nothing: the overview is read at each tick."""

    def draw(self, room: int) -> None:
        self.summary.display = False
        rows = [row for row in self.top.overview.rows if self.matches(row.queue)]
        rows = sorted_rows(rows, self._sort, reverse=self._reverse)
        columns = sort_columns(self._sort, reverse=self._reverse)
        titles, lines = table_lines(columns, rows, room - 1, self._widest)
        if not rows:
            self.titles.show([[(self._nothing(), None)]])
            self.listing.show([], [])
            return
        self.titles.show([titles])
        self.listing.show(lines, [row.queue for row in rows])

    def _nothing(self) -> str:
        return "No such queues." if self.filter or self.top.overview.rows else "No queues here."

    def notices(self) -> list[Piece]:
        number = len(self.top.overview.rows)
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
        name = self.listing.chosen
        if name is None:
            return None
        action = queue_action(verb, name)
        if action is None:
            self.top.show_message(f"{verb}: choose an item; Enter opens the queue")
        return action


class QueueScreen(LiveScreen[QueueDetail]):
    """One queue: its states, and one of its lists.

    Args:
        session: The run.
        name: The queue's name.
    """

    KEYS = ("Enter open", "Tab next list", "Esc back", "/ filter")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", show=False),
        Binding("tab", "list(1)", show=False, priority=True),
        Binding("shift+tab", "list(-1)", show=False, priority=True),
    ]

    def __init__(self, session: Session, name: bytes) -> None:
        super().__init__(session)
        self._queue: WorkQueue = session.handle(name)
        self._which = LISTS[0]
        self._widest: list[int] = []

    def read(self) -> QueueDetail:
        return read_queue(self._queue, self._which)

    def draw(self, room: int) -> None:
        name: Piece = escaped(self._queue.name), "bold"
        if self.data is None:
            self.summary.show([fitted([name, ("reading…", "dim")], room)])
            self.titles.show([self._lists(room)])
            self.listing.show([], [])
            return
        detail = self.data
        summary = wrapped_parts([name, *state_parts(detail.counts)], room)
        summary += wrapped_parts(reason_parts(detail.buried, detail.counts.buried), room)
        self.summary.show(summary)
        items = self._items(detail)
        if len(self._widest) != len(detail.columns):
            self._widest = [0] * len(detail.columns)
        titles, lines = table_lines(detail.columns, items, room - 1, self._widest)
        self.titles.show([self._lists(room), titles] if items else [self._lists(room)])
        self.listing.show(lines, [item.item_id for item in items])

    def _items(self, detail: QueueDetail) -> list[Item]:
        if detail.which != self._which:
            return []
        return [
            item
            for item in detail.items
            if self.matches(item.item_id, item.preview or b"", item.reason or b"")
        ]

    def _lists(self, room: int) -> list[Piece]:
        """The names of the lists, the current one marked, and how many items it has."""
        names: list[Piece] = [
            (name.upper(), "bold reverse" if name == self._which else "dim") for name in LISTS
        ]
        if self.data is not None and self.data.which == self._which:
            shown, total = len(self._items(self.data)), self.data.total
            is_part = shown < total
            count = human.count(total)
            names.append((f"{human.count(shown)} of {count}" if is_part else count, None))
            if total > ITEMS_SHOWN:
                names.append((f"only the first {ITEMS_SHOWN} are read", "dim"))
            if self.data.is_long and self._which == "leases":
                names.append(("too many to sort: the oldest first", "yellow"))
        return fitted(names, room)

    def action_list(self, step: int) -> None:
        """Show another list."""
        if self.box.display:
            return
        self._which = LISTS[(LISTS.index(self._which) + step) % len(LISTS)]
        self._widest = []
        self.listing.cursor = 0
        self.redraw()
        self.top.read_soon()

    def _chosen(self) -> Item | None:
        if self.data is None:
            return None
        wanted = self.listing.chosen
        return next((item for item in self._items(self.data) if item.item_id == wanted), None)

    def action_open(self) -> None:
        """Go into an item."""
        if (item := self._chosen()) is not None:
            self.app.push_screen(ItemScreen(self.session, self._queue, item.item_id))

    def action_for(self, verb: str) -> Action | None:
        if verb == "doctor":
            return queue_action(verb, self._queue.name)
        if (item := self._chosen()) is None:
            self.top.show_message(f"{verb}: no item is chosen; Tab shows the other lists")
            return None
        return item_action(verb, item)


class ItemScreen(LiveScreen[Shown]):
    """One item, as `rwq show` shows it.

    Args:
        session: The run.
        queue: The queue.
        item_id: The item's ID.
    """

    KEYS = ("Esc back",)

    def __init__(self, session: Session, queue: WorkQueue, item_id: bytes) -> None:
        super().__init__(session)
        self._queue, self._item_id = queue, item_id

    def read(self) -> Shown:
        return self.session.show(self._queue, self._item_id)

    def draw(self, room: int) -> None:
        self.summary.display = False
        self.titles.display = False
        if self.data is None:
            self.listing.show([[(escaped(self._item_id), "bold")], [("reading…", "dim")]])
            return
        sections = show_report([self.data], one=True).view.sections
        assert sections is not None
        # The column beside the scroll bar stays free.
        columns = max(1, room - 2)
        lines: list[Sequence[Piece]] = []
        for section in sections(self.data):
            lines += [[]] if lines else []
            for line in section_lines(section, columns):
                lines += _folded(line, columns)
        self.listing.show(lines)

    def action_filter(self) -> None:
        """Nothing to filter."""

    def action_for(self, verb: str) -> Action | None:
        if verb == "doctor":
            return queue_action(verb, self._queue.name)
        return None if self.data is None else item_action(verb, self.data.item)


def _folded(line: Sequence[Piece], room: int) -> list[list[Piece]]:
    """A line, broken where it does not fit, as a terminal would do: commands are not wrapped."""
    *before, (text, style) = line
    indent = sum(width(piece) for piece, _ in before)
    first, *others = chop_cells(text, max(1, room - indent)) or [""]
    return [[*before, (first, style)], *([(" " * indent, None), (o, style)] for o in others)]


class CommandScreen(ModalScreen[Sequence[str] | None]):
    """A command before it runs: the user may change its options.

    Args:
        session: The run.
        action: The command.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]

    def __init__(self, session: Session, action: Action) -> None:
        super().__init__()
        self._session, self._action = session, action
        self._question = Lines(colour=session.colour)
        self._options = Input(
            action.options, placeholder="options, such as --dry-run", select_on_focus=False
        )

    def compose(self) -> ComposeResult:
        yield from (self._question, self._options)

    def on_mount(self) -> None:
        """Show the command."""
        self._show(self._action.options)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the command as it would run."""
        self._show(event.value)

    def on_resize(self) -> None:
        """Cut the command to the width."""
        self._show(self._options.value)

    def _show(self, options: str, hint: str = "Enter runs it, Esc does not. Options:") -> None:
        columns = max(1, self.app.size.width)
        line = self._session.command_line(self._action, escaped_text(options.strip()))
        parts = wrapped(f"$ {line}", columns)
        self._question.show(
            [*([(part, "bold")] for part in parts), fitted([(hint, "dim")], columns)]
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run it, unless the options cannot be read."""
        try:
            options = parse_options(event.value)
        except ValueError as error:
            self._show(event.value, f"{str(error).lower()}: a quotation mark is not closed")
            return
        self.dismiss(options)


_HELP: Sequence[tuple[str, str]] = (
    ("arrows", "and PgUp, PgDn, Home, End: choose a line; so do j, k, g and G"),
    ("Enter", "open a queue, then an item"),
    ("Esc", "remove the filter; else go back"),
    ("Tab", "in a queue: leases, the soonest to end first; waiting; delayed; buried"),
    ("/", "show only what has this text in its name, ID, data or reason; * and ? are patterns"),
    ("s  S", "sort by the next column; reverse the order"),
    ("space", "freeze, and go on"),
    ("r", "rwq release: of a queue, its abandoned items"),
    ("b", "rwq bury: of a queue, its abandoned items"),
    ("K", "rwq kick: of a queue, all buried items"),
    ("e", "rwq edit, of an item"),
    ("d", "rwq doctor, of the queue"),
    ("Ctrl-Z", "to the background; fg returns"),
    ("q", "leave"),
    ("", ""),
    ("Commands", "are shown before they run, and ask what they always ask"),
    ("RUNNING", "in processing, and not known to be abandoned"),
    ("ABANDONED", "- if more than 1,000 items are in processing; rwq stats counts them"),
    ("IN/S LEFT/S", "added or returned, and gone or returned, over the last samples"),
    ("", "≥ and -: there was more, or nothing to see: workers were faster than the samples"),
    ("NEXT AGE", "how long ago the next item was last used, which is about when it was added"),
    ("EMPTY IN", "when nothing waits any more, at the present rate"),
    ("HISTORY", "how many items waited in the last samples"),
)


class HelpScreen(ModalScreen[None]):
    """The keys and the columns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter", "dismiss", show=False)
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._listing = Listing(colour=session.colour)

    def compose(self) -> ComposeResult:
        yield self._listing

    def on_mount(self) -> None:
        """Show the text."""
        self._draw()
        self._listing.focus()

    def on_resize(self) -> None:
        """Lay it out for the width."""
        self._draw()

    def _draw(self) -> None:
        from rwq_cli.output.report import Section

        section = Section("rwq top", [(key, text, None) for key, text in _HELP])
        columns = max(1, self.app.size.width - 4)
        self._listing.show(list(section_lines(section, columns)))
