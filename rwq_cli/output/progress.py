"""A progress line on stderr, with rate and time left; it is removed at the end."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from rwq_cli.core.progress import ProgressListener
from rwq_cli.environment import Environment
from rwq_cli.output import human

if TYPE_CHECKING:
    from rich.progress import Progress

# Work that ends sooner shows no progress.
_PATIENCE_S = 1.0
_REDRAW_S = 0.1


class TerminalProgress(ProgressListener):
    """Shows a line on the terminal for work that takes over a second.

    Args:
        environment: The streams; notes are written above the line.
        monotonic: A clock, seconds.
    """

    def __init__(
        self, environment: Environment, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._environment = environment
        self._monotonic = monotonic
        self._began_s = self._stage_began_s = self._drawn_s = monotonic()
        self._what = ""
        self._count = 0
        self._total: int | None = None
        self._display: Progress | None = None
        self._task: Any = None
        self._ended = False
        self.fraction: Callable[[], float | None] | None = None
        """Returns the share of the work that is done, 0 to 1; set if only the caller knows it."""

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        self._what, self._count = what, 0
        self._total = total() if callable(total) else total
        self._stage_began_s = self._monotonic()
        self._draw()

    def advance(self, count: int) -> None:
        self._count += count
        now_s = self._monotonic()
        if now_s - self._drawn_s >= _REDRAW_S:
            self._draw()

    def hide(self) -> None:
        """Remove the line until the work goes on."""
        if self._display is not None:
            self._environment.note_above = None
            self._display.stop()
            self._display = None

    def end(self) -> None:
        """Remove the line for good."""
        self._ended = True
        self.hide()

    def _draw(self) -> None:
        now_s = self._monotonic()
        if self._ended or now_s - self._began_s < _PATIENCE_S:
            return
        self._drawn_s = now_s
        if self._display is None:
            self._display, self._task = _display(self._environment)
        done = self._done()
        self._display.update(
            self._task,
            total=None if done is None else 1.0,
            completed=done or 0.0,
            description=self._text(done, now_s - self._stage_began_s),
            refresh=True,
        )

    def _done(self) -> float | None:
        if self.fraction is not None:
            return self.fraction()
        return min(1.0, self._count / self._total) if self._total else None

    def _text(self, done: float | None, stage_s: float) -> str:
        text = f"{self._what} {human.count(self._count)}"
        if self._total and self.fraction is None:
            text += f" of {human.count(max(self._total, self._count))}"
        if stage_s >= _REDRAW_S and self._count:
            text += f", {human.count(round(self._count / stage_s))}/s"
            if done:
                left_s = stage_s * (1 - done) / done
                text += f", {human.duration(max(1, round(left_s)))} left"
        return text


class _TextOut:
    """stderr as the text stream that rich needs; write errors are ignored."""

    encoding = "utf-8"

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def isatty(self) -> bool:
        return True


def _display(environment: Environment) -> "tuple[Progress, Any]":
    # rich is imported only when there is something to show.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    class Screen(Console):
        """A console that never hides the cursor: if rwq is killed, it would stay hidden."""

        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
            return False

    screen = Screen(
        file=cast(IO[str], _TextOut(environment.stderr)),
        force_terminal=True,
        width=environment.stderr_width,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        no_color=not environment.allows_colour,
    )
    display = Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        console=screen,
        transient=True,
        # Drawn by the thread that works, so that no other one writes to the terminal.
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    environment.note_above = lambda line: screen.print(Text(line), soft_wrap=True)
    task = display.add_task("", total=None)
    display.start()
    return display, task
