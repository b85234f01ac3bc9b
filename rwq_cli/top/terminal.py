"""The terminal of `rwq top`: restored unless rwq is killed, and lent to the commands it runs."""

import os
import shlex
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

from rwq_cli.cli.connect import make_server_variables
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.schedule import NO_REASON
from rwq_cli.core.model import Item
from rwq_cli.environment import interrupts_left_to_child, os_reason, signals_to
from rwq_cli.output.console import apply_style
from rwq_cli.views.command_lines import CommandLines, can_be_argument
from rwq_cli.views.items import session_lease

# Ends a truncated escape sequence and synchronized output; then resets bracketed paste, line wrap,
# resize reports, keyboard protocol, screen, cursor, focus and style.
RESET = (
    b"\x18\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[0m"
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# After a signal, the program has this long to end by itself.
_END_WITHIN_S = 2.0
# The options of this run that its commands need, too.
_PASSED_ON = ("connect_timeout", "reply_timeout", "patience", "color", "write", "debug")


class TerminalGuard:
    """Restores the modes of the terminal when its block ends, or when a signal ends the program."""

    # The first signal asks the program to leave, and ends a `child` that has the terminal. If it
    # does not leave, or on a second signal, the terminal is restored and the process ends at once.
    def __init__(self) -> None:
        self.signal: int | None = None
        self.leave: Callable[[], object] | None = None
        self.child: subprocess.Popen[bytes] | None = None
        # Textual replaces sys.stderr.
        self._input, self._screen = sys.stdin.fileno(), sys.stderr.fileno()
        self._modes = termios.tcgetattr(self._input)
        self._handlers: list[tuple[int, Any]] = []

    def __enter__(self) -> "TerminalGuard":
        self._handlers = [(number, signal.signal(number, self._on_signal)) for number in SIGNALS]
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        for number, handler in self._handlers:
            signal.signal(number, handler)
        self._restore(is_clean=error is None)

    def _restore(self, *, is_clean: bool) -> None:
        if not is_clean:
            with suppress(OSError):
                os.write(self._screen, RESET)
        with suppress(termios.error):
            termios.tcsetattr(self._input, termios.TCSANOW, self._modes)

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


class Action(NamedTuple):
    """A command for a queue, or for one of its items, with options that the user may change."""

    verb: str
    queue: bytes
    item_id: bytes | None = None
    options: str = ""

    def line(self, lines: CommandLines, options: str = "") -> str:
        verb = f"{self.verb} {options}".rstrip()
        if self.item_id is None:
            return lines.of_queue(verb, self.queue)
        return lines.of_item(verb, self.queue, self.item_id)

    def words(self, options: Sequence[str]) -> tuple[list[str | bytes], bytes]:
        """Return the arguments of rwq, and its stdin: an ID that cannot be an argument."""
        words: list[str | bytes] = [*self.verb.split(), "-q", self.queue, *options]
        if self.item_id is None:
            return words, b""
        if not can_be_argument(self.item_id):
            return [*words, "-"], self.item_id + b"\n"
        return [*words, "--", self.item_id], b""


_REASON = f"--reason '{NO_REASON.decode()}'"
# The options of the commands for a whole queue; `edit` needs an item.
_QUEUE_OPTIONS = {
    "release": "--state abandoned",
    "bury": f"--state abandoned {_REASON}",
    "kick": "--all",
    "doctor": "",
    "clean light": "",
}
# What is never for one item.
OF_QUEUES = ("doctor", "clean light")


def item_action(verb: str, item: Item) -> Action:
    is_held = session_lease(item) is not None
    options = ["--force"] if is_held and verb in ("release", "bury") else []
    # A given reason would replace that of a buried item.
    if verb == "bury" and item.buried_ms is None:
        options.append(_REASON)
    return Action(verb, item.queue, item.item_id, " ".join(options))


def queue_action(verb: str, queue: bytes) -> Action | None:
    options = _QUEUE_OPTIONS.get(verb)
    return None if options is None else Action(verb, queue, None, options)


class Runner:
    """Runs commands on the same server, with the same options; a signal ends them, too."""

    def __init__(self, settings: Settings, lines: CommandLines, guard: TerminalGuard) -> None:
        self.lines = lines
        self._settings = settings
        self._guard = guard

    def __call__(self, action: Action, options: Sequence[str]) -> None:
        line = f"$ {action.line(self.lines, shlex.join(options))}"
        self._write(f"\n{apply_style(line, 'bold') if self._settings.colour else line}\n")
        try:
            with interrupts_left_to_child():
                self._run(*action.words(options))
        except OSError as error:
            self._write(f"rwq: error: cannot run the command: {os_reason(error)}\n")
        if self._guard.signal is None:
            self._await_enter()

    def _run(self, words: Sequence[str | bytes], stdin: bytes) -> None:
        settings = self._settings
        # A table, whatever RWQ_OUTPUT says.
        options = ["-o", "table"]
        for name in _PASSED_ON:
            value = settings.common_options.get(name)
            if value is not None and value is not False:
                options.append(f"--{name.replace('_', '-')}")
                options += [] if value is True else [str(value)]
        # The server's variables are not arguments: they may hold a password.
        variables: dict[bytes, bytes | None] = {
            os.fsencode(name): os.fsencode(value)
            for name, value in settings.environment.variables.items()
        }
        variables |= make_server_variables(settings)
        inherited = {name: value for name, value in variables.items() if value is not None}
        line = [sys.executable, "-P", "-m", "rwq_cli", *options, *words]
        source = subprocess.PIPE if stdin else None
        with subprocess.Popen(line, env=inherited, stdin=source) as process:
            self._guard.child = process
            try:
                process.communicate(stdin or None)
            finally:
                self._guard.child = None

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._settings.environment.stdout.write(text.encode())
            self._settings.environment.stdout.flush()

    def _await_enter(self) -> None:
        """Wait for Enter, Ctrl-D or Ctrl-C; what was typed before the question is discarded."""
        with (
            signals_to(signal.default_int_handler, signal.SIGINT),
            suppress(KeyboardInterrupt, OSError, termios.error),
        ):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            self._write("\nEnter returns to rwq top. ")
            os.read(sys.stdin.fileno(), 1024)
