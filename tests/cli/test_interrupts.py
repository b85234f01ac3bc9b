"""When Ctrl-C ends the process at once, and when it raises."""

import signal
import sys
from collections.abc import Iterator
from subprocess import run

import pytest

from rwq_cli.cli.interrupts import _cancellables, cancel_on_interrupt, raise_on_interrupt
from rwq_cli.core.server.connection import CancelToken


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    _cancellables.clear()
    signal.signal(signal.SIGINT, before)


_AT_AN_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name.startswith("rwq_cli.") and name != "rwq_cli.__main__":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
{ignored}
import rwq_cli.__main__ as rwq
sys.argv = ["rwq", "--help"]
rwq.main()
"""


def test_ctrl_c_ends_the_process_at_its_first_import() -> None:
    result = run((sys.executable, "-c", _AT_AN_IMPORT.format(ignored="")), capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, b"", b"")


def test_ctrl_c_is_ignored_in_a_background_job() -> None:
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    result = run((sys.executable, "-c", _AT_AN_IMPORT.format(ignored=ignored)), capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")


def test_ctrl_c_raises_when_work_begins() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise_on_interrupt()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_asks_work_that_polls_first() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise_on_interrupt()
    stop = CancelToken()
    cancel_on_interrupt(stop)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    stop.is_polled = True
    signal.raise_signal(signal.SIGINT)
    assert stop.requested
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_handlers_of_others_stay() -> None:
    """A background job ignores Ctrl-C; a program that uses us has a handler of its own."""

    def own(_number: int, _frame: object) -> None:
        return

    for handler in (signal.SIG_IGN, own):
        signal.signal(signal.SIGINT, handler)
        raise_on_interrupt()
        assert signal.getsignal(signal.SIGINT) is handler
