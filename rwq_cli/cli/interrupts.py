"""What Ctrl-C does, and when.

While modules are loaded it ends the process at once. Python's own handler would raise in the middle
of an import, where the exception can get lost in a callback of the import system, and the command
would go on as if nothing had been said. Once there is work that has to end in order it raises, and
while calls are on their way to the server the first one waits until they are answered.
"""

import signal
from types import FrameType
from typing import Protocol


class Listener(Protocol):
    """Work that can be asked to end; see `rwq_cli.core.server.connection.CancelToken`."""

    asked: bool
    is_polled: bool


_listeners: list[Listener] = []


def end_at_once() -> None:
    """Let Ctrl-C end the process; where it is ignored, as in a background job, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_in_order() -> None:
    """Let Ctrl-C raise from now on; what was set otherwise, by whoever calls us, stays so."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, _ask_or_raise)


def listen(listener: Listener) -> None:
    """Ask this work to end before anything is raised."""
    _listeners.append(listener)


def _ask_or_raise(number: int, frame: FrameType | None) -> None:
    for listener in _listeners:
        if listener.is_polled and not listener.asked:
            listener.asked = True
            return
    signal.default_int_handler(number, frame)
