"""Restores the terminal, whatever ends the program."""

import marshal
import os
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from rwq_cli.processes import DeathWatch
from rwq_cli.top import restorer

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# After a signal, the program has this long to end by itself.
_END_WITHIN_S = 2.0


class TerminalGuard:
    """Restores the modes of the terminal when its block ends, or when a signal ends the program."""

    # The first signal asks the program to leave, and ends a `child` that has the terminal. If it
    # does not, or if there is a second one, the terminal is restored and the process ends at once.
    # After SIGKILL or a crash, another process restores it: see `restorer`.
    def __init__(self) -> None:
        self.signal: int | None = None
        self.leave: Callable[[], object] | None = None
        self.child: subprocess.Popen[bytes] | None = None
        # Textual puts something else in the place of sys.stderr.
        self._input, self._screen = sys.stdin.fileno(), sys.stderr.fileno()
        self._modes = termios.tcgetattr(self._input)
        self._handlers: list[tuple[int, Any]] = []
        self._watch: DeathWatch | None = None

    def __enter__(self) -> "TerminalGuard":
        modes = marshal.dumps(self._modes).hex()
        command = (sys.executable, "-IS", restorer.__file__, modes)
        self._watch = DeathWatch(command, stderr=self._screen)
        self.note_drawn(is_drawn=True)
        self._handlers = [(number, signal.signal(number, self._on_signal)) for number in SIGNALS]
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        for number, handler in self._handlers:
            signal.signal(number, handler)
        self._restore(is_clean=error is None)

    def note_drawn(self, *, is_drawn: bool) -> None:
        if self._watch is not None:
            self._watch.tell(restorer.DRAWN if is_drawn else restorer.LEFT)

    def _restore(self, *, is_clean: bool) -> None:
        if not is_clean:
            with suppress(OSError):
                os.write(self._screen, restorer.RESET)
        with suppress(termios.error):
            termios.tcsetattr(self._input, termios.TCSANOW, self._modes)
        if self._watch is not None:
            self._watch.close()

    def raise_signal(self) -> None:
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            signal.signal(self.signal, signal.SIG_DFL)
            os.kill(os.getpid(), self.signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            self._give_up()
        self.signal = number
        if self.child is not None:
            with suppress(OSError):
                self.child.send_signal(number)
        if self.leave is not None:
            self.leave()
        timer = threading.Timer(_END_WITHIN_S, self._give_up)
        timer.daemon = True
        timer.start()

    def _give_up(self) -> None:
        """End the process now: it hangs, perhaps because the terminal is gone."""
        assert self.signal is not None
        self._restore(is_clean=False)
        os._exit(128 + self.signal)
