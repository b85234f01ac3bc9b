"""Reading stdin and the files that the user names: records, IDs, whole files.

`FLUSH` is yielded before each wait for more input, so that records from a slow pipe are sent to the
server at once and not only when a batch is full.
"""

import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import UnsupportedOperation
from itertools import chain
from typing import BinaryIO, cast

from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.descriptors import MARK, Reader, may_be_foreign, unmarked, wait_for
from rwq_cli.environment import Environment, os_reason
from rwq_cli.output.escape import escaped_text

# The server accepts no single value above its proto-max-bulk-len, by default 512 MB.
ITEM_BYTES_MAX = 512 * 1024 * 1024
# In base64 and with the rest of its line, an item is no longer than this.
_RECORD_BYTES_MAX = 2 * ITEM_BYTES_MAX
TOO_LARGE = f"larger than the {ITEM_BYTES_MAX >> 20} MB that a server accepts"

_CHUNK_BYTES = 1 << 18


class BadRecord(Exception):
    """A record of the input cannot be used; the text is the reason."""


def open_input(environment: Environment, name: str) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading; `-` is stdin, which stays open."""
    if name == "-":
        if environment.stdin_is_closed:
            raise InvalidArgument("stdin is closed", "redirect it from a file, or from /dev/null")
        return nullcontext(environment.stdin)
    if not name:
        raise InvalidArgument("the name of a file is empty", "is a variable in the script unset?")
    try:
        return cast(BinaryIO, Reader(name))
    except OSError as error:
        raise InvalidArgument(f"cannot read {name}: {os_reason(error)}", "check the file's name")


def chunks(environment: Environment, stream: BinaryIO) -> Iterator[bytes | Flush]:
    """Yield the bytes of a stream as they arrive; before each wait, stdout is flushed."""
    try:
        descriptor = stream.fileno()
    except (UnsupportedOperation, AttributeError):
        descriptor = None
    while True:
        if descriptor is not None and not wait_for(descriptor, select.POLLIN, 0):
            yield FLUSH
            environment.flush()
        try:
            chunk = stream.read(_CHUNK_BYTES)
        except OSError as error:
            raise InvalidArgument(
                f"cannot read {_name(stream)}: {os_reason(error)}", "check what it is"
            )
        if not chunk:
            return
        yield chunk


def split(
    environment: Environment,
    stream: BinaryIO,
    separator: bytes,
    *,
    is_json: bool = False,
    is_text: bool = True,
) -> Iterator[list[bytes] | Flush]:
    """Yield the records of a stream that arrive together, and `FLUSH` before each wait."""
    # A byte order mark before text is skipped. Lines that end in CR LF keep the CR, which is noted
    # once; in JSON it does not matter.
    has_lines = separator == b"\n"
    is_noted = is_json or not has_lines
    # The pieces of a record are joined once, at its end: a record may have 100 MB.
    pieces: list[bytes] = []
    size = 0
    arriving = chunks(environment, stream)
    if is_text:
        arriving = _without_mark(arriving, stream, has_lines=has_lines)
    for chunk in arriving:
        if isinstance(chunk, Flush):
            yield chunk
            continue
        records = chunk.split(separator)
        last = records.pop()
        if not records:
            pieces += [last] if last else []
            size += len(last)
            if size > _RECORD_BYTES_MAX:
                hint = "is it the right file?"
                raise InvalidArgument(f"a record of {_name(stream)} is {TOO_LARGE}", hint)
            continue
        if pieces:
            records[0] = b"".join((*pieces, records[0]))
        pieces, size = [last] if last else [], len(last)
        if not is_noted and records[0].endswith(b"\r"):
            is_noted = True
            environment.note(
                f"lines of {_name(stream)} end in CR LF, and the CR is a part of them; "
                "tr -d '\\r' removes it",
                once=True,
            )
        yield records
    if pieces:
        yield [b"".join(pieces)]


def _without_mark(
    arriving: Iterator[bytes | Flush], stream: BinaryIO, *, has_lines: bool
) -> Iterator[bytes | Flush]:
    first = b""
    for chunk in arriving:
        if isinstance(chunk, Flush):
            yield chunk
            continue
        first += chunk
        # A slow pipe may bring it byte by byte.
        if not (may_be_foreign(first) if has_lines else MARK.startswith(first)):
            break
    # Where NUL is the separator, it says nothing about the encoding.
    yield unmarked(first, _name(stream)) if has_lines else first.removeprefix(MARK)
    yield from arriving


def _name(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    return escaped_text(name) if isinstance(name, str) else "stdin"


def whole(environment: Environment, stream: BinaryIO) -> bytes:
    """Read a stream, which may have no end: at most one byte more than a server accepts."""
    pieces: list[bytes] = []
    room_bytes = ITEM_BYTES_MAX + 1
    for chunk in chunks(environment, stream):
        if not isinstance(chunk, Flush):
            pieces.append(chunk[:room_bytes])
            room_bytes -= len(pieces[-1])
            if not room_bytes:
                break
    return b"".join(pieces)


def read_payload(environment: Environment, name: str, what: str = "payload") -> bytes:
    """Read a file, or stdin for `-`."""
    if name == "-" and environment.stdin_is_terminal:
        environment.note(f"reading the {what} from the terminal; Ctrl-D ends")
    with open_input(environment, name) as file:
        result = whole(environment, file)
    if len(result) > ITEM_BYTES_MAX:
        raise InvalidArgument(f"the {what} is {TOO_LARGE}", "keep it elsewhere")
    return result


def read_ids(
    environment: Environment, arguments: Sequence[str], *, null_separated: bool
) -> Iterator[bytes | Flush]:
    if not arguments:
        raise InvalidArgument("no IDs given", "name them, or give - to read them from stdin")
    if "-" not in arguments:
        if "" in arguments:
            raise InvalidArgument("an ID is empty", "is a variable in the script unset?")
        return iter([os.fsencode(argument) for argument in arguments])
    if len(arguments) > 1:
        raise InvalidArgument(
            "- reads the IDs from stdin, and cannot be combined with other IDs",
            "drop the other IDs",
        )
    if environment.stdin_is_terminal:
        environment.note("reading IDs from the terminal, one per line; Ctrl-D ends")
    with open_input(environment, "-") as stdin:
        groups = split(environment, stdin, b"\0" if null_separated else b"\n")

    def ids() -> Iterator[Iterable[bytes | Flush]]:
        for group in groups:
            if isinstance(group, Flush):
                yield (group,)
                continue
            if b"\0" in b"".join(group):
                note = "lines of stdin hold NUL; -0 reads IDs that end with it"
                environment.note(note, once=True)
            yield filter(None, group)

    return chain.from_iterable(ids())


class Pace:
    """Lets so many IDs a second pass, those of all streams together."""

    def __init__(
        self,
        rate: float,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._interval_s, self._clock_s, self._sleep = 1 / rate, clock_s, sleep
        self._due_s = clock_s()

    def slow(self, ids: Iterable[bytes | Flush]) -> Iterator[bytes | Flush]:
        """Yield IDs; those before a pause are acted on before it."""
        for item_id in ids:
            if not isinstance(item_id, Flush):
                if self._due_s > self._clock_s():
                    yield FLUSH
                    self._sleep(max(0.0, self._due_s - self._clock_s()))
                # What comes late is made up for, but not a stream that had nothing for long.
                self._due_s = max(self._due_s, self._clock_s() - 1) + self._interval_s
            yield item_id
