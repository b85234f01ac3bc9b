"""Frames on a terminal: each over the one before it."""

import io
import os
from collections.abc import Iterator

import pytest

from rwq_cli.environment import Environment
from rwq_cli.output.console import LiveFrames
from tests.terminal import new_terminal, shown, watched


class Screen:
    """A terminal of 40 columns and 6 rows, with an environment whose streams go to it."""

    def __init__(self) -> None:
        outer, self._inner = new_terminal(40, 6)
        self.terminal = watched(outer)
        out = os.fdopen(self._inner, "wb")
        self.environment = Environment({}, io.BytesIO(), out, out)

    def lines(self) -> list[str]:
        # Terminals ignore a NUL; when it has come, all that was written before has.
        os.write(self._inner, b"\0")
        self.terminal.until(lambda: self.terminal.written.endswith(b"\0"))
        return shown(self.terminal.written, 40, 6)

    def close(self) -> None:
        self.environment.stdout.close()
        self.terminal.child.close()


@pytest.fixture
def terminal() -> Iterator[Screen]:
    made = Screen()
    yield made
    made.close()


def test_a_frame_replaces_the_one_before_it(terminal: Screen) -> None:
    frames = LiveFrames(terminal.environment, colour=False)
    frames.draw("a\nb\nc\n", "12:00:00", "")
    frames.draw("d\n", "12:00:01", "")
    assert terminal.lines() == ["d", "12:00:01"]


def test_after_a_stop_it_is_drawn_below_the_shell(terminal: Screen) -> None:
    frames = LiveFrames(terminal.environment, colour=False)
    frames.draw("a\n", "1", "")
    terminal.environment.stdout.write(b"^Z\n$ fg\n")
    frames.resume()
    frames.draw("b\n", "2", "")
    assert terminal.lines() == ["a", "1^Z", "$ fg", "b", "2"]
