"""Splitting a stream of bytes into records, without waiting for more than is there.

A reader yields `FLUSH` before it would have to wait, so that a batch that is being filled from a
slow pipe goes to the server now and not when it is full.
"""

import select
from collections.abc import Callable, Iterator
from io import UnsupportedOperation
from typing import BinaryIO

from rwq_cli.core.batches import FLUSH, Flush

_CHUNK_BYTES = 1 << 18


def chunks(stream: BinaryIO, before_waiting: Callable[[], None]) -> Iterator[bytes | Flush]:
    """The bytes of a stream as they come in.

    Args:
        stream: What to read.
        before_waiting: Called before each wait for more, to flush what was written so far.
    """
    try:
        descriptor = stream.fileno()
    except (UnsupportedOperation, AttributeError):
        descriptor = None
    read = getattr(stream, "read1", stream.read)
    while True:
        if descriptor is not None and not _is_ready(descriptor):
            yield FLUSH
            before_waiting()
        chunk = read(_CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def _is_ready(descriptor: int) -> bool:
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):
        return True


def split(
    stream: BinaryIO, separator: bytes, before_waiting: Callable[[], None]
) -> Iterator[list[bytes] | Flush]:
    """The records of a stream that are ended, or at its end may be, by a separator byte.

    Args:
        stream: What to read.
        separator: One byte.
        before_waiting: Called before each wait for more.

    Yields:
        The records that came in together, without their separators, empty ones included; and
        `FLUSH` before each wait.
    """
    # A record that has not ended yet is joined once, so that one of 100 MB costs its length.
    pieces: list[bytes] = []
    for chunk in chunks(stream, before_waiting):
        if isinstance(chunk, Flush):
            yield chunk
            continue
        records = chunk.split(separator)
        last = records.pop()
        if not records:
            pieces.append(last)
            continue
        if pieces:
            records[0] = b"".join((*pieces, records[0]))
        pieces = [last] if last else []
        yield records
    if pieces:
        yield [b"".join(pieces)]


def whole(stream: BinaryIO, before_waiting: Callable[[], None], *, bytes_max: int) -> bytes:
    """All of a stream, which may have no end.

    Args:
        stream: What to read.
        before_waiting: Called before each wait for more.
        bytes_max: Of a longer one no more is read than shows that it is.

    Returns:
        Its bytes; of a longer one the first `bytes_max + 1`.
    """
    pieces: list[bytes] = []
    left = bytes_max + 1
    for chunk in chunks(stream, before_waiting):
        if not isinstance(chunk, Flush):
            pieces.append(chunk[:left])
            left -= len(pieces[-1])
            if not left:
                break
    return b"".join(pieces)
