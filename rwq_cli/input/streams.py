"""Splits a stream of bytes into records.

`FLUSH` is yielded before each wait for more input, so that records from a slow pipe are sent to the
server at once and not only when a batch is full.
"""

import select
from collections.abc import Callable, Iterator
from io import UnsupportedOperation
from typing import BinaryIO

from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason

_CHUNK_BYTES = 1 << 18


def chunks(stream: BinaryIO, before_waiting: Callable[[], None]) -> Iterator[bytes | Flush]:
    """The bytes of a stream, as they arrive.

    Args:
        stream: The stream.
        before_waiting: Called before each wait for more input, to flush the output.

    Raises:
        InvalidArgument: It cannot be read; `open_input` names another file than stdin.
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
        try:
            chunk = read(_CHUNK_BYTES)
        except OSError as error:
            raise InvalidArgument(f"cannot read stdin: {os_reason(error)}", "check what it is")
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
    """The records of a stream, each of which ends with a separator; the last one need not.

    Args:
        stream: The stream.
        separator: One byte.
        before_waiting: Called before each wait for more input.

    Yields:
        The records that arrived together, including empty ones, without separators; and `FLUSH`
        before each wait.
    """
    # The pieces of a record are joined once, at its end: a record may have 100 MB.
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
    """The bytes of a whole stream.

    Args:
        stream: The stream; it may have no end.
        before_waiting: Called before each wait for more input.
        bytes_max: The limit; one byte more is read, so that the caller can detect an excess.
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
