"""Frames on a terminal: each over the one before it, also on one that changes its size."""

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest

from rwq_cli.environment import Environment
from rwq_cli.output.live import LiveFrames, captured
from tests.output.emulator import shown


class Terminal:
    """A new terminal.

    Attributes:
        environment: Streams that go to it.
    """

    def __init__(self) -> None:
        self._outer, self._inner = pty.openpty()
        self.resize(columns=40, rows=6)
        out = os.fdopen(self._inner, "wb")
        self.environment = Environment({}, io.BytesIO(), out, out)

    def resize(self, *, columns: int, rows: int) -> None:
        fcntl.ioctl(self._inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def output(self) -> bytes:
        """What has been written so far."""
        os.set_blocking(self._outer, False)
        found = b""
        with suppress(BlockingIOError):
            while piece := os.read(self._outer, 1 << 16):
                found += piece
        return found

    def close(self) -> None:
        self.environment.stdout.close()
        os.close(self._outer)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def test_a_frame_replaces_the_one_before_it(terminal: Terminal) -> None:
    frames = LiveFrames(terminal.environment, colour=False)
    frames.draw("a\nb\nc\n", "12:00:00", "")
    frames.draw("d\n", "12:00:01", "")
    assert shown(terminal.output()) == ["d", "12:00:01"]


def test_what_was_above_stays(terminal: Terminal) -> None:
    terminal.environment.stdout.write(b"$ rwq stats --watch 1s\n")
    frames = LiveFrames(terminal.environment, colour=False)
    for second in ("1", "2"):
        frames.draw("a\n", second, "")
    frames.end()
    terminal.environment.stdout.write(b"$ ")
    terminal.environment.stdout.flush()
    assert shown(terminal.output()) == ["$ rwq stats --watch 1s", "a", "2", "$"]


def test_a_long_frame_is_cut_above_its_last_line(terminal: Terminal) -> None:
    LiveFrames(terminal.environment, colour=False).draw("1\n2\n3\n4\n5\n6\n7\n", "12:00:00", "")
    assert shown(terminal.output()) == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "12:00:00; 2 more below",
    ]


def test_a_terminal_of_another_size_is_cleared(terminal: Terminal) -> None:
    frames = LiveFrames(terminal.environment, colour=False)
    frames.draw("a" * 40 + "\n", "12:00:00", "")
    before = terminal.output()
    terminal.resize(columns=20, rows=6)
    frames.draw("b" * 20 + "\n", "12:00:01", "")
    after = terminal.output()
    # Most terminals have broken the first line into two by now.
    assert after.startswith(b"\x1b[2J\x1b[H")
    assert shown(before + after) == ["b" * 20, "12:00:01"]


def test_after_a_stop_the_frame_is_drawn_below_what_the_shell_wrote(terminal: Terminal) -> None:
    frames = LiveFrames(terminal.environment, colour=False)
    frames.draw("a\n", "1", "")
    terminal.environment.stdout.write(b"^Z\n$ fg\n")
    frames.resume()
    frames.draw("b\n", "2", "")
    assert shown(terminal.output()) == ["a", "1^Z", "$ fg", "b", "2"]


def test_results_and_notes_become_a_frame_as_wide_as_the_terminal(terminal: Terminal) -> None:
    environment = terminal.environment
    with captured(environment) as frame:
        environment.stdout.write(b"result\n")
        environment.note("note", once=True)
        assert (environment.width, environment.stderr_width) == (40, 40)
        assert environment.stdout_is_terminal
    assert frame.getvalue() == b"result\nnote\n"
    with captured(environment) as frame:
        environment.note("note", once=True)
    assert frame.getvalue() == b"note\n"
