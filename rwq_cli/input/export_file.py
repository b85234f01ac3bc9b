"""Reading exports and undo files: their lines, and a whole export from a file or stdin."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from itertools import groupby
from typing import Annotated, Any, BinaryIO

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError
from msgspec.json import Decoder
from msgspec.structs import asdict

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.restore import Line
from rwq_cli.core.model import DIGITS_MAX, TIME_MS_MAX, Lease, State
from rwq_cli.core.state.probe import End, ItemSnapshot, Place
from rwq_cli.environment import Environment
from rwq_cli.input.streams import ITEM_BYTES_MAX, TOO_LARGE, BadRecord, open_input, split
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.export_file import VERSION, ControlLine, ControlWord, Header, UndoOrigin
from rwq_cli.output.json_text import field_error, reason_of
from rwq_cli.streams import unmarked

_Whole = Annotated[int, Meta(ge=0, le=TIME_MS_MAX)]
# A number in a hash.
_Digits = Annotated[int, Meta(ge=0, le=10**DIGITS_MAX - 1)]
_WholeMs = Annotated[int, Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]
_TimeMs = _WholeMs | Annotated[float, Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]


# A byte string is in one of two fields: as text, or in base64, which the decoder decodes.
class _Lease(Struct):
    holder: str | None = None
    holder_b64: bytes | None = None
    ttl_ms: _Whole | None = None


class _Origin(Struct):
    verb: str
    server: str | None = None
    context: str | None = None
    by: str | None = None
    to: str | None = None
    to_b64: bytes | None = None
    to_server: str | None = None
    to_context: str | None = None


class _Header(Struct):
    rwq_export: _Whole = 0
    queue: str | None = None
    queue_b64: bytes | None = None
    exported_ms: _Whole | None = None
    undo: _Origin | None = None


class _Record(Struct):
    # In a file with several queues.
    queue: str | None = None
    queue_b64: bytes | None = None
    # Fields of an item.
    id: str | None = None
    id_b64: bytes | None = None
    data: str | None = None
    data_b64: bytes | None = None
    state: State | None = None
    place: Place | UnsetType | None = UNSET
    lease: _Lease | None = None
    due_ms: _TimeMs | None = None
    buried_ms: _TimeMs | None = None
    returns: _Digits | None = None
    nearer: End | None = None
    # Fields of a result.
    result_of: str | None = None
    result_of_b64: bytes | None = None
    status: ResultStatus | None = None
    completed_ms: _Digits | None = None
    result: str | None = None
    result_b64: bytes | None = None
    holder: str | None = None
    holder_b64: bytes | None = None
    ttl_ms: _Whole | None = None
    # Fields of a control line.
    kept: bool = False
    taken: int | UnsetType = UNSET
    written: str | None = None
    begun: Any = UNSET
    restored: Any = UNSET
    tried: int | UnsetType = UNSET
    redone: int | UnsetType = UNSET
    lines_b64: bytes = b""


_decode_record = Decoder(_Record).decode
_decode_header = Decoder(_Header).decode


def parse_header(line: bytes, name: str) -> Header:
    """Parse the first line of a file; `InvalidArgument` if it is none, or of a later version."""
    line = unmarked(line, name)
    try:
        header = _decode_header(line)
    except (ValueError, RecursionError) as error:
        header, field = _Header(), str(error).partition(" - at `$.")[2]
        if field and field != "rwq_export`":
            raise InvalidArgument(f"the header of {name} cannot be used: {field_error(error)}")
    version = header.rwq_export
    if not version:
        raise InvalidArgument(
            f"{name} does not begin with the header of an export",
            'that is a line like {"rwq_export": 1, ...}; rwq add adds items from files without one',
        )
    if version > VERSION:
        raise InvalidArgument(
            f"{name} is an export of version {version}, and this rwq reads up to {VERSION}",
            "update rwq",
        )
    queue, undo = _bytes(header.queue, header.queue_b64), header.undo
    if not queue and version == 1:
        raise InvalidArgument(f"the header of {name} cannot be used: it does not name a queue")
    origin = None
    if undo is not None:
        to, same = _bytes(undo.to, undo.to_b64), asdict(undo)
        del same["to_b64"]
        origin = UndoOrigin(**{**same, "server": str(undo.server), "to": to})
    return Header(queue if queue and version == 1 else b"", header.exported_ms or 0, origin)


def parse_line(line: bytes) -> ItemSnapshot | Result | ControlLine:
    return _parse(line)[1]


def _parse(line: bytes) -> tuple[bytes | None, ItemSnapshot | Result | ControlLine]:
    """The queue that a line names, if it does, and what else it has."""
    try:
        record = _decode_record(line)
    except ValidationError as error:
        raise BadRecord(field_error(error))
    except (ValueError, RecursionError) as error:
        raise BadRecord(reason_of(line, error))
    return _bytes(record.queue, record.queue_b64), _entry(record)


def _entry(record: _Record) -> ItemSnapshot | Result | ControlLine:
    item_id = _bytes(record.id, record.id_b64)
    if item_id is None:
        return _without_id(record)
    if record.kept:
        return ControlLine(ControlWord.NOT_REMOVED, item_id)
    data = _bytes(record.data, record.data_b64)
    if data is None:
        raise BadRecord("it has neither data nor data_b64")
    if max(len(data), len(item_id)) > ITEM_BYTES_MAX:
        raise BadRecord(TOO_LARGE)
    place, due_ms, buried_ms = record.place, record.due_ms, record.buried_ms
    if place is UNSET:
        # Null means in no list; a line that lacks the place must not be read like that.
        raise BadRecord("it has no place, such as main")
    if (place is Place.DELAYED and due_ms is None) or (place is Place.BURIED and buried_ms is None):
        raise BadRecord(f"its place is {place.value}, but it has no such time")
    if place is Place.MAIN and not due_ms is buried_ms is None:
        raise BadRecord("its place is main, but it has a due time or a time of burial")
    return ItemSnapshot(
        item_id=item_id,
        data=data,
        state=record.state or State.WAITING,
        place=place,
        lease=_lease(record.lease) if record.lease else None,
        due_ms=due_ms,
        buried_ms=buried_ms,
        returns=record.returns,
        nearer=record.nearer,
    )


def _without_id(record: _Record) -> Result | ControlLine:
    result_of = _bytes(record.result_of, record.result_of_b64)
    if result_of is not None:
        return _result(record, result_of)
    if record.written is not None:
        return ControlLine(ControlWord.REPLACED_BY, written=record.written)
    for word in ControlWord:
        number = getattr(record, word, UNSET)
        if word not in (ControlWord.NOT_REMOVED, ControlWord.REPLACED_BY) and number is not UNSET:
            return ControlLine(word, lines=record.lines_b64, number=int(number))
    # An empty ID is valid.
    raise BadRecord("it has no id")


def _result(record: _Record, item_id: bytes) -> Result:
    if record.status is None or record.completed_ms is None:
        raise BadRecord("it is a result without a status or a time")
    result = _bytes(record.result, record.result_b64)
    size = None if result is None else len(result)
    if max(size or 0, len(item_id)) > ITEM_BYTES_MAX:
        raise BadRecord(TOO_LARGE)
    return Result(
        item_id=item_id,
        status=record.status,
        completed_ms=record.completed_ms,
        holder=_bytes(record.holder, record.holder_b64),
        result=result,
        result_bytes=size,
        ttl_ms=record.ttl_ms,
    )


def _lease(lease: _Lease) -> Lease:
    holder = _bytes(lease.holder, lease.holder_b64)
    if holder is None:
        raise BadRecord("its lease has no holder")
    return Lease(holder, lease.ttl_ms)


def _bytes(text: str | None, decoded: bytes | None) -> bytes | None:
    if decoded is not None or text is None:
        return decoded
    return text.encode()


_CHUNK_BYTES = 1 << 20


def file_id_of(file: BinaryIO) -> bytes | None:
    """The SHA-256 of the rest of a file, in hexadecimal; None if it is not a file."""
    descriptor = file.fileno()
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    digest, at = sha256(), os.lseek(descriptor, 0, os.SEEK_CUR)
    while chunk := os.pread(descriptor, _CHUNK_BYTES, at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest().encode()


class ExportReader:
    """Reads an export, and counts its bad lines; with `strict`, it stops at the first."""

    # `report` takes each: its number, from 1 for the header, and the reason.
    def __init__(
        self,
        environment: Environment,
        file: str,
        *,
        strict: bool,
        report: Callable[[int, str], None],
    ) -> None:
        self.name = "stdin" if file == "-" else escaped_text(file)
        self._strict, self._report = strict, report
        self.rejected = 0
        self.is_stopped = False
        self._open = ExitStack()
        stream = self._open.enter_context(open_input(environment, file))
        try:
            self.file_id = file_id_of(stream)
        except (OSError, AttributeError):
            # Not a file, or reading it will fail again, with a better error.
            self.file_id = None
        self._lines = _numbered(split(environment, stream, b"\n", is_json=True))
        first = next((entry for entry in self._lines if not isinstance(entry, Flush)), (1, b""))
        self.header = parse_header(first[1], self.name)

    def queues(self) -> Iterator[tuple[bytes, Iterator[Line | Flush]]]:
        """Each queue with its lines, which must be read before the next; one that the header
        names also without lines."""
        queue = self.header.queue

        def queue_of(each: tuple[bytes, Line] | Flush) -> bytes:
            nonlocal queue
            if not isinstance(each, Flush):
                queue = each[0]
            return queue

        groups: Iterable[tuple[bytes, Iterable[tuple[bytes, Line] | Flush]]]
        groups = [(queue, self._entries())] if queue else groupby(self._entries(), queue_of)
        for name, entries in groups:
            if name:
                yield name, (each if isinstance(each, Flush) else each[1] for each in entries)

    def _entries(self) -> Iterator[tuple[bytes, Line] | Flush]:
        """The items and results with their queues; a `FLUSH` if there is nothing more for now."""
        # A result that has no expiry gets the usual one.
        with self._open:
            for line in self._lines:
                if isinstance(line, Flush):
                    yield line
                    continue
                number, text = line
                try:
                    named, entry = _parse(text)
                    queue = self.header.queue or named or b""
                    if not queue:
                        raise BadRecord("it does not name a queue")
                except BadRecord as error:
                    self.rejected += 1
                    self._report(number, str(error))
                    if self._strict:
                        self.is_stopped = True
                        return
                    continue
                if isinstance(entry, ControlLine):
                    continue
                if isinstance(entry, Result) and entry.ttl_ms is None:
                    # Something else removed its expiry; rwq stores no result without one.
                    entry = entry._replace(ttl_ms=round(1000 * RESULT_TTL_S))
                yield queue, Line(number, entry)


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
