"""Signals as events of a thread: one that arrives twice at once is two, whatever the others do."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock, Thread

_REQUESTS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    signal.SIGTSTP,
)


@contextmanager
def handled_signals(handle: Callable[[int], object]) -> Iterator[Callable[[], object]]:
    """Have signals handled in the block, by a thread; those that are ignored stay so (nohup).

    The block gets a function that handles what has arrived by now, for other threads.
    """
    before = {number: signal.getsignal(number) for number in _REQUESTS}
    handled = [number for number, old in before.items() if old is not signal.SIG_IGN]
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(fd, False)
    # In their order; handling one may end in another look.
    turn = RLock()

    def look() -> bool:
        """Handle what there is; returns whether there may be more."""
        with turn, suppress(BlockingIOError):
            while number := os.read(reader, 1):
                handle(number[0])
            return False
        return True

    def wait() -> None:
        poller = select.poll()
        poller.register(reader, select.POLLIN)
        while look():
            poller.poll()
        os.close(reader)

    Thread(target=wait, name="rwq-signals", daemon=True).start()
    waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in handled:
        # The number is in the pipe already.
        signal.signal(number, lambda *_: None)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    try:
        yield look
    finally:
        signal.set_wakeup_fd(waker)
        for number in handled:
            signal.signal(number, before[number])
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writer)
