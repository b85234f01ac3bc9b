"""The output of commands: read as it comes, passed on in whole lines, never more of it kept."""

import os
from collections.abc import Callable
from selectors import EVENT_READ, DefaultSelector
from threading import Lock, Thread
from typing import NamedTuple

from rwq_cli.core.items.schedule import REASON_BYTES_MAX

# What a result holds at most.
RESULT_BYTES_MAX = 1 << 20
# How much of the end of stderr is kept: with how the command failed, it is the reason.
TAIL_BYTES = REASON_BYTES_MAX - 64
_READ_BYTES = 1 << 16

Sink = Callable[[bytes], object]


class Outputs(NamedTuple):
    """Where the output of commands goes; without `stdout`, it is kept as the result."""

    stdout: Sink | None
    stderr: Sink


class Head:
    """Keeps the first bytes of a stream, `RESULT_BYTES_MAX` at most; `is_cut`: there were more."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.is_cut = False

    def __call__(self, data: bytes) -> None:
        room = RESULT_BYTES_MAX - len(self._kept)
        self._kept += data[:room]
        self.is_cut = self.is_cut or len(data) > room

    @property
    def value(self) -> bytes:
        """The bytes."""
        return bytes(self._kept)


class WholeLines:
    """Passes whole lines on, so that the output of commands that run at once is not mixed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rest = b""
        self._tail = b""

    def __call__(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        end = data.rfind(b"\n") + 1
        if end:
            self._sink(self._rest + data[:end])
            self._rest = data[end:]
            return
        self._rest += data
        # A line without an end must not fill the memory.
        if len(self._rest) >= _READ_BYTES:
            self.flush()

    def flush(self, end: bytes = b"") -> None:
        """Pass on the rest, and this end of its line: the stream has ended."""
        if self._rest:
            rest, self._rest = self._rest, b""
            self._sink(rest + end)

    @property
    def tail(self) -> bytes:
        """The last bytes of the stream, from the first whole character on."""
        kept = self._tail.strip()
        continued = next((at for at, byte in enumerate(kept[:4]) if byte & 0xC0 != 0x80), 0)
        return kept[continued:]


class Pipe:
    """A pipe that a command writes to; `write_fd` is its end until `started`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.fd, self.write_fd = os.pipe()
        self.is_open = True

    def started(self) -> None:
        """Close the end of the writer, which has been started."""
        os.close(self.write_fd)

    def read(self) -> int:
        """Read what there is, which must be something; returns how many bytes, 0 at the end."""
        data = os.read(self.fd, _READ_BYTES)
        if data:
            self._sink(data)
        else:
            self.close()
        return len(data)

    def close(self) -> None:
        """Read no more."""
        if self.is_open:
            self.is_open = False
            os.close(self.fd)


class LeftoverReader:
    """Reads the pipes that commands have left open by what they have started, in a thread.

    Their writes must not fail because the command has ended.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._selector: DefaultSelector | None = None

    def take(self, pipe: Pipe) -> None:
        """Read this pipe from now on."""
        with self._lock:
            if self._selector is None:
                self._selector = DefaultSelector()
                Thread(target=self._run, args=(self._selector,), daemon=True).start()
            self._selector.register(pipe.fd, EVENT_READ, pipe)

    def _run(self, selector: DefaultSelector) -> None:
        while True:
            # A pipe that is registered meanwhile is read a moment later.
            for key, _ in selector.select(0.2):
                if not key.data.read():
                    with self._lock:
                        selector.unregister(key.fd)
