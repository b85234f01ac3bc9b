"""Items to add, from arguments, files and stdin, in every input format."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, cast

import orjson

from rwq_cli.core.batches import BATCH_BYTES, Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.add import ADD_ITEMS
from rwq_cli.core.model import Due, NewItems
from rwq_cli.environment import Environment
from rwq_cli.input.durations import in_limits, parse_duration
from rwq_cli.input.streams import split, whole


class InputFormat(StrEnum):
    """How a file or stdin is cut into items."""

    LINES = "lines"
    JSONL = "jsonl"
    NUL = "nul"
    RAW = "raw"


# The server takes no single value above its proto-max-bulk-len, 512 MB unless it is set.
ITEM_BYTES_MAX = 512 * 1024 * 1024

_LONG_NUMBER = re.compile(rb"\d{19}")
# The same, sought in many lines at once: each digit made a 0.
_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_LONG_RUN = b"0" * 19
_IDS_AT_ONCE = 1024
# Records are looked at together while they fit into a chunk of the stream with room to spare.
_AT_ONCE_BYTES = 1024 * 1024
# RFC 9562, version 4: the high bits of bytes 6 and 8.
_VERSION = bytes(byte & 0x0F | 0x40 for byte in range(256))
_VARIANT = bytes(byte & 0x3F | 0x80 for byte in range(256))


def random_ids(count: int) -> list[bytes]:
    """Version 4 UUIDs as 32 hexadecimal digits, the form upstream's Python library uses.

    Made many at a time: one uuid4() an item would take longer than all else together.
    """
    raw = bytearray(os.urandom(16 * count))
    raw[6::16] = raw[6::16].translate(_VERSION)
    raw[8::16] = raw[8::16].translate(_VARIANT)
    digits = raw.hex().encode("ascii")
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def _one_by_one() -> Iterator[bytes]:
    while True:
        yield from random_ids(_IDS_AT_ONCE)


class BadRecord(Exception):
    """A record that cannot become an item; its text says why."""


@dataclass(frozen=True, slots=True)
class IdRule:
    """Where the ID of an item comes from if the item brings none.

    Attributes:
        kind: `uuid`, `sha256`, `line` or `field`.
        name: The field's name, for `field`.
    """

    kind: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> "IdRule":
        """Read the value of `--id-from`.

        Raises:
            InvalidArgument: It is none of the four.
        """
        kind, colon, name = text.partition(":")
        if (kind in ("uuid", "sha256", "line") and not colon) or (kind == "field" and name):
            return cls(kind, name)
        raise InvalidArgument(
            f"--id-from cannot be {text!r}", "it is uuid, sha256, line or field:NAME"
        )


RANDOM_IDS = IdRule("uuid")


def with_id(batches: Iterable[NewItems | Flush], item_id: bytes) -> Iterator[NewItems | Flush]:
    """The one item of some batches, under the ID given.

    Raises:
        InvalidArgument: There are more; none is added.
    """
    only: NewItems | None = None
    for batch in batches:
        if isinstance(batch, Flush):
            continue
        if only is not None or len(batch.ids) > 1:
            raise InvalidArgument("--id names one item, but there are more", "use --id-from")
        only = batch
    return iter([only._replace(ids=[item_id])] if only is not None else [])


@dataclass
class RecordReader:
    """Reads items and counts what it could not use.

    Attributes:
        environment: Where stdin is, and where bad records are reported.
        input_format: How files and stdin are cut.
        id_rule: Where IDs come from.
        strict: CancelToken at the first bad record.
        due: Until when items are put off that do not say it themselves; None for not at all.
        report: Told of each bad record: where it was, its number from 1, and why.
        rejected: Bad records so far.
        empty: Empty lines skipped so far.
    """

    environment: Environment
    input_format: InputFormat
    id_rule: IdRule
    strict: bool
    report: Callable[[str, int, str], None]
    due: Due | None = None
    rejected: int = 0
    empty: int = 0
    _total_bytes: int | None = None
    _read_bytes: int = 0
    _current: BinaryIO | None = None
    _random: Iterator[bytes] = field(default_factory=_one_by_one)

    def from_arguments(self, arguments: Iterable[str]) -> Iterator[NewItems | Flush]:
        """One item an argument; with the jsonl format each argument is such a line."""
        cut = [os.fsencode(argument) for argument in arguments]
        return self._batches("argument", [cut], keep_empty=True)

    def from_files(self, names: Iterable[str]) -> Iterator[NewItems | Flush]:
        """The items of files, in order; `-` is stdin.

        Raises:
            InvalidArgument: A file cannot be read.
        """
        names = list(names)
        # A mistyped name must not leave half of the files added.
        for name in names:
            if name != "-":
                open_input(name).close()
        self._total_bytes = self._size_of_all(names)
        for name in names:
            if self.strict and self.rejected:
                return
            if name == "-":
                self._current = self.environment.stdin
                yield from self._from_stream("line", self.environment.stdin)
            else:
                with open_input(name) as stream:
                    self._current = stream
                    yield from self._from_stream(
                        f"{name}, line", cast(BinaryIO, Readable(name, stream))
                    )
                    self._read_bytes += _position(stream)
                    self._current = None

    def fraction(self) -> float | None:
        """How much of all the input was read, from 0 to 1; None where its size is not known."""
        if not self._total_bytes:
            return None
        here = _position(self._current) if self._current is not None else 0
        return min(1.0, (self._read_bytes + here) / self._total_bytes)

    def _size_of_all(self, names: list[str]) -> int | None:
        """The bytes of all files; None if one is a pipe or a terminal."""
        total = 0
        for name in names:
            try:
                found = os.stat(self.environment.stdin.fileno() if name == "-" else name)
            except (OSError, ValueError):
                return None
            if not S_ISREG(found.st_mode):
                return None
            total += found.st_size
        return total

    def _from_stream(self, where: str, stream: BinaryIO) -> Iterator[NewItems | Flush]:
        flush = self.environment.flush
        if self.input_format is InputFormat.RAW:
            record = whole(stream, flush, bytes_max=ITEM_BYTES_MAX)
            return self._batches("input", [[record]], keep_empty=True)
        separator = b"\0" if self.input_format is InputFormat.NUL else b"\n"
        return self._batches(where, split(stream, separator, flush), keep_empty=False)

    def _batches(
        self, where: str, groups: Iterable[list[bytes] | Flush], *, keep_empty: bool
    ) -> Iterator[NewItems | Flush]:
        """Records to batches of items, in one loop: it runs once for each of millions of lines."""
        is_json = self.input_format is InputFormat.JSONL
        convert = self._from_json_line if is_json else self._as_it_is
        at_once = _payloads_of_json_lines if is_json else _payloads_of_lines
        make_id = None if self.id_rule.kind == "uuid" else self._make_id
        random = self._random
        ids: list[bytes] = []
        payloads: list[bytes] = []
        dues: list[Due | None] = []
        room_bytes = BATCH_BYTES
        number = 0
        for group in groups:
            if isinstance(group, Flush):
                if ids:
                    yield NewItems(ids, payloads, dues if any(dues) else None)
                    ids, payloads, dues, room_bytes = [], [], [], BATCH_BYTES
                yield group
                continue
            for start in range(0, len(group), ADD_ITEMS):
                records = group[start : start + ADD_ITEMS]
                plain = at_once(records) if make_id is None else None
                if plain is not None:
                    if ids:
                        yield NewItems(ids, payloads, dues if any(dues) else None)
                        ids, payloads, dues, room_bytes = [], [], [], BATCH_BYTES
                    alike: list[Due | None] | None = [self.due] * len(plain) if self.due else None
                    yield NewItems(random_ids(len(plain)), plain, alike)
                    number += len(records)
                    continue
                for record in records:
                    number += 1
                    if not record and not keep_empty:
                        self.empty += 1
                        continue
                    try:
                        item_id, data, value, due = convert(record)
                        if item_id is None:
                            item_id = next(random) if make_id is None else make_id(data, value)
                    except BadRecord as error:
                        self.rejected += 1
                        self.report(where, number, str(error))
                        if not self.strict:
                            continue
                        if ids:
                            yield NewItems(ids, payloads, dues if any(dues) else None)
                        return
                    ids.append(item_id)
                    payloads.append(data)
                    dues.append(due)
                    room_bytes -= len(item_id) + len(data)
                    if len(ids) == ADD_ITEMS or room_bytes <= 0:
                        yield NewItems(ids, payloads, dues if any(dues) else None)
                        ids, payloads, dues, room_bytes = [], [], [], BATCH_BYTES
        if ids:
            yield NewItems(ids, payloads, dues if any(dues) else None)

    def _make_id(self, data: bytes, value: Any) -> bytes:
        rule = self.id_rule.kind
        if rule == "sha256":
            return sha256(data).hexdigest().encode("ascii")
        if rule == "line":
            if not data:
                raise BadRecord("empty data cannot be its own ID")
            return data
        return self._id_in_field(data, value)

    def _id_in_field(self, data: bytes, value: Any) -> bytes:
        name = self.id_rule.name
        if not isinstance(value, dict):
            try:
                value = parse(data)
            except BadRecord as error:
                raise BadRecord(f"its data has no field {name!r}: {error}")
        if not isinstance(value, dict) or value.get(name) in (None, ""):
            raise BadRecord(f"its data has no field {name!r}")
        return _compact(value[name])

    def _as_it_is(self, record: bytes) -> tuple[bytes | None, bytes, Any, Due | None]:
        if len(record) > ITEM_BYTES_MAX:
            raise BadRecord("larger than the 512 MB that a server takes")
        return None, record, None, self.due

    def _from_json_line(self, line: bytes) -> tuple[bytes | None, bytes, Any, Due | None]:
        record = parse(line)
        if not isinstance(record, dict):
            raise BadRecord("not a JSON object with data or data_b64")
        value = record.get("data")
        if len(record) == 1 and value is not None:
            return None, _compact(value), value, self.due
        if record.get("data_b64") is not None:
            data, value = _from_base64(record["data_b64"], "data_b64"), None
        elif "data" in record:
            data = _compact(value)
        else:
            raise BadRecord("it has neither data nor data_b64")
        item_id = None
        if record.get("id_b64") is not None:
            item_id = _from_base64(record["id_b64"], "id_b64")
        elif record.get("id") is not None:
            item_id = _compact(record["id"])
        if item_id == b"":
            raise BadRecord("its id is empty")
        delay = record.get("delay")
        return item_id, data, value, self.due if delay is None else _due_after(delay)


def _position(stream: BinaryIO) -> int:
    """How far the system has read a file for us."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except (OSError, ValueError):
        return 0


def open_input(name: str) -> BinaryIO:
    """Open a file that the user named.

    Raises:
        InvalidArgument: It cannot be read.
    """
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise _unreadable(name, error)


class Readable:
    """A file whose failures while it is read name it."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self._name = name
        self._stream = stream
        self.fileno = stream.fileno

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except OSError as error:
            raise _unreadable(self._name, error)


def _unreadable(name: str, error: OSError) -> InvalidArgument:
    reason = (error.strerror or str(error)).lower()
    return InvalidArgument(f"cannot read {name}: {reason}", "check the file's name")


def _payloads_of_lines(records: list[bytes]) -> list[bytes] | None:
    """The payloads of records that are nothing special, or None: then each is looked at."""
    if b"" in records or sum(map(len, records)) > _AT_ONCE_BYTES:
        return None
    return records


def _payloads_of_json_lines(lines: list[bytes]) -> list[bytes] | None:
    """The payloads of lines that have `data` alone, read together; None where one is different.

    The result is what `_from_json_line` would give for each. Read in one go, a line takes two
    thirds of the time.
    """
    if sum(map(len, lines)) > _AT_ONCE_BYTES or _LONG_RUN in b" ".join(lines).translate(_DIGITS):
        return None
    try:
        records = list(map(orjson.loads, lines))
        values = [record["data"] for record in records if len(record) == 1]
    except (ValueError, TypeError, KeyError):
        return None
    if len(values) < len(lines):
        return None
    try:
        return [
            value.encode("utf-8") if type(value) is str else orjson.dumps(value) for value in values
        ]
    except TypeError:
        return None


def parse(text: bytes) -> Any:
    """A JSON value, exactly: whole numbers of any length stay what they are.

    Raises:
        BadRecord: It is not JSON; the text says why.
    """
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise BadRecord(f"not JSON: {error}")
    # orjson makes floats of whole numbers above 64 bits, json does not. A long run of digits is
    # what gives them away, and looking for one costs more than to see that nothing changed.
    if _is_written_as(value, text) or not _LONG_NUMBER.search(text):
        return value
    try:
        return json.loads(text)
    except RecursionError:
        raise BadRecord("not JSON: nested too deeply")


def _is_written_as(value: Any, text: bytes) -> bool:
    try:
        return orjson.dumps(value) == text
    except TypeError:
        # It reads what is nested a thousand times, and writes a quarter of that.
        return False


def _compact(value: Any) -> bytes:
    """A string's own text; any other JSON value as compact JSON."""
    if isinstance(value, str):
        return value.encode("utf-8")
    try:
        return orjson.dumps(value)
    except TypeError:
        # A whole number above 64 bits, or nested deeply.
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        except RecursionError:
            raise BadRecord("not JSON: nested too deeply")


def _due_after(delay: Any) -> Due | None:
    """The delay that a record asks for: seconds, or a duration such as `5m`."""
    try:
        if type(delay) in (int, float) and delay >= 0:
            seconds = in_limits(delay)
        elif isinstance(delay, str):
            seconds = parse_duration(delay)
        else:
            raise BadRecord(f"its delay is not a duration: {_compact(delay).decode()}")
    except InvalidArgument as error:
        raise BadRecord(f"its delay is {error.message}")
    return Due(seconds * 1000, from_now=True) if seconds else None


def _from_base64(text: Any, name: str) -> bytes:
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise BadRecord(f"{name} is not base64")
