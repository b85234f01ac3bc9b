"""`rwq top`: the queues of a server, live."""

import os
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import command_lines, open_connection
from rwq_cli.cli.options import Duration, option
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.show import read_shown
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.queues import matching_queues, queue_names
from rwq_cli.core.keys import is_glob
from rwq_cli.core.progress import ProgressListener
from rwq_cli.core.queue import WorkQueue
from rwq_cli.environment import how_to_install
from rwq_cli.exit_codes import ExitStatus, UsageError
from rwq_cli.views.item_report import Shown

if TYPE_CHECKING:
    from rwq_cli.core.inspect.queue_watch import QueueRow
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.output.field import Field
    from rwq_cli.top.session import Session
    from rwq_cli.top.terminal import TerminalGuard
    from rwq_cli.views.top import ShownServer

app = CommandModule()

_TWO_SECONDS = Duration("2s")
_LEAST_S = 0.1


def _interval(text: str) -> Duration:
    every_s = Duration(text)
    if every_s < _LEAST_S:
        raise InvalidArgument("--every must be at least 100ms", "each tick costs the server time")
    return every_s


@app.command(
    help="Show queues live, on the whole terminal: how many items are in each state, how fast "
    "they arrive and leave, and when each queue will be empty. Enter opens a queue, then an item. "
    "Other keys release, bury, kick, edit or run doctor, with the prompts of those commands. "
    'Requires Textual; install the extra "top".',
    examples=("rwq top", "rwq top -q 'mail:*' --every 5s", "rwq top --sort waiting --reverse"),
    works_read_only=True,
)
def top(
    settings: Settings,
    every_s: Annotated[
        Duration,
        option("--every DUR", "How often to refresh; less often if the server is slow.", _interval),
    ] = _TWO_SECONDS,
) -> ExitStatus:
    _check_usable(settings)
    from rwq_cli.top.terminal import TerminalGuard

    guard = TerminalGuard()
    session = open_session(settings, every_s, guard)
    from rwq_cli.top.app import TopApp

    # Colour is decided here, and Textual would decide for itself.
    no_color = os.environ.pop("NO_COLOR", None)
    live = TopApp(session, guard)
    if no_color is not None:
        os.environ["NO_COLOR"] = no_color

    guard.leave = live.leave_on_signal
    settings.environment.note_above = session.note
    try:
        with guard:
            live.run(mouse=False)
            if live.failure is not None:
                raise live.failure
    finally:
        settings.environment.note_above = None
    guard.raise_signal()
    return ExitStatus.OK


def _check_usable(settings: Settings) -> None:
    environment = settings.environment
    if settings.given.get("output") is not None or settings.fields is not None:
        raise UsageError("top draws on the terminal", "rwq queues has -o and --fields")
    streams = (
        environment.stdin_is_terminal,
        environment.stdout_is_terminal,
        environment.stderr_is_terminal,
    )
    if not all(streams) or environment.variables.get("TERM", "dumb") == "dumb":
        raise InvalidArgument(
            "top needs a terminal for stdin, stdout and stderr", "use rwq queues --watch 2s"
        )
    if find_spec("textual") is None:
        raise InvalidArgument("top needs Textual", how_to_install("textual>=8.0,<9"))


def open_session(settings: Settings, every_s: float, guard: "TerminalGuard") -> "Session":
    """Connect, and look for the first time: an error ends the command before anything is drawn.

    Args:
        settings: The run's settings.
        every_s: How often to look, seconds.
        guard: Ends commands that run on the terminal.
    """
    from rwq_cli.core.inspect.queue_watch import QueueWatch
    from rwq_cli.top.running import Runner
    from rwq_cli.top.session import Session

    connection = open_connection(settings)
    # Nothing but the app may draw.
    connection.progress = ProgressListener()
    connection.set_no_touch()
    lines = command_lines(settings, connection)
    runner = Runner(settings, lines, guard)
    # RWQ_QUEUE names the queue of commands that work in one.
    words = [os.fsencode(name) for name in settings.given.get("queue") or ()]

    def handle(name: bytes) -> WorkQueue:
        return WorkQueue(connection, name, holder=settings.holder)

    def show(queue: WorkQueue, item_id: bytes) -> Shown:
        (shown,) = read_shown(settings, queue, [item_id])
        return shown

    # It scans in a thread of its own.
    scanned = connection.for_other_thread(reply_timeout_s=settings.reply_timeout_s)

    def find() -> Iterable[bytes]:
        return _names(scanned, words)

    watch = QueueWatch(connection, _names(connection, words))
    sort, reverse = _sort(settings)
    return Session(
        watch=watch,
        overview=watch.tick(),
        find=find if not words or any(map(is_glob, words)) else None,
        handle=handle,
        show=show,
        run=runner,
        server=_shown_server(settings, connection),
        every_s=every_s,
        colour=settings.colour,
        sort=sort,
        reverse=reverse,
    )


def _names(connection: "Connection", words: list[bytes]) -> Iterable[bytes]:
    if not words:
        return queue_names(connection)
    return dict.fromkeys(chain.from_iterable(matching_queues(connection, words).values()))


def _sort(settings: Settings) -> "tuple[Field[QueueRow], bool]":
    """The column of `--sort`, and whether its usual order is reversed.

    Numbers usually come from the highest; `--sort` means from the lowest, as everywhere.
    """
    from rwq_cli.views.top import SORT_COLUMNS

    wanted = settings.given.get("sort") or "queue"
    for column in SORT_COLUMNS:
        if column.name == wanted:
            return column, bool(settings.given.get("reverse")) != column.right
    known = ", ".join(column.name for column in SORT_COLUMNS)
    raise InvalidArgument(f"no field {wanted!r}", f"the fields are {known}")


def _shown_server(settings: Settings, connection: "Connection") -> "ShownServer":
    from rwq_cli.output.escape import escaped_text
    from rwq_cli.views.top import ShownServer

    guard, is_context = settings.protecting_context, settings.server.context is not None
    style = f"bold {guard.color}" if guard is not None and guard.color else "bold"
    label = settings.server_label
    if guard is not None and not is_context:
        label += f" (context {escaped_text(guard.name)})"
    return ShownServer(
        label,
        escaped_text(connection.name) if is_context else "",
        style,
        settings.is_read_only,
    )
