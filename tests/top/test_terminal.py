"""`rwq top` on a terminal of its own: whatever ends it, the terminal is as it was."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.all_commands import all_commands
from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq
from tests.servers import PrivateServer

pytest.importorskip("textual")
from tests.terminal import Terminal

EXAMPLES = next(each.manual.examples for each in all_commands() if each.path == "top")
TOP = (sys.executable, "-m", "rwq_cli", "top")
# What is switched on, with what switches it off again.
_MODES = {b"\x1b[?%dh" % mode: b"\x1b[?%dl" % mode for mode in (1049, 2004, 1004, 1000, 1003)}
_MODES |= {b"\x1b[?25l": b"\x1b[?25h", b"\x1b[?7l": b"\x1b[?7h", b"\x1b[>25u": b"\x1b[<u"}


def is_as_before(terminal: Terminal) -> bool:
    """True if every mode that was switched on is off again."""
    written = terminal.written
    are_off = (written.rfind(off) >= written.rfind(on) for on, off in _MODES.items())
    return terminal.modes == terminal.before and all(are_off)


@pytest.fixture
def on_terminal(rwq: Rwq, foreign: Foreign) -> Iterator[Callable[..., Terminal]]:
    """Starts `rwq top` on a terminal, with a queue that has one item."""
    foreign.waiting(b"a")
    started: list[Terminal] = []

    def start(*words: str, program: str = "", **variables: str) -> Terminal:
        command = [sys.executable, "-c", program] if program else [*TOP, *words]
        started.append(Terminal(command, {**rwq.variables, **variables}, columns=200))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


def until_drawn(terminal: Terminal) -> None:
    """Wait until the queue is shown."""
    terminal.until(lambda: b"jobs" in terminal.written and b"\x1b[?1004h" in terminal.written)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (b"\x03", 130),
        (signal.SIGINT, 130),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
    ],
)
def test_a_key_or_signal_leaves_the_terminal_as_it_was(
    on_terminal: Callable[..., Terminal], end: bytes | signal.Signals, code: int
) -> None:
    terminal = on_terminal()
    until_drawn(terminal)
    assert terminal.modes != terminal.before
    if isinstance(end, bytes):
        terminal.child.send(end)
    else:
        terminal.process.send_signal(end)
    assert terminal.end() == code
    assert is_as_before(terminal)
    assert b"Traceback" not in terminal.written


def test_a_byte_that_is_not_utf_8_is_no_key(on_terminal: Callable[..., Terminal]) -> None:
    terminal = on_terminal()
    until_drawn(terminal)
    terminal.child.send(b"\xff\xe9")
    # What is read together with such a byte is dropped, too.
    sleep(0.5)
    terminal.child.send(b"q")
    assert terminal.end() == 0
    assert is_as_before(terminal)


@pytest.mark.ci
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_works(on_terminal: Callable[..., Terminal], example: str) -> None:
    terminal = on_terminal(*shlex.split(example)[2:])
    terminal.until_shown(b"leave")
    terminal.child.send(b"q")
    assert terminal.end() == 0
    assert is_as_before(terminal)


_FAILING = """
import sys
from textual.drivers.linux_driver import LinuxDriver
from rwq_cli.top.watch import QueueWatch
from rwq_cli.top import screens, session

calls = []
def fail(self, *args):
    password = "se" + "cret"
    calls.append(args)
    if len(calls) > {succeed}:
        raise RuntimeError("lost its way")
    return before(self, *args)

session.SCAN_EVERY_S = 0.1
before = {function}
{function} = fail
sys.argv = ["rwq", "top", "--every", "100ms"]
from rwq_cli.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("function", "succeed"),
    [
        ("screens.QueuesScreen.draw", 0),
        ("QueueWatch.tick", 1),
        ("session.Session._names", 1),
        ("LinuxDriver.run_input_thread", 0),
    ],
)
def test_a_bug_in_any_thread_restores_the_terminal(
    on_terminal: Callable[..., Terminal], function: str, succeed: int
) -> None:
    """And not Textual's traceback, which shows the values of variables."""
    terminal = on_terminal(program=_FAILING.format(function=function, succeed=succeed))
    assert terminal.end() == 70
    assert is_as_before(terminal)
    after = terminal.written.rpartition(b"\x1b[?1004l")[2]
    assert b"rwq: error: this is a bug in rwq: RuntimeError: lost its way" in after
    assert after.count(b"\n") == 1
    assert b"secret" not in terminal.written


# Stopped while a call is under way, which seems to take as long as the stop.
_STOPPED = """
import os, signal, sys, threading, time
from rwq_cli.top.watch import QueueWatch

ticks = []
def stop(self):
    ticks.append(self)
    overview = tick(self)
    if len(ticks) == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
        while not resumed:
            time.sleep(0.01)
        return overview._replace(call_s=62.0)
    if len(ticks) == 4:
        readers = [thread.name for thread in threading.enumerate()].count("textual-input")
        sys.__stdout__.write(f"read twice; {readers} reads keys")
        sys.__stdout__.flush()
    return overview

resumed = []
def resume(self):
    resume_session(self)
    resumed.append(self)

from rwq_cli.top.session import Session
resume_session, Session.resume = Session.resume, resume
tick, QueueWatch.tick = QueueWatch.tick, stop
sys.argv = ["rwq", "top", "--every", "100ms"]
from rwq_cli.__main__ import main
main()
"""


def test_a_stop_is_no_slow_server(on_terminal: Callable[..., Terminal]) -> None:
    terminal = on_terminal(program=_STOPPED)
    stat = Path(f"/proc/{terminal.process.pid}/stat")
    terminal.until(lambda: stat.read_text().rpartition(") ")[2].startswith("T"))
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until_shown(b"read twice; 1 reads keys")
    assert b"1m2s" not in terminal.written
    terminal.child.send(b"q")
    assert terminal.end() == 0
    assert is_as_before(terminal)


_STUCK = """
import sys, time
from rwq_cli.top import screens

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


@pytest.mark.parametrize("signals", [pytest.param(1, marks=pytest.mark.ci), 2])
def test_what_hangs_ends_in_time_or_by_a_second_signal(
    on_terminal: Callable[..., Terminal], signals: int
) -> None:
    terminal = on_terminal(program=_STUCK)
    until_drawn(terminal)
    terminal.child.send(b"/x")
    terminal.until_shown(b"stuck")
    began_s = time.monotonic()
    terminal.process.send_signal(signal.SIGTERM)
    # A signal that is still pending and its like are one.
    while signals > 1 and terminal.process.poll() is None:
        time.sleep(0.1)
        terminal.process.send_signal(signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    assert (time.monotonic() - began_s < 2) == (signals > 1)
    # Another process sees to that, once this one has ended.
    terminal.until(lambda: is_as_before(terminal))


def test_it_ends_with_its_terminal(on_terminal: Callable[..., Terminal]) -> None:
    """As if the window was closed."""
    terminal = on_terminal()
    until_drawn(terminal)
    os.close(terminal.child.child_fd)
    terminal.process.wait(TIMEOUT_S)
    assert terminal.process.returncode in (-signal.SIGHUP, 128 + signal.SIGHUP)


def test_a_command_on_the_terminal_asks_its_question(
    on_terminal: Callable[..., Terminal], foreign: Foreign
) -> None:
    foreign.leased(b"mine", holder=b"worker-7")
    terminal = on_terminal("--every", "100ms")
    until_drawn(terminal)
    # Into the queue, whose first lease is that of the item.
    for keys, text in ((b"\r", b"worker-7"), (b"r", b"Enter runs it")):
        terminal.child.send(keys)
        terminal.until_shown(text)
    terminal.child.send(b"\r")
    terminal.until_shown(b"rwq will release 1 item of jobs (1 of them leased)")
    assert terminal.modes == terminal.before
    terminal.until_shown(b"Continue? [y/N] ")
    terminal.child.send(b"y\n")
    terminal.until_shown(b"released 1")
    terminal.until_shown(b"Enter returns to rwq top.")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"mine", b"a"]
    terminal.child.send(b"\n")
    terminal.until_shown(b"LEASES")
    terminal.child.send(b"q")
    assert terminal.end() == 0, terminal.written[-300:]
    assert is_as_before(terminal)


def test_a_server_that_comes_back_is_waited_for(
    on_terminal: Callable[..., Terminal], start_server: StartServer
) -> None:
    server: PrivateServer = start_server()
    with server.client() as raw:
        raw.lpush("jobs:queue", "a", "b", "c")
    terminal = on_terminal("--every", "100ms", RWQ_URL=server.url)
    until_drawn(terminal)
    server.kill()
    terminal.until_shown(b"trying again: ")
    server.start()
    terminal.until(lambda: b"every 0.1s" in terminal.written.rpartition(b"trying")[2])
    terminal.child.send(b"q")
    assert terminal.end() == 0, terminal.written[-300:]
    assert is_as_before(terminal)
