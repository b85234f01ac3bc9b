"""Items to add, from arguments, files and stdin, in every input format."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from rwq_cli.core.batches import Pause
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import NewItem
from rwq_cli.environment import Environment
from rwq_cli.reading.streams import split, whole


class InputFormat(StrEnum):
    """How a file or stdin is cut into items."""

    LINES = "lines"
    JSONL = "jsonl"
    NUL = "nul"
    RAW = "raw"


# The server takes no single value above its proto-max-bulk-len, 512 MB unless it is set.
ITEM_BYTES_MAX = 512 * 1024 * 1024

_RANDOM_IDS = 1024
# RFC 9562, version 4: the high bits of bytes 6 and 8.
_VERSION = bytes(byte & 0x0F | 0x40 for byte in range(256))
_VARIANT = bytes(byte & 0x3F | 0x80 for byte in range(256))


def random_ids() -> Iterator[bytes]:
    """Version 4 UUIDs as 32 hexadecimal digits, the form upstream's Python library uses.

    Made many at a time: one uuid4() an item would take longer than all else together.
    """
    while True:
        raw = bytearray(os.urandom(16 * _RANDOM_IDS))
        raw[6::16] = raw[6::16].translate(_VERSION)
        raw[8::16] = raw[8::16].translate(_VARIANT)
        digits = raw.hex().encode("ascii")
        for start in range(0, len(digits), 32):
            yield digits[start : start + 32]


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


@dataclass
class Intake:
    """Reads items and counts what it could not use.

    Attributes:
        environment: Where stdin is, and where bad records are reported.
        input_format: How files and stdin are cut.
        id_rule: Where IDs come from.
        strict: Stop at the first bad record.
        report: Told of each bad record: where it was, its number from 1, and why.
        rejected: Bad records so far.
        empty: Empty lines skipped so far.
    """

    environment: Environment
    input_format: InputFormat
    id_rule: IdRule
    strict: bool
    report: Callable[[str, int, str], None]
    rejected: int = 0
    empty: int = 0
    _random: Iterator[bytes] = field(default_factory=random_ids)

    def from_arguments(self, arguments: Iterable[str]) -> Iterator[NewItem | Pause]:
        """One item an argument; with the jsonl format each argument is such a line."""
        cut: list[bytes | Pause] = [os.fsencode(argument) for argument in arguments]
        return self._items("argument", cut)

    def from_files(self, names: Iterable[str]) -> Iterator[NewItem | Pause]:
        """The items of files, in order; `-` is stdin.

        Raises:
            InvalidArgument: A file cannot be read.
        """
        for name in names:
            if self.strict and self.rejected:
                return
            if name == "-":
                yield from self._from_stream("line", self.environment.stdin)
                continue
            try:
                with Path(name).open("rb") as stream:
                    yield from self._from_stream(f"{name}, line", stream)
            except OSError as error:
                raise InvalidArgument(f"cannot read {name}: {(error.strerror or '').lower()}")

    def _from_stream(self, where: str, stream: BinaryIO) -> Iterator[NewItem | Pause]:
        flush = self.environment.flush
        if self.input_format is InputFormat.RAW:
            return self._items("input", [whole(stream, flush)], keep_empty=True)
        separator = b"\0" if self.input_format is InputFormat.NUL else b"\n"
        return self._items(where, split(stream, separator, flush))

    def _items(
        self, where: str, records: Iterable[bytes | Pause], *, keep_empty: bool = False
    ) -> Iterator[NewItem | Pause]:
        jsonl = self.input_format is InputFormat.JSONL
        number = 0
        for record in records:
            if isinstance(record, Pause):
                yield record
                continue
            number += 1
            if not record and not keep_empty and where != "argument":
                self.empty += 1
                continue
            try:
                item = self._from_json_line(record) if jsonl else self._with_id(record, None)
                if len(item.data) > ITEM_BYTES_MAX:
                    raise BadRecord("larger than the 512 MB that a server takes")
            except BadRecord as error:
                self.rejected += 1
                self.report(where, number, str(error))
                if self.strict:
                    return
                continue
            yield item

    def _with_id(self, data: bytes, value: Any) -> NewItem:
        rule = self.id_rule.kind
        if rule == "uuid":
            return NewItem(next(self._random), data)
        if rule == "sha256":
            return NewItem(sha256(data).hexdigest().encode("ascii"), data)
        if rule == "line":
            if not data:
                raise BadRecord("empty data cannot be its own ID")
            return NewItem(data, data)
        return NewItem(self._id_in_field(data, value), data)

    def _id_in_field(self, data: bytes, value: Any) -> bytes:
        name = self.id_rule.name
        if value is None:
            try:
                value = json.loads(data)
            except ValueError as error:
                raise BadRecord(f"its data is not JSON, so it has no field {name!r}: {error}")
        if not isinstance(value, dict) or value.get(name) in (None, ""):
            raise BadRecord(f"its data has no field {name!r}")
        return _compact(value[name])

    def _from_json_line(self, line: bytes) -> NewItem:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BadRecord(f"not JSON: {error}")
        except RecursionError:
            raise BadRecord("not JSON that can be read: nested too deeply")
        if not isinstance(record, dict):
            raise BadRecord("not a JSON object with data or data_b64")
        if record.get("delay") is not None:
            raise BadRecord("delay is not supported by this version")
        value: Any = None
        if record.get("data_b64") is not None:
            data = _from_base64(record["data_b64"], "data_b64")
        elif "data" in record:
            value = record["data"]
            data = _compact(value)
        else:
            raise BadRecord("it has neither data nor data_b64")
        if record.get("id_b64") is not None:
            item_id = _from_base64(record["id_b64"], "id_b64")
        elif record.get("id") is not None:
            item_id = _compact(record["id"])
        else:
            return self._with_id(data, value)
        if not item_id:
            raise BadRecord("its id is empty")
        return NewItem(item_id, data)


def _compact(value: Any) -> bytes:
    """A string's own text; any other JSON value as compact JSON."""
    try:
        if isinstance(value, str):
            return value.encode("utf-8")
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise BadRecord("it holds half of a surrogate pair, which is no text")


def _from_base64(text: Any, name: str) -> bytes:
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise BadRecord(f"{name} is not base64")
