"""One reader and one writer for every stream of the program.

Everything is written, and everything is read, or an error says so: even if a pipe is non-blocking,
its other end is slow, or the process is stopped meanwhile. Python's own streams lose data then: an
unbuffered write may be partial, and a read that would block returns nothing.
"""

import io
import os
import select
from pathlib import Path
from threading import RLock
from typing import Any

from rwq_cli.core.errors import InvalidArgument, RwqError

# The byte order mark that other systems write before text.
MARK = b"\xef\xbb\xbf"
_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# The longest.
_MARK_BYTES = 4

_BUFFER_BYTES = 1 << 16


def wait_for(descriptor: int, event: int, within_ms: int | None = None) -> bool:
    """Wait until a stream can be read (`select.POLLIN`) or written, or its other end is gone."""
    poller = select.poll()
    poller.register(descriptor, event)
    return bool(poller.poll(within_ms))


class Writer(io.BufferedWriter):
    """Writes all that it is given to an open file, or raises an `OSError`."""

    # Writes of several threads do not mix. The C code keeps track of what was written, so that no
    # signal can come in between.
    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "w", closefd=False), _BUFFER_BYTES)
        self._turn = RLock()

    def write(self, data: Any, /) -> int:
        rest = memoryview(data)
        size = rest.nbytes
        with self._turn:
            while True:
                try:
                    super().write(rest)
                    return size
                except BlockingIOError as full:
                    rest = rest[full.characters_written :]
                    wait_for(self.fileno(), select.POLLOUT)

    def flush(self) -> None:
        with self._turn:
            while True:
                try:
                    return super().flush()
                except BlockingIOError:
                    wait_for(self.fileno(), select.POLLOUT)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it without a buffer, as to a log that several processes share."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            wait_for(descriptor, select.POLLOUT)


def foreign_encoding(text: bytes) -> str | None:
    """Return the encoding of text with the mark of UTF-16 or UTF-32; None for any other."""
    # Without a NUL, two bytes that look like a mark are data.
    marks = _MARKS if b"\0" in text else {}
    return next((name for mark, name in marks.items() if text.startswith(mark)), None)


def may_be_foreign(start: bytes) -> bool:
    """Return True if more bytes are needed to know the encoding of text that begins like this."""
    if len(start) >= _MARK_BYTES or b"\n" in start:
        return False
    is_marked = any(start.startswith(mark) for mark in _MARKS)
    return is_marked or any(mark.startswith(start) for mark in (MARK, *_MARKS))


def how_to_convert(encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8"


def unmarked(text: bytes, name: str, kind: type[RwqError] = InvalidArgument) -> bytes:
    if (encoding := foreign_encoding(text)) is not None:
        raise kind(f"{name} is {encoding}, not UTF-8", f"convert it: {how_to_convert(encoding)}")
    return text.removeprefix(MARK)


class Reader(io.FileIO):
    """Reads a file; an empty read is always its end, never a pause."""

    def __init__(self, file: int | str | Path) -> None:
        super().__init__(file, "r", closefd=not isinstance(file, int))

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_BUFFER_BYTES), b""))
        while (piece := super().read(size)) is None:
            wait_for(self.fileno(), select.POLLIN)
        return piece
