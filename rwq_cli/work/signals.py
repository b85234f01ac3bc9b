"""What signals ask of a worker."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from math import inf
from time import monotonic
from types import FrameType
from typing import Any


class Stage(IntEnum):
    """How far a worker is on its way to its end."""

    WORKING = 0
    STOPPING = 1  # takes no more, finishes what runs
    ENDING = 2  # has sent SIGTERM to what runs, and releases its items
    KILLING = 3  # has sent SIGKILL


class Requests:
    """What the signals so far ask for.

    Attributes:
        stage: The stage of the worker; `advance` moves it on.
        is_paused: Whether to take nothing for now.
        drains: Whether to end when the queues are empty.
    """

    def __init__(self) -> None:
        self.stage = Stage.WORKING
        self.is_paused = False
        self.drains = False
        self._received_s: dict[int, float] = {}

    def receive(self, number: int) -> None:
        """Follow a signal that has arrived."""
        self._received_s[number] = monotonic()
        if number in (signal.SIGINT, signal.SIGTERM):
            self.advance(Stage(min(self.stage + 1, Stage.KILLING)))
        elif number == signal.SIGUSR1:
            self.is_paused = True
        elif number == signal.SIGUSR2:
            self.is_paused = False
        elif number == signal.SIGHUP:
            self.drains = True

    def has_received(self, number: int, since_s: float) -> bool:
        """Whether a signal has arrived since a time of the monotonic clock."""
        return self._received_s.get(number, -inf) >= since_s

    def advance(self, stage: Stage) -> None:
        """Go on to a later stage."""
        self.stage = max(self.stage, stage)


_REQUESTS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTSTP, signal.SIGCONT),
)
# A byte of the wakeup pipe that is no signal: another thread has something for the loop.
NOTICE = 0


@contextmanager
def all_blocked() -> Iterator[None]:
    """Start threads in this block: no signal, such as that of each child, will interrupt them."""
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


class SignalPipe:
    """Turns signals into bytes of a pipe, which the loop waits for beside other pipes.

    A signal that the caller ignores stays ignored, as under nohup.
    """

    def __init__(self) -> None:
        self.read_fd, self._write_fd = os.pipe()
        for fd in (self.read_fd, self._write_fd):
            os.set_blocking(fd, False)
        self._old_wakeup_fd = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._old: dict[int, Any] = {}
        for number in (signal.SIGCHLD, *_REQUESTS):
            is_ignored = signal.getsignal(number) is signal.SIG_IGN
            # Without SIGCHLD, no command would ever end.
            if not is_ignored or number == signal.SIGCHLD:
                self._old[number] = signal.signal(number, _note)
        self._old_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, self._old)

    def notify(self) -> None:
        """Wake the loop; from any thread."""
        # If it is full, the loop wakes anyway.
        with suppress(BlockingIOError):
            os.write(self._write_fd, bytes([NOTICE]))

    def read(self) -> Iterable[int]:
        """The signals that have arrived, and notices."""
        try:
            return os.read(self.read_fd, 65536)
        except BlockingIOError:
            return ()

    def close(self) -> None:
        """Restore what was before."""
        signal.set_wakeup_fd(self._old_wakeup_fd)
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._old_mask)
        os.close(self.read_fd)
        os.close(self._write_fd)


def _note(number: int, frame: FrameType | None) -> None:
    """The signal's number is in the pipe already."""
