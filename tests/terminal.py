"""Terminals: a program on one of its own (pexpect), and what is on its screen (pyte)."""

import os
import pty
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect
import pyte
from pexpect.fdpexpect import fdspawn

from tests import processes
from tests.processes import TIMEOUT_S

ROWS = 24


def new_terminal(columns: int, rows: int = ROWS) -> tuple[int, int]:
    """The outer and the inner end of a terminal without a program."""
    outer, inner = pty.openpty()
    termios.tcsetwinsize(inner, (rows, columns))
    return outer, inner


def shown(written: bytes, columns: int = 80, rows: int = ROWS) -> list[str]:
    """The lines on a terminal after this output, without the empty ones at the end."""
    screen = pyte.Screen(columns, rows)
    pyte.ByteStream(screen).feed(written)
    lines = [line.rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines


class Watched:
    """What a terminal shows, as pexpect reads it."""

    def __init__(self, child: Any) -> None:
        self.child = child
        self.child.delaybeforesend = None
        self.written = b""
        self._searched = 0

    def read(self) -> bool:
        """Read what there is, or wait a moment for it; False once nothing has the terminal open."""
        try:
            self.written += self.child.read_nonblocking(65536, 0.05)
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            return False
        return True

    def until(self, condition: Callable[[], Any]) -> None:
        """Read until something is so."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"it waits; the terminal shows {self.written!r}"
            if not self.read():
                time.sleep(0.01)

    def until_shown(self, text: bytes) -> None:
        """Read until a text is shown anew."""
        self.until(lambda: text in self.written[self._searched :])
        self._searched = self.written.index(text, self._searched) + len(text)

    def converse(self, type_in: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Type what is to be typed once something has appeared; what was written to the end."""
        steps = list(type_in)
        deadline = time.monotonic() + TIMEOUT_S
        while self.read():
            assert time.monotonic() < deadline, f"it waits; the terminal shows {self.written!r}"
            while steps and steps[0][0] in self.written[self._searched :]:
                text, keys = steps.pop(0)
                self._searched = self.written.index(text, self._searched) + len(text)
                self.child.send(keys)
        return self.written


def watched(outer: int) -> Watched:
    """The terminal with this outer end, which is closed with it."""
    return Watched(fdspawn(outer))


class Terminal(Watched):
    """A program on a terminal of its own, and the modes that it had before."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        directory: Path | None = None,
        columns: int = 80,
    ) -> None:
        outer, inner = new_terminal(columns)
        self.before = termios.tcgetattr(inner)
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), inner)
        self.process = processes.start(
            command, env=variables, cwd=directory, terminal=True, **streams
        )
        os.close(inner)
        super().__init__(fdspawn(outer))

    @property
    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.child.child_fd)

    def end(self) -> int:
        """Wait for the end of the program; its exit code, negative for a signal."""
        self.until(lambda: self.process.poll() is not None)
        self.read()
        return int(self.process.returncode)

    def close(self) -> None:
        """End the program, and close the terminal."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.child.close()
