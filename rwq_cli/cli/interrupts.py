"""How Ctrl-C is handled.

While modules are imported, Ctrl-C ends the process at once (`rwq_cli.__main__` arranges that): an
exception raised in a callback of the import system can be lost, and the command would continue.
Once a command runs, Ctrl-C raises `KeyboardInterrupt`. While calls are outstanding, the first
Ctrl-C only cancels the rest, so that their replies are still read.
"""

import signal
from types import FrameType
from typing import Protocol


class Cancellable(Protocol):
    """Work that can be cancelled; see `rwq_cli.core.server.pipeline.CancelToken`."""

    requested: bool
    is_polled: bool


_cancellables: list[Cancellable] = []


def raise_on_interrupt() -> None:
    """Make Ctrl-C raise from now on, unless the caller has set another handler."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, _cancel_or_raise)


def cancel_on_interrupt(work: Cancellable) -> None:
    """Make the first Ctrl-C cancel this work instead of raising."""
    _cancellables.append(work)


def _cancel_or_raise(number: int, frame: FrameType | None) -> None:
    for work in _cancellables:
        if work.is_polled and not work.requested:
            work.requested = True
            return
    signal.default_int_handler(number, frame)
