"""Progress: only on a terminal, only for work over a second, and gone when done."""

import io
import re

import pytest

from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.settings import Settings
from rwq_cli.environment import Environment
from rwq_cli.output.progress import TerminalProgress
from tests.conftest import Foreign
from tests.driver import Rwq
from tests.servers import PrivateServer

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """A meter on a terminal that is only bytes, with a clock that stands."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.stderr = io.BytesIO()
        self.environment = Environment({}, io.BytesIO(), io.BytesIO(), self.stderr)
        self.progress = TerminalProgress(self.environment, lambda: self.now_s)

    def said(self) -> str:
        """The last line that was drawn, without its bar."""
        text = ESCAPE.sub("", self.stderr.getvalue().decode())
        return re.split(r"[\r\n]", text.rstrip("\r\n"))[-1].lstrip("━╸╺ ").rstrip()


@pytest.fixture
def screen() -> Screen:
    return Screen()


def test_nothing_is_drawn_in_the_first_second(screen: Screen) -> None:
    screen.progress.begin("adding")
    screen.now_s += 0.99
    screen.progress.advance(1000)
    screen.progress.end()
    assert screen.stderr.getvalue() == b""


def test_the_line_has_items_rate_and_time_left(screen: Screen) -> None:
    screen.progress.begin("completing", 10_000)
    screen.now_s += 2
    screen.progress.advance(2500)
    assert screen.said() == "completing 2,500 of 10,000, 1,250/s, 6s left"
    assert screen.stderr.getvalue().decode().count("━") == 5, "of 20"
    screen.now_s += 2
    screen.progress.advance(5000)
    assert screen.said() == "completing 7,500 of 10,000, 1,875/s, 1s left"
    screen.progress.end()


def test_a_hidden_line_returns_an_ended_one_not(screen: Screen) -> None:
    screen.progress.begin("adding", 100)
    screen.now_s += 2
    screen.progress.advance(1)
    for is_shown in (True, False):
        with screen.progress.hidden() as was_shown:
            assert was_shown == is_shown
            assert screen.environment.note_above is None
        screen.progress.hide()
    screen.now_s += 1
    screen.progress.advance(1)
    assert screen.said().startswith("adding 2 of 100")
    screen.progress.end()
    drawn = screen.stderr.getvalue()
    screen.now_s += 1
    screen.progress.advance(1)
    assert screen.stderr.getvalue() == drawn
    # The last thing is to erase the line, and the cursor was never hidden.
    assert drawn.rstrip().endswith(b"\x1b[2K")
    assert b"\x1b[?25l" not in drawn


def test_a_long_clean_shows_progress_on_a_terminal(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a", b"b")
    code, seen = rwq.on_terminal("clean", "light", "--grace", "1.1")
    assert code == 0
    assert b"repairing 0 of 2" in seen
    assert ESCAPE.sub("", seen.decode()).splitlines()[-1] == "returned 2"


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_run_has_no_progress_line(server: PrivateServer, quiet: bool) -> None:
    environment = Environment({}, io.BytesIO(), io.BytesIO(), io.BytesIO())
    environment.stderr_is_terminal, environment.stdout_is_pipe = True, False
    settings = Settings(environment, {"url": server.url, "quiet": quiet})
    open_connection(settings)
    assert (settings.progress is None) == quiet
