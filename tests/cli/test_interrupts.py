"""When Ctrl-C ends the process at once, and when it raises."""

import signal
from collections.abc import Iterator

import pytest

from rwq_cli.cli.interrupts import _listeners, end_at_once, end_in_order, listen
from rwq_cli.core.server.connection import CancelToken


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    _listeners.clear()
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_process_until_work_begins() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_at_once()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    end_in_order()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_asks_work_that_polls_first() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_in_order()
    stop = CancelToken()
    listen(stop)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    stop.is_polled = True
    signal.raise_signal(signal.SIGINT)
    assert stop.asked
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_handlers_of_others_stay() -> None:
    """A background job ignores Ctrl-C; a program that uses us has a handler of its own."""

    def own(_number: int, _frame: object) -> None:
        return

    for handler in (signal.SIG_IGN, own):
        signal.signal(signal.SIGINT, handler)
        end_at_once()
        end_in_order()
        assert signal.getsignal(signal.SIGINT) is handler
