"""`rwq top` on a terminal of its own: whatever ends it, the terminal is as it was."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fcntl import ioctl
from struct import pack
from typing import Any

import pytest

from rwq_cli.cli.app import all_commands
from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, state_of
from tests.servers import PrivateServer

pytest.importorskip("textual")

EXAMPLES = next(each.manual.examples for each in all_commands() if each.path == "top")

# What is switched on, with what switches it off again.
_MODES = {b"\x1b[?%dh" % mode: b"\x1b[?%dl" % mode for mode in (1049, 2004, 1004, 1000, 1003)}
_MODES |= {b"\x1b[?25l": b"\x1b[?25h", b"\x1b[?7l": b"\x1b[?7h", b"\x1b[>25u": b"\x1b[<u"}


class Terminal:
    """A terminal, and a program on it.

    Args:
        command: The program.
        variables: Its environment variables.
        columns: The terminal's width.
    """

    def __init__(self, command: list[str], variables: dict[str, str], columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, pack("HHHH", 24, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.seen = b""

        def own_terminal() -> None:
            os.setsid()
            ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command, env=variables, stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal
        )
        self._slave = slave

    def read(self, seconds: float = 0.05) -> None:
        """Read what was written, waiting at most this long."""
        while self.master >= 0 and select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return

    def until(self, condition: Callable[[], Any]) -> None:
        """Read until something is so."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"it waits; the terminal shows {self.seen!r}"
            self.read()

    def until_shown(self, text: bytes) -> None:
        """Read until a text is shown anew."""
        self.until(lambda: text in self.seen)
        self.seen = self.seen.partition(text)[2]

    def type(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self.master, keys)

    def end(self) -> int:
        """Wait for the end of the program; its exit code, negative for a signal."""
        self.until(lambda: self.process.poll() is not None)
        self.read()
        return self.process.returncode

    def assert_as_before(self, written: bytes) -> None:
        """Fail unless every mode that was switched on is off again."""
        assert termios.tcgetattr(self._slave) == self.before
        for on, off in _MODES.items():
            assert written.rfind(off) >= written.rfind(on), on

    def is_as_before(self, written: bytes) -> bool:
        """Whether every mode that was switched on is off again."""
        try:
            self.assert_as_before(written)
        except AssertionError:
            return False
        return True

    def until_unused(self) -> list[Any]:
        """Wait until no process has the terminal open, and return its modes."""
        os.close(self._slave)
        self._slave = -1
        while True:
            assert select.select([self.master], [], [], TIMEOUT_S)[0], "a process has it open"
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return termios.tcgetattr(self.master)

    def close(self) -> None:
        """End the program, and close the terminal."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self.master, self._slave):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def on_terminal(rwq: Rwq, foreign: Foreign) -> Iterator[Callable[..., Terminal]]:
    """Starts `rwq top` on a terminal, with a queue that has one item."""
    foreign.waiting(b"a")
    started: list[Terminal] = []

    def start(*words: str, program: str = "", **variables: str) -> Terminal:
        command = [sys.executable, "-m", "rwq_cli", "top", *words]
        if program:
            command = [sys.executable, "-c", program]
        started.append(Terminal(command, {**rwq.variables, **variables}))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


def shown(terminal: Terminal) -> bytes:
    """Wait until the queue is shown; what was written until then."""
    terminal.until(lambda: b"jobs" in terminal.seen and b"\x1b[?1004h" in terminal.seen)
    return terminal.seen


def stopped(on_terminal: Callable[..., Terminal]) -> Terminal:
    """Start `rwq top`, and stop it by Ctrl-Z, so that others have the terminal."""
    terminal = on_terminal()
    shown(terminal)
    terminal.type(b"\x1a")
    terminal.until(lambda: state_of(terminal.process.pid) == "T")
    terminal.until(lambda: terminal.is_as_before(terminal.seen))
    return terminal


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (b"\x03", 130),
        (signal.SIGINT, 130),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
    ],
)
def test_a_key_or_a_signal_leaves_the_terminal_as_it_was(
    on_terminal: Callable[..., Terminal], end: bytes | signal.Signals, code: int
) -> None:
    terminal = on_terminal()
    shown(terminal)
    assert termios.tcgetattr(terminal._slave) != terminal.before
    if isinstance(end, bytes):
        terminal.type(end)
    else:
        terminal.process.send_signal(end)
    assert terminal.end() == code
    terminal.assert_as_before(terminal.seen)
    assert b"Traceback" not in terminal.seen


class TestKilled:
    """By SIGKILL, which no program can handle."""

    def test_the_terminal_is_as_it_was(self, on_terminal: Callable[..., Terminal]) -> None:
        killed, goes_on = on_terminal(), on_terminal()
        shown(killed)
        shown(goes_on)
        killed.process.kill()
        killed.until(lambda: killed.is_as_before(killed.seen))
        killed.until_unused()
        assert not goes_on.is_as_before(goes_on.seen)
        goes_on.type(b"q")
        assert goes_on.end() == 0
        goes_on.until_unused()

    def test_modes_that_another_program_has_set_stay(
        self, on_terminal: Callable[..., Terminal]
    ) -> None:
        """A shell that edits its command line, and has the terminal before it is restored."""
        terminal = on_terminal()
        shown(terminal)
        terminal.process.send_signal(signal.SIGSTOP)
        edits = termios.tcgetattr(terminal._slave)
        edits[3] |= termios.ISIG
        termios.tcsetattr(terminal._slave, termios.TCSANOW, edits)
        terminal.process.kill()
        terminal.until(lambda: b"\x1b[?1049l" in terminal.seen)
        assert terminal.until_unused() == edits

    def test_a_terminal_that_others_have_meanwhile_is_left_alone(
        self, on_terminal: Callable[..., Terminal]
    ) -> None:
        terminal = stopped(on_terminal)
        terminal.seen = b""
        terminal.process.kill()
        terminal.until_unused()
        assert terminal.seen == b""

    def test_a_program_that_was_continued_has_the_terminal_again(
        self, on_terminal: Callable[..., Terminal]
    ) -> None:
        terminal = stopped(on_terminal)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.seen = b""
        shown(terminal)
        terminal.process.kill()
        terminal.until(lambda: terminal.is_as_before(terminal.seen))
        terminal.until_unused()


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_works(on_terminal: Callable[..., Terminal], example: str) -> None:
    terminal = on_terminal(*shlex.split(example)[2:])
    terminal.until_shown(b"leave")
    terminal.type(b"q")
    assert terminal.end() == 0
    terminal.assert_as_before(terminal.seen)


_FAILING = """
import sys
from rwq_cli.core.inspect.queue_watch import QueueWatch
from rwq_cli.top import screens
ticks = []
def fail(self, room=None):
    password = "se" + "cret"
    ticks.append(room)
    if {place} is screens.QueuesScreen or len(ticks) > 1:
        raise RuntimeError("lost its way")
    return tick(self)
tick = QueueWatch.tick
{place}.{name} = fail
sys.argv = ["rwq", "top", "--every", "100ms"]
from rwq_cli.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("place", "name"), [("screens.QueuesScreen", "draw"), ("QueueWatch", "tick")]
)
def test_a_bug_in_any_thread_is_one_line_and_leaves_the_terminal_as_it_was(
    on_terminal: Callable[..., Terminal], place: str, name: str
) -> None:
    """And not Textual's traceback, which shows the values of variables."""
    terminal = on_terminal(program=_FAILING.format(place=place, name=name))
    assert terminal.end() == 70
    terminal.assert_as_before(terminal.seen)
    after = terminal.seen.rpartition(b"\x1b[?1004l")[2]
    assert b"rwq: error: this is a bug in rwq: RuntimeError: lost its way" in after
    assert after.count(b"\n") == 1
    assert b"secret" not in terminal.seen


_COLLECTING = """
import gc, sys
from rwq_cli.top import screens
draw = screens.QueuesScreen.draw
def tell(self, room):
    draw(self, room)
    self.session.note("the collector is " + ("on" if gc.isenabled() else "off"))
screens.QueuesScreen.draw = tell
sys.argv = ["rwq", "top"]
from rwq_cli.__main__ import main
main()
"""


def test_memory_is_collected_while_it_runs(on_terminal: Callable[..., Terminal]) -> None:
    terminal = on_terminal(program=_COLLECTING)
    terminal.until_shown(b"the collector is ")
    terminal.until(lambda: terminal.seen)
    assert terminal.seen.startswith(b"on")


_STUCK = """
import sys, time
from rwq_cli.top import screens, terminal
terminal._END_WITHIN_S = {patience_s}
draw = screens.QueuesScreen.draw
def stick(self, room):
    draw(self, room)
    if self.filter:
        sys.__stdout__.write("stuck")
        sys.__stdout__.flush()
        while True:
            time.sleep(0.1)
screens.QueuesScreen.draw = stick
sys.argv = ["rwq", "top"]
from rwq_cli.__main__ import main
main()
"""


@pytest.mark.parametrize(("patience_s", "signals"), [(0.1, 1), (TIMEOUT_S, 2)])
def test_what_hangs_ends_after_a_while_or_by_a_second_signal(
    on_terminal: Callable[..., Terminal], patience_s: float, signals: int
) -> None:
    terminal = on_terminal(program=_STUCK.format(patience_s=patience_s))
    written = shown(terminal)
    terminal.type(b"/x")
    terminal.until_shown(b"stuck")
    terminal.process.send_signal(signal.SIGTERM)
    # A signal that is still pending and its like are one.
    while signals > 1 and terminal.process.poll() is None:
        time.sleep(0.1)
        terminal.process.send_signal(signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    terminal.assert_as_before(written + terminal.seen)


def test_it_ends_with_its_terminal(on_terminal: Callable[..., Terminal]) -> None:
    """As if the window was closed."""
    terminal = on_terminal()
    shown(terminal)
    os.close(terminal._slave)
    os.close(terminal.master)
    terminal.master = -1
    terminal.process.wait(TIMEOUT_S)
    assert terminal.process.returncode in (-signal.SIGHUP, 128 + signal.SIGHUP)


def test_a_command_has_the_terminal_and_asks_its_question(
    on_terminal: Callable[..., Terminal], foreign: Foreign
) -> None:
    foreign.leased(b"mine", holder=b"worker-7")
    terminal = on_terminal("--every", "100ms")
    shown(terminal)
    # Into the queue, whose first lease is that of the item.
    terminal.type(b"\r")
    terminal.until_shown(b"worker-7")
    terminal.type(b"r")
    terminal.until_shown(b"Enter runs it")
    terminal.type(b"\r")
    terminal.until_shown(b"rwq will release 1 item of jobs (1 of them leased)")
    assert termios.tcgetattr(terminal._slave) == terminal.before
    terminal.until_shown(b"Continue? [y/N] ")
    terminal.type(b"y\n")
    terminal.until_shown(b"released 1")
    terminal.until_shown(b"Enter returns to rwq top.")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"mine", b"a"]
    terminal.type(b"\n")
    terminal.until_shown(b"LEASES")
    terminal.type(b"q")
    assert terminal.end() == 0, terminal.seen[-300:]
    terminal.assert_as_before(terminal.seen)


@pytest.mark.needs("no-touch")
def test_nothing_from_the_server_controls_the_terminal(
    on_terminal: Callable[..., Terminal], foreign: Foreign
) -> None:
    """Names, IDs, data and reasons: no escape sequence, and no markup."""
    evil = Foreign(foreign.raw, b"e\x1b[2J[red]x[/]")
    evil.leased(b"id\x1b]0;owned\x07[bold]", holder=b"h\x1b[31m")
    foreign.raw.set(b"e\x1b[2J[red]x[/]:item:id\x1b]0;owned\x07[bold]", b"d\x1b[5m\xe2\x80\xae[i]")
    terminal = on_terminal("-q", "e*")
    terminal.until_shown(rb"e\x1b[2J[red]x[/]")
    terminal.type(b"\r")
    terminal.until_shown(rb"id\x1b]0;owned\x07[bold]")
    terminal.until_shown(rb"h\x1b[31m")
    terminal.until_shown(rb"d\x1b[5m\u202e[i]")
    terminal.type(b"q")
    terminal.end()
    for raw in (b"\x1b[2J[red]", b"\x1b]0;", b"h\x1b[31m", b"\x1b[5m", b"\x07"):
        assert raw not in terminal.seen


def test_a_server_that_goes_and_comes_back_is_waited_for(
    rwq: Rwq, start_server: StartServer
) -> None:
    server: PrivateServer = start_server()
    with server.client() as raw:
        raw.lpush("jobs:queue", "a", "b", "c")
    command = [sys.executable, "-m", "rwq_cli", "top", "--every", "100ms"]
    terminal = Terminal(command, {**rwq.variables, "RWQ_URL": server.url}, columns=200)
    try:
        shown(terminal)
        arguments: list[str] = server.process.args  # type: ignore[assignment]
        server.kill()
        terminal.until_shown(b"trying again: ")
        again = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        try:
            terminal.until(
                lambda: re.search(rb"every 0.1s", terminal.seen.rpartition(b"trying")[2])
            )
        finally:
            again.kill()
            again.wait()
        terminal.type(b"q")
        assert terminal.end() == 0, terminal.seen[-300:]
        terminal.assert_as_before(terminal.seen)
    finally:
        terminal.close()
