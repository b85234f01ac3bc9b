"""Reading exports and undo files: their lines, and a whole export from a file or stdin."""

import os
import stat
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from hashlib import file_digest
from itertools import count, groupby
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, cast

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.lines import Line
from rwq_cli.core.model import DIGITS_MAX, TIME_MS_MAX, Lease, State
from rwq_cli.core.state.snapshots import End, ItemSnapshot, Place
from rwq_cli.descriptors import unmarked
from rwq_cli.environment import Environment
from rwq_cli.input.streams import ITEM_BYTES_MAX, TOO_LARGE, BadRecord, open_input, split
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.export_lines import VERSION, ControlWord, ExportHeader, UndoOrigin, UndoState
from rwq_cli.output.json_text import field_error, reason_of

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


class _TrailerLine(Struct):
    items: int
    results: int
    state: UndoState


class _HeaderLine(Struct):
    rwq_export: _Whole = 0
    queue: str | None = None
    queue_b64: bytes | None = None
    exported_ms: _Whole | None = None
    undo: dict[str, str | int | None] | None = None


class _Counts(Struct):
    items: _Whole
    results: _Whole


class _EntryLine(Struct):
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
    kept: bool | UnsetType = UNSET
    taken: int | UnsetType = UNSET
    written: str | UnsetType = UNSET
    begun: bool | UnsetType = UNSET
    restored: bool | UnsetType = UNSET
    closed: _TrailerLine | UnsetType = UNSET
    lines_b64: bytes = b""
    export_end: _Counts | UnsetType = UNSET


class ControlLine(NamedTuple):
    """A line of an undo file that is neither an item nor a result; see `rwq_cli.undo.journal`."""

    # The item of `NOT_REMOVED`, the bitmap of `RESTORED`, and the value of the others.
    word: ControlWord
    item_id: bytes | None
    lines: bytes
    value: Any


_decode_record = Decoder(_EntryLine).decode
_decode_header = Decoder(_HeaderLine).decode


def parse_header(line: bytes, name: str) -> ExportHeader:
    """Parse a file's header; raises `InvalidArgument` if it is none, or of a later version."""
    line, encoded = unmarked(line, name), b""
    try:
        header = _decode_header(line)
        encoded = b64decode(str((header.undo or {}).get("to_b64") or ""))
    except (ValueError, RecursionError) as error:
        header, field = _HeaderLine(), str(error).partition(" - at `$.")[2]
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
    queue, undo, origin = _bytes(header.queue, header.queue_b64), header.undo, None
    if not queue and version == 1:
        raise InvalidArgument(f"the header of {name} cannot be used: it does not name a queue")
    if undo is not None:
        same: dict[str, Any] = {field: undo.get(field) for field in UndoOrigin._fields}
        same["to"] = _bytes(same["to"], encoded or None)
        origin = UndoOrigin(**{**same, "server": str(undo.get("server"))})
    return ExportHeader(queue if queue and version == 1 else b"", header.exported_ms or 0, origin)


def parse_line(line: bytes) -> tuple[bytes | None, ItemSnapshot | Result | ControlLine]:
    """Parse a line: the queue that it names, if it does, and what it holds."""
    try:
        record = _decode_record(line)
    except ValidationError as error:
        raise BadRecord(field_error(error))
    except (ValueError, RecursionError) as error:
        raise BadRecord(reason_of(line, error))
    queue, item_id = _bytes(record.queue, record.queue_b64), _bytes(record.id, record.id_b64)
    if item_id is not None and not record.kept:
        return queue, _item(record, item_id)
    if (result_of := _bytes(record.result_of, record.result_of_b64)) is not None:
        return queue, _result(record, result_of)
    for word in ControlWord:
        is_for_item = word is ControlWord.NOT_REMOVED
        if (value := getattr(record, word)) is not UNSET and is_for_item <= (item_id is not None):
            return queue, ControlLine(word, item_id, record.lines_b64, value)
    # An empty ID is valid.
    raise BadRecord("it has no id")


def _item(record: _EntryLine, item_id: bytes) -> ItemSnapshot:
    data = _bytes(record.data, record.data_b64)
    if data is None:
        raise BadRecord("it has neither data nor data_b64")
    if max(len(data), len(item_id)) > ITEM_BYTES_MAX:
        raise BadRecord(TOO_LARGE)
    place, due_ms, buried_ms = record.place, record.due_ms, record.buried_ms
    if place is UNSET:
        # Null means in no list; a line that lacks the place must not be read as that.
        raise BadRecord("it has no place, such as main")
    if (place is Place.DELAYED and due_ms is None) or (place is Place.BURIED and buried_ms is None):
        raise BadRecord(f"its place is {place.value}, but the time for that is missing")
    if place is Place.MAIN and not due_ms is buried_ms is None:
        raise BadRecord("its place is main, but it has a due time or a time of burial")
    lease = None
    if record.lease is not None:
        holder = _bytes(record.lease.holder, record.lease.holder_b64)
        if holder is None:
            raise BadRecord("its lease has no holder")
        lease = Lease(holder, record.lease.ttl_ms)
    return ItemSnapshot(
        item_id=item_id,
        data=data,
        state=record.state or State.WAITING,
        place=place,
        lease=lease,
        due_ms=due_ms,
        buried_ms=buried_ms,
        returns=record.returns,
        nearer=record.nearer,
    )


def _result(record: _EntryLine, item_id: bytes) -> Result:
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


def _bytes(text: str | None, decoded: bytes | None) -> bytes | None:
    return decoded if decoded is not None or text is None else text.encode()


class ExportReader:
    """Reads an export, and counts its bad lines; with `strict`, it stops at the first."""

    # `report` is called for each: with its number, from 1 for the header, and the reason.
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
        # How many lines had an item or a result, and how many the last line counts.
        self._lines_read = 0
        self._lines_counted: int | None = None
        # The SHA-256 of the rest of a file, in hexadecimal; None if it is not a file.
        self.file_id: bytes | None = None
        self._open = ExitStack()
        stream = self._open.enter_context(open_input(environment, file))
        # If reading fails here, it will fail again later, with a better error.
        with suppress(OSError, AttributeError):
            if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                at = stream.tell()
                self.file_id = file_digest(cast(Any, stream), "sha256").hexdigest().encode()
                stream.seek(at)
        numbers = count(1)
        # Each with its number, from 1.
        self._lines = (
            line if isinstance(line, Flush) else (next(numbers), line)
            for group in split(environment, stream, b"\n", is_json=True)
            for line in ([group] if isinstance(group, Flush) else group)
        )
        texts = (line[1] for line in self._lines if not isinstance(line, Flush) and line[1])
        self.header = parse_header(next(texts, b""), self.name)

    def incompleteness(self) -> tuple[str, bool] | None:
        """Why what was read to its end may not be the whole export, and whether it surely is not;
        None if it is whole."""
        if self.is_stopped or self.header.origin is not None:
            return None
        if self._lines_counted is None:
            return f"{self.name} has no end line: it was truncated, or lines were selected", False
        if self._lines_counted == self._lines_read:
            return None
        counts = f"{self._lines_read:,} lines, not the {self._lines_counted:,}"
        return f"{self.name} has {counts} that its end line counts", True

    def queues(self) -> Iterator[tuple[bytes, Iterator[Line | Flush]]]:
        """Yield each queue with its lines, which must be read before the next queue; the queue that
        the header names comes even without lines."""
        if self.header.queue:
            yield self.header.queue, (line for _, line in self._entries())
            return
        for name, entries in groupby(self._entries(), itemgetter(0)):
            if name:
                yield name, (line for _, line in entries)

    def _entries(self) -> Iterator[tuple[bytes, Line | Flush]]:
        """Yield items and results with their queues, and `FLUSH` when the input pauses."""
        queue = self.header.queue
        with self._open:
            for line in self._lines:
                if isinstance(line, Flush):
                    yield queue, line
                    continue
                number, text = line
                if not text:
                    continue
                try:
                    line_queue, entry = parse_line(text)
                    if isinstance(entry, ControlLine) and entry.word is ControlWord.EXPORT_END:
                        counts = entry.value
                        self._lines_counted = counts.items + counts.results
                        continue
                    if not (self.header.queue or line_queue):
                        raise BadRecord("it does not name a queue")
                except BadRecord as error:
                    self.rejected += 1
                    self._lines_read += 1
                    self._report(number, str(error))
                    if self._strict:
                        self.is_stopped = True
                        return
                    continue
                if isinstance(entry, ControlLine):
                    continue
                self._lines_read += 1
                queue = self.header.queue or line_queue or b""
                if isinstance(entry, Result) and entry.ttl_ms is None:
                    # Something else removed its expiry; rwq stores no result without one.
                    entry = entry._replace(ttl_ms=round(1000 * RESULT_TTL_S))
                yield queue, Line(number, entry)
