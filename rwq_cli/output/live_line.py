"""A line on stderr that is drawn again and again, below everything else."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rwq_cli.environment import Environment

if TYPE_CHECKING:
    from rich.live import Live


class LiveLine:
    """A live line.

    Args:
        environment: The streams; stderr is a terminal.
        colour: Whether to use colour.
    """

    def __init__(self, environment: Environment, *, colour: bool) -> None:
        self._environment = environment
        self._colour = colour
        self._text = ""
        self._live: Live | None = None

    def draw(self, text: str) -> None:
        """Show a text, which is cut to the terminal, in place of the one before."""
        from rich.live import Live
        from rich.text import Text

        from rwq_cli.output.console import stderr_console

        self._text = text
        with suppress(OSError):
            if self._live is None:
                self._live = Live(
                    console=stderr_console(
                        self._environment, colour=self._colour, is_terminal=True
                    ),
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._live.start()
            self._live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)

    def hide(self) -> None:
        """Remove the line until it is drawn again."""
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()
            self._live = None

    @contextmanager
    def hidden(self) -> Iterator[bool]:
        """In the block, the line is not there; it begins with whether it was."""
        is_shown = self._live is not None
        self.hide()
        yield is_shown
        if is_shown:
            self.draw(self._text)
