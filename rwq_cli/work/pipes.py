"""The pipes of a command: its data in, its output out, never more of it in memory than is kept."""

import os
from collections.abc import Callable
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector

from rwq_cli.core.items.schedule import REASON_BYTES_MAX

# What a result holds at most.
RESULT_BYTES_MAX = 1 << 20
# How much of the end of stderr is kept: with how the command failed, it is the reason.
TAIL_BYTES = REASON_BYTES_MAX - 64
_READ_BYTES = 1 << 16
# A new pipe takes this much at once, even that of a user who has too many.
_EMPTY_PIPE_BYTES = 4096
# What is read at once of a command that has ended: a pipe holds no more, and what it has started
# may go on writing.
_DRAIN_BYTES_MAX = 1 << 20

Sink = Callable[[bytes], object]


class Head:
    """Keeps the first bytes of a stream, `RESULT_BYTES_MAX` at most.

    Attributes:
        is_cut: Whether there were more.
    """

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


class Tail:
    """Keeps the last bytes of a stream, and passes all of it on.

    Args:
        sink: Takes the stream.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept = b""

    def __call__(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-TAIL_BYTES:]
        self._sink(data)

    @property
    def value(self) -> bytes:
        """The bytes, from the first whole character on."""
        kept = self._kept.strip()
        continued = next((at for at, byte in enumerate(kept[:4]) if byte & 0xC0 != 0x80), 0)
        return kept[continued:]


class Reader:
    """Reads a pipe as its writer fills it.

    Args:
        selector: Calls `ready` when there is something to read, after `watch`.
        sink: Takes what was read.

    Attributes:
        write_fd: The end of the writer; closed by `started`.
        is_open: Whether somebody may still write.
    """

    def __init__(self, selector: BaseSelector, sink: Sink) -> None:
        self._selector = selector
        self._sink = sink
        self._fd, self.write_fd = os.pipe()
        self.is_open = True
        self._is_watched = False

    def started(self) -> None:
        """Close the end of the writer, which has been started."""
        os.close(self.write_fd)
        os.set_blocking(self._fd, False)

    def watch(self) -> None:
        """Read from now on, as it is filled."""
        if self.is_open and not self._is_watched:
            self._is_watched = True
            self._selector.register(self._fd, EVENT_READ, self.ready)

    def cancel(self) -> None:
        """Close both ends: the writer could not be started."""
        os.close(self.write_fd)
        os.close(self._fd)

    def ready(self) -> int:
        """Read once; returns how many bytes."""
        if not self.is_open:
            return 0
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return 0
        if data:
            self._sink(data)
        else:
            self.close()
        return len(data)

    def drain(self) -> None:
        """Read what there is: the writer has ended.

        What it has started may keep the pipe open; it is still read then, so that its writes do
        not fail.
        """
        left = _DRAIN_BYTES_MAX
        while self.is_open and left > 0 and (count := self.ready()):
            left -= count
        self.watch()

    def close(self) -> None:
        """Read no more."""
        if self.is_open:
            self.is_open = False
            if self._is_watched:
                self._selector.unregister(self._fd)
            os.close(self._fd)


class Feeder:
    """Writes data to a pipe as its reader empties it.

    Args:
        selector: Calls `ready` when there is room.
        data: The data.

    Attributes:
        read_fd: The end of the reader; closed by `started`.
    """

    def __init__(self, selector: BaseSelector, data: bytes) -> None:
        self._selector = selector
        self._left = memoryview(data)
        self.read_fd, self._fd = os.pipe()
        self._is_open = True
        # Most data fits into the pipe, and nothing has to be written later.
        if len(data) > _EMPTY_PIPE_BYTES:
            os.set_blocking(self._fd, False)
        self._write()

    def started(self) -> None:
        """Write the rest from now on: the reader has been started."""
        os.close(self.read_fd)
        if self._is_open:
            self._selector.register(self._fd, EVENT_WRITE, self.ready)

    def cancel(self) -> None:
        """Close both ends: the reader could not be started."""
        os.close(self.read_fd)
        if self._is_open:
            os.close(self._fd)

    def ready(self) -> None:
        """Write what there is room for."""
        if self._is_open:
            self._write(self._selector.unregister)

    def _write(self, closing: Callable[[int], object] = lambda _fd: None) -> None:
        try:
            self._left = self._left[os.write(self._fd, self._left) :]
        except BlockingIOError:
            return
        except OSError:
            # The reader has closed it: it needs no more.
            self._left = self._left[:0]
        if not self._left:
            self._is_open = False
            closing(self._fd)
            os.close(self._fd)

    def close(self) -> None:
        """Write no more: the reader has ended."""
        if self._is_open:
            self._is_open = False
            with suppress(KeyError):
                self._selector.unregister(self._fd)
            os.close(self._fd)


class WholeLines:
    """Passes whole lines on, so that the output of commands that run at once is not mixed.

    Args:
        sink: Takes the lines.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest += data
            # A line without an end must not fill the memory.
            if len(self._rest) >= _READ_BYTES:
                self.flush()
            return
        self._sink(self._rest + data[:end])
        self._rest = data[end:]

    def flush(self, end: bytes = b"") -> None:
        """Pass on the rest, and this end of its line: the stream has ended."""
        if self._rest:
            rest, self._rest = self._rest, b""
            self._sink(rest + end)
