"""The state of one run of `rwq top`: threads of its own read it, and the screens show it."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from threading import Event, Thread
from time import monotonic
from typing import Any, NamedTuple

from rwq_cli.cli.connect import make_command_lines, open_connection
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.watching import OLD_AFTER_S
from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.errors import RwqError, ServerError
from rwq_cli.core.inspect.counting import lengths_and_abandoned
from rwq_cli.core.inspect.listing import leases
from rwq_cli.core.inspect.queues import matching_queues, queue_names
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.keys import is_glob
from rwq_cli.core.model import Counts, Item, State
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.connection import Connection
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.field import Field
from rwq_cli.output.sections import Piece
from rwq_cli.top.terminal import Runner, TerminalGuard
from rwq_cli.top.watch import QueueWatch, interval_s
from rwq_cli.views.item_report import Explanation, read_explanations
from rwq_cli.views.items import columns_for
from rwq_cli.views.top import sort_column

# How often keys are scanned for new queues, seconds; less often if that takes long.
SCAN_EVERY_S = 30.0
_SCAN_SHARE = 10
_MESSAGE_S = 5.0
# How many items of a list are read.
ITEMS_SHOWN = 100
# Of how many buried items the reasons are counted.
_REASONS_READ = 1000
# If processing is longer than this, neither all states nor all leases are read.
_PROCESSING_MAX = 10_000
# How long abandoned items are counted then, seconds.
_COUNT_S = 0.2
# The lists of a queue, each with where its items are.
LISTS = {
    "leases": Source(processing=True),
    "waiting": Source(main=True),
    "delayed": Source(delayed=True),
    "buried": Source(buried=True),
}


class Session:
    """One run of `rwq top`, which reads for the first time when it is created."""

    # `page` is the `LiveScreen` that is shown, which is read again and again; None if it is
    # covered.
    def __init__(self, settings: Settings, every_s: float, guard: TerminalGuard) -> None:
        connection = open_connection(settings)
        # Nothing but the app may draw.
        connection.progress = ProgressListener()
        connection.set_no_touch()
        self._settings, self._connection = settings, connection
        # RWQ_QUEUE names the queue of commands that work in one.
        self._words = [os.fsencode(name) for name in settings.common_options.get("queue") or ()]
        self.every_s = self._now_every_s = every_s
        self.colour = settings.colour
        self.sort = sort_column(settings.common_options.get("sort") or "queue")
        # By default, numbers are sorted from the highest; --sort means from the lowest, as always.
        self.reverse = bool(settings.common_options.get("reverse")) != self.sort.right
        self.run = Runner(settings, make_command_lines(settings, connection), guard)
        self.server = _server_parts(settings, connection)
        self.watch = QueueWatch(connection, self._names(connection))
        self.overview = self.watch.tick()
        self.page: Any = None
        self.is_frozen = False
        self._trouble: RwqError | None = None
        # When the server last answered, when it was asked, and how long an answer usually takes.
        self._answered_s = monotonic()
        self._asked_s: float | None = None
        self._usual_s, self._was_stopped = 0.0, False
        self._message = "", 0.0
        self._new_names: list[bytes] | None = None
        self._soon, self._over = Event(), Event()

    def handle(self, name: bytes) -> WorkQueue:
        return WorkQueue(self._connection, name, holder=self._settings.holder)

    def show(self, queue: WorkQueue, item_id: bytes) -> Explanation:
        (report,) = read_explanations(queue, [item_id], self.run.lines, self.note)
        return report

    def _names(self, connection: Connection) -> Iterable[bytes]:
        if not self._words:
            return queue_names(connection)
        queues_of = matching_queues(connection, self._words)
        return dict.fromkeys(chain.from_iterable(queues_of.values()))

    def start(self, changed: Callable[[], object]) -> None:
        # Daemons: a reply that is outstanding when the user leaves is not waited for.
        Thread(target=self._read_forever, args=(changed,), daemon=True).start()
        Thread(target=self._scan_forever, daemon=True).start()

    def stop(self) -> None:
        self._over.set()
        self._soon.set()

    def resume(self) -> None:
        """Read again after this process was stopped, which says nothing of the server's speed."""
        self._was_stopped = True
        self._usual_s, self._now_every_s = 0.0, self.every_s
        self.read_soon()

    def read_soon(self) -> None:
        if self.page is not None:
            self.page.next_read_s = 0.0
        self._soon.set()

    def note(self, text: str) -> None:
        self._message = text, monotonic()

    def _read_forever(self, changed: Callable[[], object]) -> None:
        while not self._over.is_set():
            page = self.page
            if not self.is_frozen or (page is not None and page.data is None):
                self._asked_s, self._was_stopped = monotonic(), False
                try:
                    self._tick(page, was_frozen=self.is_frozen)
                    self._trouble, self._answered_s = None, monotonic()
                    if not self._was_stopped:
                        self._usual_s = self._answered_s - self._asked_s
                except RwqError as error:
                    self._trouble, self._now_every_s = error, self.every_s
                self._asked_s = None
                changed()
            self._soon.wait(self._now_every_s)
            self._soon.clear()
        self.watch.close()

    def _tick(self, page: Any, *, was_frozen: bool) -> None:
        is_due = page is not None and monotonic() >= page.next_read_s
        if not was_frozen:
            if self._new_names is not None:
                self.watch.watch(self._new_names)
                self._new_names = None
            overview = self.watch.tick()
            if not self.is_frozen:
                self.overview = overview
            # Then, as the notice of a slow server names the time of a call.
            if not self._was_stopped:
                self._now_every_s = interval_s(self.every_s, overview.call_s)
        if page is not None and is_due:
            started_s = page.next_read_s = monotonic()
            data = page.read()
            if was_frozen or not self.is_frozen or page.data is None:
                page.data = data
            # Unless it has to be read again at once: the user may have chosen another list.
            if page.next_read_s == started_s:
                took_s = monotonic() - started_s
                page.next_read_s += interval_s(took_s, took_s)

    def _scan_forever(self) -> None:
        if self._words and not any(map(is_glob, self._words)):
            return
        took_s, reply_timeout_s = 0.0, self._settings.reply_timeout_s
        connection = self._connection.for_other_thread(reply_timeout_s=reply_timeout_s)
        while not self._over.wait(max(SCAN_EVERY_S, _SCAN_SHARE * took_s)):
            started_s = monotonic()
            with suppress(ServerError):
                if not self.is_frozen:
                    self._new_names = list(self._names(connection))
            took_s = monotonic() - started_s

    def notices(self) -> list[Piece]:
        now_s = monotonic()
        parts: list[Piece] = []
        if self.is_frozen:
            parts.append(("FROZEN: space resumes", "bold reverse"))
        message, said_s = self._message
        if now_s - said_s < _MESSAGE_S:
            parts.append((escaped_text(message), "bold"))
        parts += self._silence(now_s)
        if self._now_every_s > self.every_s:
            took = human.duration(round(self.overview.call_s, 1))
            every = human.duration(round(self._now_every_s, 1))
            parts.append((f"slow server ({took} a call): read every {every}", "yellow"))
        if left_out := "; ".join(error.message for error in self.overview.left_out):
            parts.append((f"skipped: {escaped_text(left_out)}", "yellow"))
        return [*parts, (f"every {human.duration(self.every_s)}", None)]

    def _silence(self, now_s: float) -> list[Piece]:
        """Return a notice if the server does not answer, or refuses: what is shown is old."""
        trouble, asked_s = self._trouble, self._asked_s
        is_silent = asked_s is not None and now_s - asked_s > max(OLD_AFTER_S, 2 * self._usual_s)
        if trouble and not (isinstance(trouble, ServerError) and trouble.is_transient):
            return [(escaped_text(trouble.message), "bold red")]
        if trouble is None and not is_silent:
            return []
        old = f"OLD: no answer for {human.duration(int(now_s - self._answered_s))}"
        if trouble is not None:
            old += f", trying again: {escaped_text(trouble.message)}"
        return [(old, "bold red reverse")]


def _server_parts(settings: Settings, connection: Connection) -> list[Piece]:
    """Return the server in the colour of its context, and where it is."""
    context = settings.protecting_context
    style = f"bold {context.color}" if context is not None and context.color else "bold"
    parts: list[Piece] = [(settings.server_label, style)]
    if settings.server.context is not None:
        parts.append((escaped_text(connection.name), None))
    elif context is not None:
        parts.append((f"context {escaped_text(context.name)}", style))
    return [*parts, *[("read-only", None)] * settings.is_read_only]


class QueueDetail(NamedTuple):
    """What the screen of a queue shows: its counts, the first items of one of `LISTS`, and those
    that are buried. If processing is long, not all of it was read."""

    counts: Counts
    which: str
    total: int
    items: list[Item]
    columns: Iterable[Field[Item]]
    buried: list[Item]
    is_long: bool


def read_queue(queue: WorkQueue, which: str, wanted: str = "") -> QueueDetail:
    """Read the counts of a queue, and of a list what is wanted: a part or pattern of an ID, a
    holder or a reason, or a part of a state."""
    counts = lengths_and_abandoned(queue, within_s=_COUNT_S)
    is_long = counts.processing > _PROCESSING_MAX
    if not is_long:
        counts = queue.counts()

    def read(selection: Selection) -> list[Item]:
        if which == "leases" and not is_long:
            return list(leases(queue, selection, limit=ITEMS_SHOWN))
        return list(queue.items(LISTS[which], selection, limit=ITEMS_SHOWN))

    items = read(Selection())
    if wanted and len(items) == ITEMS_SHOWN:
        # Also among the others: the first ones may match by their data.
        glob = os.fsencode(wanted if is_glob(os.fsencode(wanted)) else f"*{wanted}*")
        selections = [Selection(id_glob=glob)]
        if which == "leases":
            states = frozenset(state for state in State if wanted in state)
            selections += [Selection(holder_glob=glob), Selection(states=states)]
        elif which == "buried":
            selections.append(Selection(reason_glob=glob))
        others = chain.from_iterable(map(read, selections))
        items = list({item.item_id: item for item in [*items, *others]}.values())
    now_ms = queue.now_ms()
    buried = queue.items(LISTS["buried"], limit=_REASONS_READ, bare=True) if counts.buried else ()
    columns = columns_for(which, lambda: now_ms)
    total = counts.processing if which == "leases" else getattr(counts, which)
    return QueueDetail(counts, which, total, items, columns, list(buried), is_long)
