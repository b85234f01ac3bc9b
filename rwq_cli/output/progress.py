"""Progress on stderr: what is done, how fast, and how long yet; gone when done."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from rwq_cli.core.progress import ProgressListener
from rwq_cli.environment import Environment
from rwq_cli.output import human

if TYPE_CHECKING:
    from rich.progress import Progress

# Work that is done sooner shows none.
_PATIENCE_S = 1.0
_REDRAW_S = 0.1


class TerminalProgress(ProgressListener):
    """Shows a line on the terminal once the work has gone on for a second.

    Args:
        environment: The run's streams; notes that are written meanwhile go above the line.
        monotonic: The clock, seconds.
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
        """How much of all the work is done, from 0 to 1, where only the caller can tell."""

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
        """Take the line away until the work goes on."""
        if self._display is not None:
            self._environment.note_above = None
            self._display.stop()
            self._display = None

    def end(self) -> None:
        """Take the line away for good: what comes now is written in its place."""
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
            description=self._said(done, now_s - self._stage_began_s),
            refresh=True,
        )

    def _done(self) -> float | None:
        if self.fraction is not None:
            return self.fraction()
        return min(1.0, self._count / self._total) if self._total else None

    def _said(self, done: float | None, stage_s: float) -> str:
        said = f"{self._what} {human.count(self._count)}"
        if self._total and self.fraction is None:
            said += f" of {human.count(max(self._total, self._count))}"
        if stage_s >= _REDRAW_S and self._count:
            said += f", {human.count(round(self._count / stage_s))}/s"
            if done:
                left_s = stage_s * (1 - done) / done
                said += f", {human.duration(max(1, round(left_s)))} left"
        return said


class _TextOut:
    """The text stream that rich wants, over stderr; one that is gone is no reason to stop."""

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
    # rich is loaded only when there is something to show.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    class Screen(Console):
        """A console that leaves the cursor where it is: if we are killed, it must not be gone."""

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
        # Drawn as the work goes, so that no thread of ours writes beside it.
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    environment.note_above = lambda line: screen.print(Text(line), soft_wrap=True)
    task = display.add_task("", total=None)
    display.start()
    return display, task
