"""A progress line on stderr, with rate and time left; it is removed at the end."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rwq_cli.core.progress import ProgressListener
from rwq_cli.environment import Environment
from rwq_cli.output import human

if TYPE_CHECKING:
    from rich.progress import Progress

# Shorter work shows no progress.
_SHOW_AFTER_S = 1.0
_REDRAW_S = 0.1
_BAR_WIDTH = 20


class TerminalProgress(ProgressListener):
    """Shows a line on the terminal for work that takes over a second.

    The working thread draws it, so that no other thread writes to the terminal.

    Args:
        environment: The streams; notes are written above the line.
        monotonic: A clock, seconds.
        colour: Whether to use colour.
    """

    def __init__(
        self,
        environment: Environment,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        colour: bool = False,
    ) -> None:
        self._environment = environment
        self._colour = colour
        self._monotonic = monotonic
        self._began_s = self._stage_began_s = self._drawn_s = monotonic()
        self._what = ""
        self._count = 0
        self._total: int | None = None
        self._line: Progress | None = None
        self._has_bar = self._ended = False
        self.fraction: Callable[[], float | None] | None = None
        """Returns the share of the work that is done, 0 to 1; set if only the caller knows it."""

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        self._what, self._count = what, 0
        self._total = total() if callable(total) else total
        self._stage_began_s = self._monotonic()
        self._draw()

    def advance(self, count: int) -> None:
        self._count += count
        if self._monotonic() - self._drawn_s >= _REDRAW_S:
            self._draw()

    def hide(self) -> None:
        """Remove the line until work continues."""
        if self._line is not None:
            with suppress(OSError):
                self._line.stop()
            self._line = self._environment.note_above = None

    def end(self) -> None:
        """Remove the line for good."""
        self._ended = True
        self.hide()

    def _draw(self) -> None:
        now_s = self._monotonic()
        if self._ended or now_s - self._began_s < _SHOW_AFTER_S:
            return
        self._drawn_s = now_s
        done = self._done()
        with suppress(OSError):
            if self._has_bar is not (done is not None):
                self.hide()
            line = self._line or self._begin_line(has_bar=done is not None)
            line.update(
                line.task_ids[0],
                description=self._text(done, now_s - self._stage_began_s),
                completed=done or 0.0,
                refresh=True,
            )

    def _begin_line(self, *, has_bar: bool) -> "Progress":
        """Draw the line for the first time; its modules are not loaded for shorter work."""
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        from rwq_cli.output.console import stderr_console

        console = stderr_console(self._environment, colour=self._colour, is_terminal=True)
        text = Column(no_wrap=True, overflow="crop")
        line = Progress(
            *([BarColumn(_BAR_WIDTH)] if has_bar else []),
            TextColumn("{task.description}", markup=False, table_column=text),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        line.add_task("", total=1.0)
        line.start()
        self._line, self._has_bar = line, has_bar
        self._environment.note_above = lambda note: console.print(note, soft_wrap=True)
        return line

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
