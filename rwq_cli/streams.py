"""One reader and one writer for every stream of the program.

All that is written arrives, and all that there is is read, or an error says so: if a pipe does not
block, if its other end is slow, if the process is stopped meanwhile. Python's own streams lose data
then: an unbuffered write takes a part, and a read that would block returns nothing.
"""

import io
import os
import select
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from rwq_cli.core.errors import InvalidArgument

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# What other systems write before text.
MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

_BUFFER_BYTES = 1 << 16


def wait_for(descriptor: int, event: int) -> None:
    """Wait until a stream can be read (`select.POLLIN`) or written, or its other end is gone."""
    poller = select.poll()
    poller.register(descriptor, event)
    poller.poll()


def is_ready(descriptor: int) -> bool:
    """True if a read would not wait."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


class Writer(io.BufferedWriter):
    """Writes to an open file all that it is given, or raises an `OSError`.

    What several threads write does not mix. The accounts of what was written are the C code's: no
    signal comes between.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "w", closefd=False), _BUFFER_BYTES)
        self._turn = RLock()

    def write(self, data: "ReadableBuffer", /) -> int:
        left = memoryview(data)
        size = left.nbytes
        with self._turn:
            while True:
                try:
                    super().write(left)
                    return size
                except BlockingIOError as full:
                    left = left[full.characters_written :]
                    wait_for(self.fileno(), select.POLLOUT)

    def flush(self) -> None:
        with self._turn:
            while True:
                try:
                    return super().flush()
                except BlockingIOError:
                    wait_for(self.fileno(), select.POLLOUT)


def write_all(descriptor: int, data: bytes) -> None:
    """Write without a buffer, as to a log that several processes share.

    Raises:
        OSError: Not all could be written; its `characters_written` says how much was.
    """
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            wait_for(descriptor, select.POLLOUT)
        except OSError as error:
            error.characters_written = len(data) - len(left)  # type: ignore[attr-defined]
            raise


def unmarked(text: bytes, name: str) -> bytes:
    """Text without a byte order mark before it.

    Raises:
        InvalidArgument: It is UTF-16.
    """
    if text.startswith(UTF16_MARKS) and b"\0" in text:
        raise InvalidArgument(
            f"{name} is UTF-16, not UTF-8", "convert it: iconv -f UTF-16 -t UTF-8"
        )
    return text.removeprefix(MARK)


class Reader(io.FileIO):
    """Reads a file; nothing is its end, and never a pause."""

    def __init__(self, file: int | str | Path) -> None:
        super().__init__(file, "r", closefd=not isinstance(file, int))

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_BUFFER_BYTES), b""))
        while (piece := super().read(size)) is None:
            wait_for(self.fileno(), select.POLLIN)
        return piece

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while (size := super().readinto(buffer)) is None:
            wait_for(self.fileno(), select.POLLIN)
        return size
