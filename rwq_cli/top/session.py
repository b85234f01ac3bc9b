"""What one run of `rwq top` reads, and which commands it can run."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rwq_cli.core.inspect.queue_watch import Overview, QueueRow, QueueWatch
from rwq_cli.core.inspect.selection import Source
from rwq_cli.core.items.schedule import NO_REASON
from rwq_cli.core.model import Counts, Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.report import Column
from rwq_cli.top.running import Action
from rwq_cli.views.item_report import Shown
from rwq_cli.views.items import LEASES_COLUMNS, columns_for, session_lease
from rwq_cli.views.top import ShownServer

# Items of a list that are read.
ITEMS_SHOWN = 100
# Buried items whose reasons are counted.
_REASONS_READ = 1000
# If processing is longer than this, neither all states nor all leases are read.
_PROCESSING_MAX = 10_000
LISTS = ("leases", "waiting", "delayed", "buried")


class Session(NamedTuple):
    """What one run reads, and which commands it can run.

    Attributes:
        watch: Samples the queues.
        first: The first overview.
        find: Finds the names of the queues, by a scan; None if all were named.
        handle: Makes the handle of a queue.
        show: Reads everything about an item.
        run: Runs a command on the terminal, with these options.
        command_line: The command line of an action with these options.
        server: The server.
        every_s: How often to look, seconds.
        colour: Whether to use colour.
        sort: The column that rows are sorted by at first.
        reverse: Whether the order is reversed.
    """

    watch: QueueWatch
    first: Overview
    find: Callable[[], Iterable[bytes]] | None
    handle: Callable[[bytes], WorkQueue]
    show: Callable[[WorkQueue, bytes], Shown]
    run: Callable[[Action, Sequence[str]], None]
    command_line: Callable[[Action, str], str]
    server: ShownServer
    every_s: float
    colour: bool
    sort: Column[QueueRow]
    reverse: bool = False


class QueueDetail(NamedTuple):
    """What the screen of a queue shows.

    Attributes:
        counts: Its counts.
        which: Which of `LISTS` was read.
        items: The first items of that list.
        columns: Their columns.
        buried: The first buried items.
        is_long: Whether processing is too long to read all of it.
    """

    counts: Counts
    which: str
    items: Sequence[Item]
    columns: Sequence[Column[Item]]
    buried: Sequence[Item]
    is_long: bool

    @property
    def total(self) -> int:
        """How many items the list has."""
        if self.which == "leases":
            return self.counts.processing
        total: int = getattr(self.counts, self.which)
        return total


def read_queue(queue: WorkQueue, which: str) -> QueueDetail:
    """Read what the screen of a queue shows."""
    counts = queue.lengths()
    is_long = counts.processing > _PROCESSING_MAX
    if not is_long:
        counts = queue.counts()
    if which == "leases" and not is_long:
        items = list(queue.leases(limit=ITEMS_SHOWN))
    else:
        items = list(queue.items(Source(**_SOURCES[which]), limit=ITEMS_SHOWN))
    columns: Sequence[Column[Item]] = LEASES_COLUMNS
    if which != "leases":
        now_ms = queue.now_ms()
        columns = columns_for(which, lambda: now_ms)
    buried: Sequence[Item] = ()
    if counts.buried:
        buried = list(queue.items(Source(buried=True), limit=_REASONS_READ, bare=True))
    return QueueDetail(counts, which, items, columns, buried, is_long)


_SOURCES = {
    "leases": {"processing": True},
    "waiting": {"main": True},
    "delayed": {"delayed": True},
    "buried": {"buried": True},
}


_REASON = f"--reason '{NO_REASON.decode()}'"


def item_action(verb: str, item: Item) -> Action:
    """The command for an item, with the options that it needs in its state."""
    is_held = session_lease(item) is not None
    options = ["--force"] if is_held and verb in ("release", "bury") else []
    # A given reason would replace that of a buried item.
    if verb == "bury" and item.buried_ms is None:
        options.append(_REASON)
    return Action(verb, item.queue, item.item_id, " ".join(options), runs_at_once=verb == "edit")


# What the commands for a whole queue are given; `edit` needs an item.
_QUEUE_OPTIONS = {
    "release": "--state abandoned",
    "bury": f"--state abandoned {_REASON}",
    "kick": "--all",
    "doctor": "",
}


def queue_action(verb: str, queue: bytes) -> Action | None:
    """The command for a whole queue; None if it needs an item."""
    options = _QUEUE_OPTIONS.get(verb)
    if options is None:
        return None
    return Action(verb, queue, None, options, runs_at_once=verb == "doctor")
