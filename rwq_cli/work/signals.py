"""Signals as events of a thread: one that arrives twice at once is two, whatever the others do."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

_REQUESTS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    signal.SIGTSTP,
)


@contextmanager
def handled_signals(handle: Callable[[int], object]) -> Iterator[None]:
    """Have signals handled in the block, by a thread; those that are ignored stay so (nohup)."""
    before = {number: signal.getsignal(number) for number in _REQUESTS}
    handled = [number for number, old in before.items() if old is not signal.SIG_IGN]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def read() -> None:
        with open(reader, "rb", buffering=0) as arrived:
            while numbers := arrived.read(64):
                for number in numbers:
                    handle(number)

    Thread(target=read, name="rwq-signals", daemon=True).start()
    waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in handled:
        # The number is in the pipe already.
        signal.signal(number, lambda *_: None)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    try:
        yield
    finally:
        signal.set_wakeup_fd(waker)
        for number in handled:
            signal.signal(number, before[number])
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writer)
