"""What Ctrl-C does, and when.

While modules are imported it ends the process at once (`rwq_cli.__main__` sets that): an exception
in the middle of an import can be lost in a callback of the import system, and the command would go
on. Once a command runs it raises `KeyboardInterrupt`; while calls wait for their replies, the first
Ctrl-C waits with them.
"""

import signal
from types import FrameType
from typing import Protocol


class Listener(Protocol):
    """Work that can be cancelled; see `rwq_cli.core.server.connection.CancelToken`."""

    asked: bool
    is_polled: bool


_listeners: list[Listener] = []


def end_in_order() -> None:
    """Let Ctrl-C raise from now on, unless our caller has set another handler."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, _cancel_or_raise)


def listen(listener: Listener) -> None:
    """Cancel this work before raising."""
    _listeners.append(listener)


def _cancel_or_raise(number: int, frame: FrameType | None) -> None:
    for listener in _listeners:
        if listener.is_polled and not listener.asked:
            listener.asked = True
            return
    signal.default_int_handler(number, frame)
