"""A line on stderr that is redrawn: progress with rate and time left, or a worker's status.

rich is imported for the first line: most work ends before one is shown. `rich.progress` measures a
rate from the first call on, and takes as long to import as a short command takes to run.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rwq_cli.core.batches import ProgressListener
from rwq_cli.environment import Environment
from rwq_cli.output import human

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

# Shorter work shows no progress.
_SHOW_AFTER_S = 1.0
_REDRAW_S = 0.1
_BAR_WIDTH = 20


class LiveLine:
    """A line below everything else on stderr, which is a terminal; notes are written above it."""

    def __init__(self, environment: Environment, *, colour: bool) -> None:
        self._environment = environment
        self._colour = colour
        self._shown: RenderableType | None = None
        self._live: Live | None = None

    def draw(self, line: "RenderableType") -> None:
        self._shown = line
        self._environment.note_above = self._write_above
        self._update(line)

    def hide(self) -> None:
        if self._shown is not None:
            self._shown = self._environment.note_above = None
            self._update("")

    @contextmanager
    def hidden(self) -> Iterator[bool]:
        """Hide the line in the block, which gets True if it was shown."""
        line = self._shown
        self.hide()
        yield line is not None
        if line is not None:
            self.draw(line)

    def _update(self, line: "RenderableType") -> None:
        from rwq_cli.output.console import open_console, open_live

        with suppress(OSError):
            if self._live is None:
                # It is never stopped: that would leave an empty line.
                console = open_console(self._environment, colour=self._colour, is_stderr=True)
                self._live = open_live(console)
            self._live.update(line, refresh=True)

    def _write_above(self, note: str) -> None:
        with self.hidden():
            self._environment.error(note)


class TerminalProgress(LiveLine, ProgressListener):
    """Shows a line for work that takes over a second; the working thread draws it."""

    # `fraction` returns the share that is done, 0 to 1, if only the caller knows it.
    fraction: Callable[[], float | None] | None = None

    def __init__(
        self,
        environment: Environment,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        colour: bool = False,
    ) -> None:
        super().__init__(environment, colour=colour)
        self._monotonic = monotonic
        self._began_s = self._stage_began_s = self._drawn_s = monotonic()
        self._what, self._count = "", 0
        self._total: int | None = None
        self._ended = False

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        self._what, self._count = what, 0
        self._total = total() if callable(total) else total
        self._stage_began_s = self._monotonic()
        self._show()

    def advance(self, count: int) -> None:
        self._count += count
        if self._monotonic() - self._drawn_s >= _REDRAW_S:
            self._show()

    def end(self) -> None:
        self._ended = True
        self.hide()

    def _show(self) -> None:
        now_s = self._monotonic()
        if self._ended or now_s - self._began_s < _SHOW_AFTER_S:
            return
        self._drawn_s = now_s
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        done = None
        text = f"{self._what} {human.count(self._count)}"
        if self.fraction is not None:
            done = self.fraction()
        elif self._total:
            done = min(1.0, self._count / self._total)
            text += f" of {human.count(max(self._total, self._count))}"
        stage_s = now_s - self._stage_began_s
        if stage_s >= _REDRAW_S and self._count:
            text += f", {human.count(round(self._count / stage_s))}/s"
            if done:
                left_s = stage_s * (1 - done) / done
                text += f", {human.duration(max(1, round(left_s)))} left"
        line = Table.grid(padding=(0, 1))
        bar = []
        if done is not None:
            line.add_column(width=_BAR_WIDTH)
            bar = [
                ProgressBar(1.0, done, complete_style="cyan", finished_style="cyan", style="dim")
            ]
        line.add_column(no_wrap=True, overflow="crop")
        line.add_row(*bar, text)
        self.draw(line)
