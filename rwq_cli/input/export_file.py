"""Reading exports and undo files: the header, and items and results line by line."""

import os
import stat
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from typing import Any, BinaryIO

from msgspec.json import decode

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import Result, Verdict
from rwq_cli.core.items.importing import Line
from rwq_cli.core.items.results import RESULT_TTL_S
from rwq_cli.core.model import Lease, State
from rwq_cli.core.state.snapshot import TIME_MS_MAX, End, ItemSnapshot, Place
from rwq_cli.environment import Environment
from rwq_cli.input.files import ITEM_BYTES_MAX, BadRecord, open_input
from rwq_cli.input.streams import split
from rwq_cli.output.export_file import VERSION, Header, Mark, MarkWord, Taken

_CHUNK_BYTES = 1 << 20


def parse_header(line: bytes, name: str) -> Header:
    """The first line of an export.

    Args:
        line: The line.
        name: What the file is called, for messages.

    Raises:
        InvalidArgument: It is no header, or that of a later version.
    """
    try:
        record = decode(line)
    except (ValueError, RecursionError):
        record = None
    version = record.get("rwq_export") if isinstance(record, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidArgument(
            f"{name} does not begin with the header of an export",
            'it is a line like {"rwq_export": 1, ...}; for items without one see rwq add',
        )
    if not 1 <= version <= VERSION:
        raise InvalidArgument(
            f"{name} is an export of version {version}, and this rwq reads up to {VERSION}",
            "update rwq",
        )
    try:
        queue = _bytes_of(record, "queue")
        if not queue:
            raise BadRecord("it names no queue")
        exported_ms = _whole(record, "exported_ms", least=0)
        taken = record.get("undo")
        if taken is not None:
            taken = _taken(taken)
    except BadRecord as error:
        raise InvalidArgument(f"the header of {name} cannot be used: {error}")
    return Header(queue, exported_ms or 0, taken)


def _taken(record: Any) -> Taken:
    if not isinstance(record, dict) or not isinstance(record.get("verb"), str):
        raise BadRecord("undo is no object with a verb")
    return Taken(record["verb"], str(record.get("server")), _bytes_of(record, "to"))


def parse_line(line: bytes) -> ItemSnapshot | Result | Mark:
    """One line behind the header.

    Raises:
        BadRecord: It is neither an item nor a result; the text says why.

    Returns:
        The item or the result; or a mark of an undo file.
    """
    try:
        record = decode(line)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}")
    if not isinstance(record, dict):
        raise BadRecord("not a JSON object")
    item_id = _bytes_of(record, "id")
    if item_id is None:
        result_of = _bytes_of(record, "result_of")
        if result_of is not None:
            return _result(record, result_of)
        for word in (MarkWord.TAKEN, MarkWord.RESTORED, MarkWord.TRIED):
            if word in record:
                return Mark(word, lines=_bytes_of(record, "lines") or b"")
        # An empty one is an ID like any other.
        raise BadRecord("it has no id")
    if record.get(MarkWord.KEPT) is True:
        return Mark(MarkWord.KEPT, item_id)
    data = _bytes_of(record, "data")
    if data is None:
        raise BadRecord("it has neither data nor data_b64")
    if max(len(data), len(item_id)) > ITEM_BYTES_MAX:
        raise BadRecord("larger than the 512 MB that a server takes")
    place = _one_of(record, "place", Place)
    due_ms, buried_ms = _time_ms(record, "due_ms"), _time_ms(record, "buried_ms")
    for wanted, time_ms in ((Place.DELAYED, due_ms), (Place.BURIED, buried_ms)):
        if place is wanted and time_ms is None:
            raise BadRecord(f"its place is {place.value}, but it has no time for that")
    if place is Place.MAIN and not due_ms is buried_ms is None:
        raise BadRecord("its place is main, but it has the time of a delayed or a buried one")
    return ItemSnapshot(
        item_id=item_id,
        data=data,
        state=_one_of(record, "state", State) or State.WAITING,
        place=place,
        lease=_lease(record.get("lease")),
        due_ms=due_ms,
        buried_ms=buried_ms,
        returns=_whole(record, "returns", least=0),
        nearer=_one_of(record, "nearer", End),
    )


def _result(record: dict[str, Any], item_id: bytes) -> Result:
    verdict, completed_ms = _one_of(record, "status", Verdict), _whole(record, "completed_ms")
    if verdict is None or completed_ms is None:
        raise BadRecord("it is a result without a status or a time")
    result = _bytes_of(record, "result")
    size = None if result is None else len(result)
    if max(size or 0, len(item_id)) > ITEM_BYTES_MAX:
        raise BadRecord("larger than the 512 MB that a server takes")
    return Result(
        item_id=item_id,
        verdict=verdict,
        completed_ms=completed_ms,
        holder=_bytes_of(record, "holder"),
        result=result,
        result_bytes=size,
        ttl_ms=_whole(record, "ttl_ms", least=0),
    )


def _lease(record: Any) -> Lease | None:
    if record is None:
        return None
    holder = _bytes_of(record, "holder") if isinstance(record, dict) else None
    if holder is None:
        raise BadRecord("its lease is no object with a holder")
    return Lease(holder, _whole(record, "ttl_ms", least=0))


def _whole(record: dict[str, Any], name: str, *, least: int = -TIME_MS_MAX) -> int | None:
    number = record.get(name)
    if number is None:
        return None
    if (
        not isinstance(number, int)
        or isinstance(number, bool)
        or not least <= number <= TIME_MS_MAX
    ):
        raise BadRecord(f"{name} is not a whole number that makes sense")
    return number


def _time_ms(record: dict[str, Any], name: str) -> float | None:
    number = record.get(name)
    if not isinstance(number, float):
        return _whole(record, name)
    if not -TIME_MS_MAX <= number <= TIME_MS_MAX:
        raise BadRecord(f"{name} is not a time that makes sense")
    return number


def _one_of(record: dict[str, Any], name: str, kind: Any) -> Any:
    word = record.get(name)
    if word is None:
        return None
    try:
        return kind(word)
    except ValueError:
        raise BadRecord(f"{name} cannot be {word!r}")


def _bytes_of(record: dict[str, Any], name: str) -> bytes | None:
    """A byte string from its two fields; None where both are null or left out."""
    coded = record.get(f"{name}_b64")
    if coded is not None:
        try:
            return b64decode(coded, validate=True)
        except (ValueError, TypeError):
            raise BadRecord(f"{name}_b64 is not base64")
    text = record.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadRecord(f"{name} is not a string")
    return text.encode()


def file_id_of(file: BinaryIO) -> bytes | None:
    """The SHA-256 of what is left to read of a file, in hexadecimal; None if it is no file."""
    descriptor = file.fileno()
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    digest, at = sha256(), os.lseek(descriptor, 0, os.SEEK_CUR)
    while chunk := os.pread(descriptor, _CHUNK_BYTES, at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest().encode()


class ExportReader:
    """Reads an export from a file or stdin, and counts lines that it could not use.

    Args:
        environment: Where stdin is.
        name: The file; `-` is stdin.
        strict: Stop at the first bad line.
        report: Takes each bad line: its number, from 1 for the header, and the reason.

    Attributes:
        header: The first line.
        file_id: See `file_id_of`.
        rejected: Bad lines so far.
        is_stopped: Whether a bad line has stopped it.

    Raises:
        InvalidArgument: The file cannot be read, or does not begin with a header.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        *,
        strict: bool,
        report: Callable[[int, str], None],
    ) -> None:
        self._strict = strict
        self._report = report
        self.rejected = 0
        self.is_stopped = False
        self._open = ExitStack()
        stream = environment.stdin
        if name != "-":
            stream = self._open.enter_context(open_input(name))
        try:
            self.file_id = file_id_of(stream)
        except (OSError, AttributeError):
            # A stream without a file, or a file whose reading tells what is wrong with it.
            self.file_id = None
        self._lines = _numbered(split(stream, b"\n", environment.flush))
        first = next((entry for entry in self._lines if not isinstance(entry, Flush)), (1, b""))
        self.header = parse_header(first[1], "stdin" if name == "-" else name)

    def lines(self) -> Iterator[Line | Flush]:
        """The items and results, in order; a `FLUSH` if the source has nothing more for now.

        A result that has no expiry gets the usual one.
        """
        with self._open:
            for line in self._lines:
                if isinstance(line, Flush):
                    yield line
                    continue
                number, text = line
                try:
                    entry = parse_line(text)
                except BadRecord as error:
                    self.rejected += 1
                    self._report(number, str(error))
                    if self._strict:
                        self.is_stopped = True
                        return
                    continue
                if isinstance(entry, Mark):
                    continue
                if isinstance(entry, Result) and entry.ttl_ms is None:
                    # Somebody removed its expiry; we make none without.
                    entry = replace(entry, ttl_ms=round(1000 * RESULT_TTL_S))
                yield Line(number, entry)


def _numbered(groups: Iterable[list[bytes] | Flush]) -> Iterator[tuple[int, bytes] | Flush]:
    """Lines with their numbers from 1, without empty ones."""
    number = 0
    for group in groups:
        if isinstance(group, Flush):
            yield group
            continue
        for line in group:
            number += 1
            if line:
                yield number, line
