"""Passing on what commands print, at the pace of whoever reads it."""

from collections import deque
from collections.abc import Callable
from threading import Condition

# How long a write may take before its reader is taken for one that stalls.
_STALL_S = 0.1


class Passage:
    """Writes in a thread of its own, so that a reader who stalls holds up nothing else.

    One writes all, in order: stdout and stderr may be the same pipe, and lines are not to be mixed.
    """

    def __init__(self, on_written: Callable[[], object]) -> None:
        self._on_written = on_written
        self._turn = Condition()
        self._pending: deque[tuple[Callable[[bytes], object], bytes]] = deque()
        # How many bytes are not written.
        self.unwritten = 0
        # Whether what is given is kept for now. Nothing more is to be read until `on_written` is
        # called.
        self.is_stalled = False

    def give(self, write: Callable[[bytes], object], data: bytes) -> None:
        """It is written when this returns, unless the reader stalls."""
        with self._turn:
            self._pending.append((write, data))
            self.unwritten += len(data)
            self._turn.notify_all()
            if not self.is_stalled:
                self.is_stalled = not self._turn.wait_for(lambda: not self.unwritten, _STALL_S)

    def serve(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._pending)
                write, data = self._pending.popleft()
            write(data)
            with self._turn:
                self.unwritten -= len(data)
                if self.unwritten:
                    continue
                was_stalled, self.is_stalled = self.is_stalled, False
                self._turn.notify_all()
            if was_stalled:
                self._on_written()
