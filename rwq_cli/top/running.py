"""Runs the commands of rwq, with their questions, on the terminal in place of `rwq top`."""

import os
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from rwq_cli.cli.connect import server_variables
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.schedule import NO_REASON
from rwq_cli.core.model import Item
from rwq_cli.environment import interrupts_left_to_child, os_reason
from rwq_cli.output.console import styled
from rwq_cli.top.terminal import TerminalGuard
from rwq_cli.views.command_lines import CommandLines, can_be_argument
from rwq_cli.views.items import session_lease

_VALUES = ("connect_timeout", "reply_timeout", "patience", "color")
_FLAGS = ("write", "debug")


class Action(NamedTuple):
    """A command for a queue, or for one of its items, with options that the user may change.

    One that runs at once changes nothing, or shows first what it changes.
    """

    verb: str
    queue: bytes
    item_id: bytes | None = None
    options: str = ""
    runs_at_once: bool = False

    def line(self, lines: CommandLines, options: str = "") -> str:
        """The command line, which can be pasted."""
        verb = f"{self.verb} {options}".rstrip()
        if self.item_id is None:
            return lines.of_queue(verb, self.queue)
        return lines.of_item(verb, self.queue, self.item_id)

    def words(self, options: Sequence[str]) -> tuple[list[str | bytes], bytes]:
        """The arguments of rwq, and what it reads from stdin: an ID that cannot be an argument.

        The options come last where they can: one without its value must not take the ID for it.
        """
        words: list[str | bytes] = [self.verb, "-q", self.queue]
        if self.item_id is None:
            return [*words, *options], b""
        if not can_be_argument(self.item_id):
            return [*words, "-", *options], self.item_id + b"\n"
        if self.item_id.startswith(b"-"):
            return [*words, *options, "--", self.item_id], b""
        return [*words, self.item_id, *options], b""


_REASON = f"--reason '{NO_REASON.decode()}'"
# What the commands for a whole queue are given; `edit` needs an item.
_QUEUE_OPTIONS = {
    "release": "--state abandoned",
    "bury": f"--state abandoned {_REASON}",
    "kick": "--all",
    "doctor": "",
}


def item_action(verb: str, item: Item) -> Action:
    """The command for an item, with the options that it needs in its state."""
    is_held = session_lease(item) is not None
    options = ["--force"] if is_held and verb in ("release", "bury") else []
    # A given reason would replace that of a buried item.
    if verb == "bury" and item.buried_ms is None:
        options.append(_REASON)
    return Action(verb, item.queue, item.item_id, " ".join(options), runs_at_once=verb == "edit")


def queue_action(verb: str, queue: bytes) -> Action | None:
    """The command for a whole queue; None if it needs an item."""
    options = _QUEUE_OPTIONS.get(verb)
    return None if options is None else Action(verb, queue, None, options, verb == "doctor")


class Runner:
    """Runs commands on the same server, with the same options; a signal ends them, too."""

    def __init__(self, settings: Settings, lines: CommandLines, guard: TerminalGuard) -> None:
        self.lines = lines
        self._settings = settings
        self._guard = guard

    def __call__(self, action: Action, options: Sequence[str]) -> None:
        """Run a command on the terminal, show its output, and wait for Enter."""
        words, stdin = action.words(options)
        line = f"$ {action.line(self.lines, shlex.join(options))}"
        self._write(f"\n{styled(line, 'bold') if self._settings.colour else line}\n")
        with interrupts_left_to_child():
            try:
                self._run([*_program(), *_given(self._settings), *words], stdin)
            except OSError as error:
                self._write(f"rwq: error: cannot run it: {os_reason(error)}\n")
        if self._guard.signal is None:
            self._write("\nEnter returns to rwq top. ")
            _await_enter()

    def _run(self, command: Sequence[str | bytes], stdin: bytes) -> None:
        settings, given = self._settings, subprocess.PIPE if stdin else None
        # Not arguments: they may hold a password.
        reaching = server_variables(settings)
        own = {
            os.fsencode(name): os.fsencode(value)
            for name, value in settings.environment.variables.items()
        }
        variables = {name: value for name, value in (own | reaching).items() if value is not None}
        with subprocess.Popen(command, env=variables, stdin=given) as process:
            self._guard.child = process
            try:
                if process.stdin is not None:
                    with suppress(BrokenPipeError):
                        process.stdin.write(stdin)
                        process.stdin.close()
                process.wait()
            finally:
                self._guard.child = None

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._settings.environment.stdout.write(text.encode())
            self._settings.environment.stdout.flush()


def _program() -> list[str]:
    """The words that start this program again."""
    if os.path.basename(sys.argv[0]) == "__main__.py" or not os.access(sys.argv[0], os.X_OK):
        return [sys.executable, "-m", "rwq_cli"]
    return [sys.argv[0]]


def _given(settings: Settings) -> list[str]:
    """The options of this run that its commands need, too."""
    # A table, whatever RWQ_OUTPUT says.
    words = ["-o", "table"]
    for name in _VALUES:
        if (value := settings.given.get(name)) is not None:
            words += [f"--{name}".replace("_", "-"), str(value)]
    return words + [f"--{name}" for name in _FLAGS if settings.given.get(name)]


def _await_enter() -> None:
    """Wait for Enter, Ctrl-D or Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt, OSError, termios.error):
            # Discard what was typed before the question.
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            os.read(sys.stdin.fileno(), 1024)
    finally:
        signal.signal(signal.SIGINT, before)
