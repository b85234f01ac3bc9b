"""`rwq top`: the queues of a server, live."""

import os
from importlib.util import find_spec
from typing import Annotated

from rwq_cli.cli.manual import UNWRITTEN
from rwq_cli.cli.options import duration
from rwq_cli.commands import Duration, InvalidArgument, Settings, command, option
from rwq_cli.environment import how_to_install
from rwq_cli.exit_codes import UsageError

_TWO_SECONDS = Duration(2)
_LEAST_S = 0.1


def _interval(text: str | float) -> Duration:
    every_s = duration(text)
    if every_s < _LEAST_S:
        raise InvalidArgument("--every must be at least 100ms", "each tick costs the server time")
    return every_s


@command(works_read_only=True, partial=UNWRITTEN)
def top(
    settings: Settings,
    every_s: Annotated[
        Duration, option("--every DUR", "Refresh interval; longer on a slow server.", _interval)
    ] = _TWO_SECONDS,
) -> None:
    """Show queues live, on the whole terminal: how many items are in each state, how fast they
    arrive and leave, and when each queue will be empty. Enter opens a queue, then an item. Other
    keys release, bury, kick, edit or run doctor, with the prompts of those commands. Requires
    Textual; install the extra "top".

    rwq top
    rwq top -q 'mail:*' --every 5s
    rwq top --sort waiting --reverse
    """
    environment = settings.environment
    if settings.common_options.get("output") is not None or settings.fields is not None:
        raise UsageError("top draws on the terminal", "rwq queues has -o and --fields")
    streams = (
        environment.stdin_is_terminal,
        environment.stdout_is_terminal,
        environment.stderr_is_terminal,
    )
    need = None if all(streams) else "a terminal for stdin, stdout and stderr"
    if environment.variables.get("TERM", "dumb") == "dumb":
        need = need or "a TERM other than dumb"
    if need is not None:
        raise InvalidArgument(f"top needs {need}", "use rwq queues --watch 2s")
    if find_spec("textual") is None:
        raise InvalidArgument("top needs Textual", how_to_install("textual>=8.0,<9"))
    from rwq_cli.top.session import Session
    from rwq_cli.top.terminal import TerminalGuard

    guard = TerminalGuard()
    # First, so that an error ends the command before anything is drawn.
    session = Session(settings, every_s, guard)
    from rwq_cli.top.app import TopApp

    # rwq has decided about colour; with NO_COLOR set, Textual would decide for itself.
    no_color = os.environ.pop("NO_COLOR", None)
    live = TopApp(session, guard)
    if no_color is not None:
        os.environ["NO_COLOR"] = no_color

    environment.note_above = session.note
    try:
        with guard:
            live.run(mouse=False)
            if live.failure is not None:
                raise live.failure
    finally:
        environment.note_above = None
    guard.raise_signal()
