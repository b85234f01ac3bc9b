"""Text on a terminal that is redrawn in place.

The terminal's state is not changed: no other screen, no hidden cursor, no raw mode. So whatever
ends the process, the terminal is as it was, with the last frame on it.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rwq_cli.environment import Environment

# For a terminal that does not know its size.
_USUAL_LINES = 24
_CLEAR_SCREEN = b"\x1b[H\x1b[2J"
_CLEAR_LINE = b"\x1b[2K"
_CLEAR_BELOW = b"\x1b[J"
# A line that is too long is cut by the terminal; both are sent with each frame.
_NO_WRAP, _WRAP = b"\x1b[?7l", b"\x1b[?7h"


class RedrawnScreen:
    """Draws frames on stdout, each over the one before it.

    Args:
        environment: The streams; stdout is a terminal.
    """

    def __init__(self, environment: Environment) -> None:
        self._out = environment.stdout
        self._lines = 0
        self._size: os.terminal_size | None = None

    def resume(self) -> None:
        """Draw the next frame below what the shell has written since this process was stopped."""
        self._lines = 0

    def draw(self, frame: bytes, last: bytes) -> None:
        """Draw lines.

        Args:
            frame: The lines; those that do not fit are left out, and counted in the last line.
            last: The last line, which is always drawn.

        Raises:
            OSError: The terminal is gone.
        """
        size = os.get_terminal_size(self._out.fileno())
        room = (size.lines or _USUAL_LINES) - 1
        all_lines = frame.splitlines()
        if (left_out := len(all_lines) - room) > 0:
            last += b"; %d more below" % left_out
        lines = [*all_lines[:room], last]
        above = b"\r" if self._lines < 2 else b"\r\x1b[%dA" % (self._lines - 1)
        if self._lines and size != self._size:
            # A resized terminal may have wrapped the lines differently.
            above = _CLEAR_SCREEN
        drawn = b"\n".join(_CLEAR_LINE + line for line in lines)
        self._out.write(_NO_WRAP + above + drawn + _CLEAR_BELOW + _WRAP)
        self._out.flush()
        self._lines, self._size = len(lines), size

    def end(self) -> None:
        """Leave the last frame where it is."""
        if self._lines:
            with suppress(OSError):
                self._out.write(b"\n")
                self._out.flush()


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
