"""Results that are drawn again and again on a terminal, each over the one before.

The terminal's state is not changed: no other screen, no hidden cursor, no raw mode. So whatever
ends the process, the terminal is as it was, with the last frame on it.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from rich.live import Live
from rich.text import Text

from rwq_cli.environment import Environment
from rwq_cli.output.console import open_console, open_live

# For a terminal that does not know its size.
_USUAL_LINES = 24


class LiveFrames:
    def __init__(self, environment: Environment, *, colour: bool) -> None:
        # As it is now: while a frame is captured, stdout is another one.
        self._environment = copy(environment)
        self._colour = colour
        self._live: Live | None = None
        self._size: os.terminal_size | None = None

    def resume(self) -> None:
        """Draw the next frame below what the shell has written since this process was stopped."""
        self._live = None

    def draw(self, frame: str, last: str, style: str) -> None:
        size = os.get_terminal_size(self._environment.stdout.fileno())
        room = (size.lines or _USUAL_LINES) - 1
        lines = frame.splitlines()
        if (left_out := len(lines) - room) > 0:
            last += f"; {left_out:,} more below"
        shown = Text.from_ansi("\n".join(lines[:room]), no_wrap=True, overflow="crop")
        shown = Text("\n").join([*([shown] if lines else []), Text(last, style)])
        shown.no_wrap, shown.overflow = True, "crop"
        if self._live is None or size != self._size:
            console = open_console(self._environment, colour=self._colour)
            if self._live is not None:
                # A resized terminal may have wrapped the lines differently.
                console.clear()
            self._live = open_live(console, vertical_overflow="crop")
            self._size = size
        self._live.update(shown, refresh=True)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()


class _Frame(io.BytesIO):
    """Collects a frame, and has the descriptor of the terminal, so that its size can be read."""

    def __init__(self, terminal: int) -> None:
        super().__init__()
        self._terminal = terminal

    def fileno(self) -> int:
        return self._terminal


@contextmanager
def captured(environment: Environment) -> Iterator[io.BytesIO]:
    """In the block, what is written to stdout and stderr becomes a frame."""
    # They are cached: once stdout is a frame, it is not a terminal.
    _ = environment.stdout_is_terminal, environment.stderr_is_terminal, environment.stdout_is_pipe
    streams = environment.stdout, environment.stderr, environment.written_once
    frame = _Frame(environment.stdout.fileno())
    environment.stdout = environment.stderr = frame
    environment.written_once = set()
    try:
        yield frame
    finally:
        environment.stdout, environment.stderr, environment.written_once = streams
