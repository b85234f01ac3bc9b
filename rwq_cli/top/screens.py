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
from textual.widgets import Input, Static

from rwq_cli.core.keys import glob_pattern, is_glob
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.painter import join_cells, lay_out_section
from rwq_cli.output.sections import Piece
from rwq_cli.output.tables import draw_lines
from rwq_cli.top.session import ITEMS_SHOWN, LISTS, QueueDetail, Session, read_queue
from rwq_cli.top.terminal import OF_QUEUES, Action, item_action, queue_action
from rwq_cli.top.widgets import CommandScreen, HelpScreen, Line, Listing
from rwq_cli.views.health import status_parts
from rwq_cli.views.item_report import Explanation, show_sections
from rwq_cli.views.items import session_lease
from rwq_cli.views.top import (
    SORT_COLUMNS,
    has_trouble,
    reason_parts,
    sort_columns,
    sorted_rows,
    state_parts,
    total_row,
)


class LiveScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        # Priority: handled before the next key reaches the list; a slow line sends several at once.
        Binding("enter", "open", "open", key_display="Enter", priority=True),
        Binding("slash", "filter", "filter", key_display="/", priority=True),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "app.quit", "leave"),
        Binding("escape", "back", show=False),
        Binding("space", "app.freeze", "freeze"),
        Binding("r", "command('release')", "release"),
        Binding("b", "command('bury')", "bury"),
        Binding("K", "command('kick')", "kick"),
        Binding("e", "command('edit')", "edit"),
        Binding("d", "command('doctor')", "doctor"),
        Binding("c", "command('clean light')", "clean"),
    ]
    data: Any = None
    next_read_s = 0.0

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.filter = ""
        # Drawn to between compose and removal, when a query would not find them.
        self.header, self.notice, self.titles, self.total = (Line() for _ in range(4))
        self.keys = Line(classes="keys")
        self.summary, self.listing = Line(classes="wrapped"), Listing(self.redraw)
        self.box = Input(placeholder="a part of a name, or a pattern: Enter, Esc")
        self.widest: list[int] = []

    def compose(self) -> ComposeResult:
        yield from (self.header, self.notice, self.summary, self.titles, self.listing)
        yield from (self.total, self.box, self.keys)

    def on_mount(self) -> None:
        self.box.display = self.total.display = False
        self.listing.focus()

    def on_screen_resume(self) -> None:
        self.session.page = self
        self.redraw()
        self.session.read_soon()

    def on_screen_suspend(self) -> None:
        """Stop reading it: another screen covers it, which may have resumed before."""
        if self.session.page is self:
            self.session.page = None

    def on_resize(self) -> None:
        self.redraw()
        self.call_after_refresh(self.redraw)

    def read(self) -> Any:
        """Read the contents; called in the only thread that uses the connection."""

    def redraw(self) -> None:
        if not self.size.width or not self.is_mounted:
            return
        session = self.session
        self.header.update(
            self.parts(
                [
                    *session.server,
                    *(status_parts(status) if (status := session.overview.status) else []),
                ]
            )
        )
        self.notice.update(self.parts([*session.notices(), *self.notices()]))
        # One column stays free.
        room = max(1, self.size.width - 1)
        self.keys.update(self._keys(room))
        self.draw(room)

    def _keys(self, room: int) -> Text:
        """The keys that work, in as many lines as they need."""
        bindings = [active.binding for active in self.active_bindings.values()]
        lines = [Text()]
        for binding in (binding for binding in bindings if binding.show):
            key = Text.assemble(
                (self.app.get_key_display(binding), "bold"), " ", binding.description
            )
            if lines[-1] and lines[-1].cell_len + 2 + key.cell_len > room:
                lines.append(Text())
            lines[-1].append_text(Text("  ") + key if lines[-1] else key)
        return Text("\n", "dim").join(lines)

    def draw(self, room: int) -> None:
        raise NotImplementedError

    def draw_rows(
        self,
        columns: Sequence[Any],
        rows: Sequence[Any],
        keys: Sequence[bytes],
        room: int,
        above: Sequence[Text] = (),
        total: Any = None,
    ) -> None:
        if len(self.widest) != len(columns):
            self.widest = [0] * len(columns)
        fitting = self.listing.fitting(keys)
        visible = [*rows[fitting], *([] if total is None else [total])]
        titles, lines = draw_lines(columns, visible, room, self.widest)
        self.titles.update(Text("\n").join([*above, self.line(titles)] if rows else above))
        self.total.display = total is not None
        if total is not None:
            last = self.line(lines.pop())
            last.stylize("bold")
            self.total.update(last)
        self.listing.show([self.line(line) for line in lines])

    def line(self, pieces: Iterable[Piece]) -> Text:
        return Text.assemble(*((text, self._style(style)) for text, style in pieces))

    def parts(self, parts: Iterable[Piece]) -> Text:
        return Text("  ").join(self.line([part]) for part in parts)

    def _style(self, name: str | None) -> Style:
        style = Style.parse(name or "")
        return style if self.session.colour else style.without_color + Style(bold=style.bold)

    def notices(self) -> list[Piece]:
        return [(f"filter {escaped_text(self.filter)}", "bold")] if self.filter else []

    def matches(self, *texts: bytes) -> bool:
        if not self.filter:
            return True
        wanted = self.filter.encode("utf-8", "surrogateescape")
        if is_glob(wanted):
            return any(glob_pattern(wanted).match(text) for text in texts)
        return any(wanted in text or self.filter in escaped(text) for text in texts)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        return action not in ("filter", "open") or self.focused is self.listing

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def action_filter(self) -> None:
        self.box.display = True
        self.box.value = self.filter
        self.set_focus(self.box)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.filter = event.value
        self.session.read_soon()
        self.redraw()

    def on_input_submitted(self) -> None:
        self.box.display = False
        self.listing.focus()

    def action_back(self) -> None:
        if self.filter or self.box.display:
            self.filter = self.box.value = ""
            self.on_input_submitted()
            self.redraw()
        elif not isinstance(self, QueuesScreen):
            self.app.pop_screen()

    def action_for(self, verb: str) -> Action | None:
        """Return the command of a key for what is chosen; None if nothing is."""
        raise NotImplementedError

    def action_command(self, verb: str) -> None:
        action = self.action_for(verb)
        if action is None:
            self.redraw()
            return

        def run(options: Sequence[str] | None) -> None:
            if options is not None:
                with self.app.suspend():
                    self.session.run(action, options)
                self.session.read_soon()

        # They change nothing, or show first what they change.
        if verb in ("doctor", "edit"):
            run(())
        else:
            self.app.push_screen(CommandScreen(self.session.run, action), run)


class QueuesScreen(LiveScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort"),
        Binding("S", "reverse", "reverse"),
        Binding("exclamation_mark", "trouble", "trouble", key_display="!"),
    ]

    only_trouble = False

    def draw(self, room: int) -> None:
        self.summary.display = False
        matching = [row for row in self.session.overview.rows if self.matches(row.queue)]
        if self.only_trouble:
            matching = [row for row in matching if has_trouble(row)]
        sort, reverse = self.session.sort, self.session.reverse
        rows = sorted_rows(matching, sort, reverse=reverse)
        columns = sort_columns(sort, reverse=reverse)
        nothing = "No such queues." if self.session.overview.rows else "No queues here."
        above = () if rows else [Text(nothing)]
        total = total_row(rows) if len(rows) > 1 else None
        self.draw_rows(columns, rows, [row.queue for row in rows], room, above, total)

    def notices(self) -> list[Piece]:
        count = human.counted(len(self.session.overview.rows), "queue")
        trouble = [("only with trouble: ! shows all", "bold")] if self.only_trouble else []
        return [*super().notices(), *trouble, (count, None)]

    def action_trouble(self) -> None:
        self.only_trouble = not self.only_trouble
        self.redraw()

    def action_open(self) -> None:
        if (name := self.listing.selected_key) is not None:
            self.app.push_screen(QueueScreen(self.session, name))

    def action_sort(self) -> None:
        number = SORT_COLUMNS.index(self.session.sort) + 1
        self.session.sort, self.session.reverse = SORT_COLUMNS[number % len(SORT_COLUMNS)], False
        self.widest = []
        self.redraw()

    def action_reverse(self) -> None:
        self.session.reverse = not self.session.reverse
        self.redraw()

    def action_for(self, verb: str) -> Action | None:
        if (name := self.listing.selected_key) is None:
            return None
        action = queue_action(verb, name)
        if action is None:
            self.session.note(f"{verb}: choose an item; Enter opens the queue")
        return action


class QueueScreen(LiveScreen):
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

    def read(self) -> QueueDetail:
        return read_queue(self._queue, self._which, self.filter)

    def draw(self, room: int) -> None:
        name: Piece = escaped(self._queue.name), "bold"
        if (detail := self.data) is None:
            self.summary.update(self.parts([name, ("reading…", "dim")]))
            return
        summary = [self.parts([name, *state_parts(detail.counts)])]
        if reasons := reason_parts(detail.buried, detail.counts.buried):
            summary.append(self.parts(reasons))
        self.summary.update(Text("\n").join(summary))
        items = self._items()
        above = [self.parts(self._lists())]
        self.draw_rows(list(detail.columns), items, [item.item_id for item in items], room, above)

    def _items(self) -> list[Item]:
        if self.data is None or self.data.which != self._which:
            return []

        def is_wanted(item: Item) -> bool:
            lease = session_lease(item)
            texts = item.preview, item.reason, lease and lease.holder, item.state.encode()
            return self.matches(item.item_id, *filter(None, texts))

        return list(filter(is_wanted, self.data.items))

    def _lists(self) -> list[Piece]:
        names: list[Piece] = [
            (name.upper(), "bold reverse" if name == self._which else "dim") for name in LISTS
        ]
        if self.data is not None and self.data.which == self._which:
            visible, total = len(self._items()), self.data.total
            count = human.count(total)
            names.append((f"{human.count(visible)} of {count}" if visible < total else count, None))
            if total > ITEMS_SHOWN:
                names.append((f"only the first {ITEMS_SHOWN} are read", "dim"))
            if self.data.is_long and self._which == "leases":
                names.append(("too many to sort: the oldest first", "yellow"))
        return names

    def action_list(self, step: int) -> None:
        if not self.box.display:
            names = list(LISTS)
            self._which = names[(names.index(self._which) + step) % len(names)]
            self.widest = []
            self.listing.action_page(-1_000_000)
            self.session.read_soon()

    def action_open(self) -> None:
        if (item_id := self.listing.selected_key) is not None:
            self.app.push_screen(ItemScreen(self.session, self._queue, item_id))

    def action_for(self, verb: str) -> Action | None:
        if verb in OF_QUEUES:
            return queue_action(verb, self._queue.name)
        for item in self._items():
            if item.item_id == self.listing.selected_key:
                return item_action(verb, item)
        self.session.note(f"{verb}: no item is chosen; Tab shows the other lists")
        return None


class ItemScreen(LiveScreen):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back", key_display="Esc")]
    data: Explanation | None

    def __init__(self, session: Session, queue: WorkQueue, item_id: bytes) -> None:
        super().__init__(session)
        self._queue, self._item_id = queue, item_id
        self._contents = Static(classes="wrapped")

    def compose(self) -> ComposeResult:
        yield from (self.header, self.notice, VerticalScroll(self._contents), self.keys)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def read(self) -> Explanation:
        return self.session.show(self._queue, self._item_id)

    def draw(self, room: int) -> None:
        if self.data is None:
            name: Piece = escaped(self._item_id), "bold"
            self._contents.update(self.parts([name, ("reading…", "dim")]))
            return
        lines: list[Text] = []
        for section in show_sections(self.data):
            lines += [Text()] if lines else []
            if section.title:
                lines.append(self.line([(section.title, "bold")]))
            # The scroll bar takes one column.
            layout, rows = lay_out_section(section, max(1, room - 1), lambda: self.app.console)
            lines += (self.line(join_cells(layout, row)) for row in rows)
        self._contents.update(Group(*lines))

    def action_for(self, verb: str) -> Action | None:
        if verb in OF_QUEUES:
            return queue_action(verb, self._queue.name)
        return None if self.data is None else item_action(verb, self.data.item)
