"""rich's consoles for stdout and stderr, the only places from which it writes.

Markup, highlighting and emoji are off: text from the server is escaped beforehand and shown as it
is. Widths are in terminal cells: Chinese characters and emoji take two, combining accents none.
"""

import io
import os
from codecs import getwriter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from rich.cells import cell_len, split_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from rwq_cli.environment import Environment


# Assumed if the terminal does not report its size.
_USUAL_LINES = 24


def open_console(environment: "Environment", *, colour: bool, is_stderr: bool = False) -> "Console":
    """Make the console for results; on stderr, the one for live lines on a terminal."""
    from rich.console import Console

    stream = environment.stderr if is_stderr else environment.stdout

    class OurConsole(Console):
        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
            # The cursor stays visible: nothing would show it again after SIGKILL.
            return False

        def on_broken_pipe(self) -> None:
            # rich would exit with code 1; it calls this while it handles the error.
            raise

    return OurConsole(
        file=stream_writer(stream),
        width=environment.stderr_width if is_stderr else environment.width,
        color_system="standard" if colour else None,
        force_terminal=is_stderr or environment.stdout_is_terminal,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        # `Environment` has read the other variables already; a dumb terminal gets no live lines.
        _environ={"TERM": environment.variables.get("TERM", "")},
    )


def stream_writer(stream: BinaryIO) -> IO[str]:
    return cast(IO[str], getwriter("utf-8")(stream, "backslashreplace"))


def open_live(console: "Console", **options: Any) -> "Live":
    from rich.live import Live

    live = Live(
        console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False, **options
    )
    live.start()
    return live


def apply_style(text: str, style: str | None) -> str:
    if style is None:
        return text
    from rich.color import ColorSystem
    from rich.style import Style

    # `parse` caches the styles that it has parsed.
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def wrap_styled(text: str, width: int) -> str:
    """Wrap styled text at a width, without a trailing newline; the terminal breaks longer words."""
    from rich.console import Console
    from rich.text import Text

    # The terminal is not one of this process's streams.
    console = Console(width=width, color_system="standard", force_terminal=True, _environ={})
    with console.capture() as captured_text:
        styled_text = Text.from_ansi(text)
        has_long = any(cell_len(word) > width for word in styled_text.plain.split())
        console.print(styled_text, end="", soft_wrap=has_long)
    return captured_text.get()


def cut(text: str, room: int, head: int | None = None) -> str:
    """Cut a text to at most `room` cells: `…` replaces its end, or what follows the `head`."""
    excess = cell_len(text) - room
    if excess <= 0:
        return text
    head = room - 1 if head is None else head
    # Half of a wide character becomes a space.
    before, after = split_text(text, head)[0], split_text(text, head + excess + 1)[1]
    return f"{before.rstrip()}…{after.lstrip()}"


class LiveFrames:
    """Results that are redrawn on a terminal, each frame over the one before."""

    # The terminal's state is not changed: no alternate screen, no hidden cursor, no raw mode. So
    # whatever ends the process, the terminal is as it was, with the last frame on it.
    def __init__(self, environment: "Environment", *, colour: bool) -> None:
        # A copy: while a frame is captured, the environment's stdout is the frame.
        self._environment = copy(environment)
        self._colour = colour
        self._live: Live | None = None
        self._size: os.terminal_size | None = None

    def resume(self) -> None:
        """Draw the next frame below what the shell has written since this process was stopped."""
        self._live = None

    def draw(self, frame: str, last: str, style: str) -> None:
        from rich.text import Text

        size = os.get_terminal_size(self._environment.stdout.fileno())
        room = (size.lines or _USUAL_LINES) - 1
        lines = frame.splitlines()
        if (left_out := len(lines) - room) > 0:
            last += f"; {left_out:,} more below"
        text = Text.from_ansi("\n".join(lines[:room]), no_wrap=True, overflow="crop")
        text = Text("\n").join([*([text] if lines else []), Text(last, style)])
        text.no_wrap, text.overflow = True, "crop"
        if self._live is None or size != self._size:
            console = open_console(self._environment, colour=self._colour)
            if self._live is not None:
                # A resized terminal may have wrapped the lines differently.
                console.clear()
            self._live = open_live(console, vertical_overflow="crop")
            self._size = size
        self._live.update(text, refresh=True)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()


@contextmanager
def capture_frame(environment: "Environment") -> Iterator[io.BytesIO]:
    """Capture what the block writes to stdout and stderr as a frame."""
    # Read now, and so cached: once stdout is a frame, it is not a terminal.
    _ = environment.stdout_is_terminal, environment.stderr_is_terminal, environment.stdout_is_pipe
    streams = environment.stdout, environment.stderr, environment.written_once
    # A frame has the descriptor of the terminal, so that its size can be read.
    frame, terminal = io.BytesIO(), environment.stdout.fileno()
    frame.fileno = lambda: terminal  # type: ignore[method-assign]
    environment.stdout = environment.stderr = frame
    environment.written_once = set()
    try:
        yield frame
    finally:
        environment.stdout, environment.stderr, environment.written_once = streams
