"""SIGINT and SIGTERM handling.

While modules are imported, Ctrl-C ends the process (`rwq_cli.__main__` arranges that): an
exception raised in a callback of the import system can be lost. Once a command runs, it raises
`KeyboardInterrupt`; while calls are outstanding, the first one only cancels what would follow, so
that their replies are still read. SIGTERM ends most commands at once, and services as Ctrl-C does.

Python can run a signal handler anywhere. If it runs in a finalizer or in the callback of a weak
reference, Python prints its exception and continues; then a timer raises it again.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rwq_cli.core.server.patience import CancelToken

_cancel_tokens: "list[CancelToken]" = []
# True if SIGTERM has ended the command; see `ending_on_terminate`.
was_terminated = False
_is_redrawn = False
_TIME_TO_END_S = 0.7
_TIME_TO_LEAVE_A_CALLBACK_S = 0.01


def end_at_once(number: int, _frame: FrameType | None) -> None:
    _end_line()
    with suppress(OSError):
        os.write(2, b"interrupted: nothing done\n")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def raise_on_interrupt() -> None:
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, end_at_once):
        signal.signal(signal.SIGINT, _cancel_or_raise)
        sys.unraisablehook = _interrupt_again


def cancel_on_interrupt(token: "CancelToken") -> None:
    """Make the first Ctrl-C request a cancellation instead of raising."""
    _cancel_tokens.append(token)


def _end_line() -> None:
    """End the line on which the terminal shows `^C`: a message or the prompt needs its own."""
    with suppress(OSError):
        if os.isatty(2) and not _is_redrawn:
            os.write(2, b"\n")


def _cancel_or_raise(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGINT:
        _end_line()
    for token in _cancel_tokens:
        if token.is_polled and not token.requested:
            token.requested = True
            return
    signal.default_int_handler(number, frame)


def _interrupt_again(unraisable: Any) -> None:
    """Handle an exception that Python does not pass on: see `sys.unraisablehook`."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    # A moment later, because what is raised before this function returns is lost, too. The main
    # thread handles all signals, so this runs there.
    signal.signal(signal.SIGALRM, _cancel_or_raise)
    signal.setitimer(signal.ITIMER_REAL, _TIME_TO_LEAVE_A_CALLBACK_S)


@contextmanager
def ending_on_terminate(
    *, is_redrawn: bool = False, within_s: float = _TIME_TO_END_S
) -> Iterator[None]:
    """Make SIGTERM end the command in the block as Ctrl-C does, but with the exit code 0."""
    # The process ends `within_s`, by default in at most a second, even where Python handles no
    # signals, as in a host name lookup. If the terminal `is_redrawn`, its lines are counted, and
    # Ctrl-C adds none.
    # Most commands need no thread.
    from threading import Thread

    global was_terminated, _is_redrawn
    was_terminated, _is_redrawn = False, is_redrawn
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.signal(signal.SIGTERM, _terminate)
    hook, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    waker = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    Thread(target=_end_in_time, args=(reads, within_s), name="end", daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook = hook
        signal.set_wakeup_fd(waker)
        # This ends the thread.
        os.close(writes)


def _terminate(number: int, frame: FrameType | None) -> None:
    global was_terminated
    was_terminated = True
    _cancel_or_raise(number, frame)


def _end_in_time(reads: int, time_s: float) -> None:
    """Wait for SIGTERM, give the main thread time to end, and then end the process."""
    with open(reads, "rb", buffering=0) as signals:
        while received := signals.read(1):
            if received[0] == signal.SIGTERM:
                time.sleep(time_s)
                os._exit(0)
