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
from rwq_cli.environment import interrupts_left_to_child, os_reason, signals_to
from rwq_cli.output.console import styled
from rwq_cli.top.terminal import TerminalGuard
from rwq_cli.views.command_lines import CommandLines, can_be_argument
from rwq_cli.views.items import session_lease

# The options of this run that its commands need, too.
_VALUES = ("connect_timeout", "reply_timeout", "patience", "color")
_FLAGS = ("write", "debug")


class Action(NamedTuple):
    """A command for a queue, or for one of its items, with options that the user may change."""

    # One that runs at once changes nothing, or shows first what it changes.
    verb: str
    queue: bytes
    item_id: bytes | None = None
    options: str = ""
    runs_at_once: bool = False

    def line(self, lines: CommandLines, options: str = "") -> str:
        verb = f"{self.verb} {options}".rstrip()
        if self.item_id is None:
            return lines.of_queue(verb, self.queue)
        return lines.of_item(verb, self.queue, self.item_id)

    def words(self, options: Sequence[str]) -> tuple[list[str | bytes], bytes]:
        """The arguments of rwq, and what it reads from stdin: an ID that cannot be an argument."""
        words: list[str | bytes] = [self.verb, "-q", self.queue, *options]
        if self.item_id is None:
            return words, b""
        if not can_be_argument(self.item_id):
            return [*words, "-"], self.item_id + b"\n"
        return [*words, "--", self.item_id], b""


_REASON = f"--reason '{NO_REASON.decode()}'"
# What the commands for a whole queue are given; `edit` needs an item.
_QUEUE_OPTIONS = {
    "release": "--state abandoned",
    "bury": f"--state abandoned {_REASON}",
    "kick": "--all",
    "doctor": "",
}


def item_action(verb: str, item: Item) -> Action:
    is_held = session_lease(item) is not None
    options = ["--force"] if is_held and verb in ("release", "bury") else []
    # A given reason would replace that of a buried item.
    if verb == "bury" and item.buried_ms is None:
        options.append(_REASON)
    return Action(verb, item.queue, item.item_id, " ".join(options), runs_at_once=verb == "edit")


def queue_action(verb: str, queue: bytes) -> Action | None:
    options = _QUEUE_OPTIONS.get(verb)
    return None if options is None else Action(verb, queue, None, options, verb == "doctor")


class Runner:
    """Runs commands on the same server, with the same options; a signal ends them, too."""

    def __init__(self, settings: Settings, lines: CommandLines, guard: TerminalGuard) -> None:
        self.lines = lines
        self._settings = settings
        self._guard = guard

    def __call__(self, action: Action, options: Sequence[str]) -> None:
        line = f"$ {action.line(self.lines, shlex.join(options))}"
        self._write(f"\n{styled(line, 'bold') if self._settings.colour else line}\n")
        try:
            with interrupts_left_to_child():
                self._run(*action.words(options))
        except OSError as error:
            self._write(f"rwq: error: cannot run it: {os_reason(error)}\n")
        if self._guard.signal is None:
            self._await_enter()

    def _run(self, words: Sequence[str | bytes], stdin: bytes) -> None:
        given = self._settings.given
        # A table, whatever RWQ_OUTPUT says.
        options = ["-o", "table"]
        for name in _VALUES:
            options += [f"--{name.replace('_', '-')}", str(given[name])] if name in given else []
        options += [f"--{name}" for name in _FLAGS if given.get(name)]
        # The server's variables are not arguments: they may hold a password.
        variables: dict[bytes, bytes | None] = {
            os.fsencode(name): os.fsencode(value)
            for name, value in self._settings.environment.variables.items()
        }
        variables |= server_variables(self._settings)
        known = {name: value for name, value in variables.items() if value is not None}
        line = [sys.executable, "-P", "-m", "rwq_cli", *options, *words]
        source = subprocess.PIPE if stdin else None
        with subprocess.Popen(line, env=known, stdin=source) as process:
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
