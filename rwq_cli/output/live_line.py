"""A line on stderr that is drawn again and again, below everything else."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rwq_cli.environment import Environment

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


class LiveLine:
    """A live line.

    Args:
        environment: The streams; stderr is a terminal. Notes are written above the line.
        colour: True to use colour.
    """

    def __init__(self, environment: Environment, *, colour: bool) -> None:
        self._environment = environment
        self._colour = colour
        self._shown: RenderableType | None = None
        self._live: Live | None = None

    def draw(self, line: "RenderableType") -> None:
        """Show a line in place of the one before."""
        self._shown = line
        self._environment.note_above = self._write_above
        self._update(line)

    def hide(self) -> None:
        """Remove the line until it is drawn again."""
        if self._shown is not None:
            self._shown = self._environment.note_above = None
            self._update("")

    @contextmanager
    def hidden(self) -> Iterator[bool]:
        """In the block, the line is not there; it begins with whether it was."""
        line = self._shown
        self.hide()
        yield line is not None
        if line is not None:
            self.draw(line)

    def _update(self, line: "RenderableType") -> None:
        with suppress(OSError):
            self._live = self._live or self._begin()
            self._live.update(line, refresh=True)

    def _begin(self) -> "Live":
        """A live view. It is never stopped, which would leave an empty line."""
        from rich.live import Live

        from rwq_cli.output.console import stderr_console

        live = Live(
            console=stderr_console(self._environment, colour=self._colour, is_terminal=True),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        live.start()
        return live

    def _write_above(self, note: str) -> None:
        with self.hidden():
            self._environment.error(note)
