"""Items to add, from arguments, files and stdin, in every input format."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import chain
from stat import S_ISFIFO
from typing import BinaryIO

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.add import BatchBuilder, Due, NewItems
from rwq_cli.core.keys import is_text
from rwq_cli.environment import Environment
from rwq_cli.input.streams import ITEM_BYTES_MAX, TOO_LARGE, BadRecord, open_input, split, whole


class InputFormat(StrEnum):
    LINES = "lines"
    JSONL = "jsonl"
    NUL = "nul"
    RAW = "raw"


IdRule = Callable[[bytes], bytes]
_JSONL = InputFormat.JSONL
_IDS_AT_ONCE = 1024
NOT_TEXT = "its ID is not UTF-8, and workers and cleaners of other languages would fail on it"
# Records are parsed together up to this size, which exceeds that of a chunk of the stream.
_AT_ONCE_BYTES = 1024 * 1024
# RFC 9562, version 4: the high bits of bytes 6 and 8.
_VERSION = bytes(byte & 0x0F | 0x40 for byte in range(256))
_VARIANT = bytes(byte & 0x3F | 0x80 for byte in range(256))


def random_ids(count: int) -> list[bytes]:
    # One uuid4() per item would take longer than everything else.
    raw = bytearray(os.urandom(16 * count))
    raw[6::16] = raw[6::16].translate(_VERSION)
    raw[8::16] = raw[8::16].translate(_VARIANT)
    digits = raw.hex().encode("ascii")
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


_random_ids = chain.from_iterable(iter(lambda: random_ids(_IDS_AT_ONCE), None))


def random_id(_data: bytes) -> bytes:
    return next(_random_ids)


def parse_id_rule(text: str) -> IdRule:
    """Parse the rule for making IDs: `uuid`, `sha256`, `line`, or `field:NAME`."""
    kind, _, name = text.partition(":")
    if kind == "field" and name:
        from rwq_cli.input.json_lines import field_of

        return lambda data: field_of(data, name)
    rules: dict[str, IdRule] = {
        "uuid": random_id,
        "sha256": lambda data: sha256(data).hexdigest().encode("ascii"),
        "line": bytes,
    }
    if text not in rules:
        raise InvalidArgument(
            f"--id-from cannot be {text!r}", "it must be uuid, sha256, line or field:NAME"
        )
    return rules[text]


def with_id(batches: Iterable[NewItems | Flush], item_id: bytes) -> Iterator[NewItems | Flush]:
    """Give the only item of the batches this ID; raises `InvalidArgument` if there are more."""
    only: NewItems | None = None
    for batch in batches:
        if isinstance(batch, Flush):
            continue
        if only is not None or len(batch.ids) > 1:
            raise InvalidArgument("--id names one item, but there are more", "use --id-from")
        only = batch
    return iter([only._replace(ids=[item_id], random_ids=False)] if only is not None else [])


@dataclass
class RecordReader:
    """Reads items, and counts the records that it skips; with `strict`, it stops at the first."""

    environment: Environment
    input_format: InputFormat
    make_id: IdRule
    _: KW_ONLY
    strict: bool
    # Takes each record that is skipped: its source, its number from 1, and the reason.
    report: Callable[[str, int, str], None]
    # When items without a delay of their own are due.
    due: Due | None = None
    # Takes IDs that are not UTF-8, too.
    binary_ids: bool = False
    rejected: int = 0
    empty: int = 0
    _current: BinaryIO | None = None

    def from_arguments(self, arguments: Iterable[str]) -> Iterator[NewItems | Flush]:
        """Read one item from each argument; with the jsonl format each argument is a line."""
        records = [os.fsencode(argument) for argument in arguments]
        return self._parse_batches("argument", [records], keep_empty=True)

    def from_files(self, names: Iterable[str]) -> Iterator[NewItems | Flush]:
        names = list(names)
        # A mistyped name must not leave half of the files added.
        for name in names:
            # The writer of a named pipe would lose its reader.
            if not os.path.exists(name) or not S_ISFIFO(os.stat(name).st_mode):
                with open_input(self.environment, name):
                    pass
        for name in names:
            if self.strict and self.rejected:
                return
            with open_input(self.environment, name) as stream:
                self._current = stream
                if self.input_format is InputFormat.RAW:
                    record = whole(self.environment, stream)
                    yield from self._parse_batches("input", [[record]], keep_empty=True)
                    continue
                is_nul, is_json = (self.input_format is kind for kind in (InputFormat.NUL, _JSONL))
                separator = b"\0" if is_nul else b"\n"
                options = {"is_json": is_json, "is_text": not is_nul}
                groups = split(self.environment, stream, separator, **options)
                where = "line" if name == "-" else f"{name}, line"
                yield from self._parse_batches(where, groups, keep_empty=False)

    def fraction(self) -> float | None:
        """Return how much of the current file is read, 0 to 1; None for a pipe or a terminal."""
        try:
            descriptor = self._current.fileno() if self._current else -1
            size = os.fstat(descriptor).st_size
            return min(1.0, os.lseek(descriptor, 0, os.SEEK_CUR) / size) if size else None
        except (OSError, ValueError):
            return None

    def _parse_batches(
        self, where: str, groups: Iterable[list[bytes] | Flush], *, keep_empty: bool
    ) -> Iterator[NewItems | Flush]:
        is_json, make_id = self.input_format is _JSONL, self.make_id
        if is_json:
            # Its parser takes as long to import as a short command takes to run.
            from rwq_cli.input.json_lines import parse_record, payloads
        batch, number = BatchBuilder(), 0
        for group in groups:
            if isinstance(group, Flush):
                yield from batch.take()
                yield group
                continue
            for start in range(0, len(group), batch.items_max):
                records = group[start : start + batch.items_max]
                # Records that consist of data alone need not be taken one by one.
                all_data: list[bytes] | None = None
                if make_id is random_id and sum(map(len, records)) <= _AT_ONCE_BYTES:
                    all_data = payloads(records) if is_json else records
                if all_data is not None and (is_json or b"" not in records):
                    yield from batch.take()
                    count = len(records)
                    dues: list[Due | None] | None = [self.due] * count if self.due else None
                    yield NewItems(random_ids(count), all_data, dues, random_ids=True)
                    number += count
                    continue
                for record in records:
                    number += 1
                    if not record and not keep_empty:
                        self.empty += 1
                        continue
                    try:
                        item_id, data, due = None, record, self.due
                        if is_json:
                            item_id, data, due = parse_record(record, self.due)
                        if len(data) > ITEM_BYTES_MAX:
                            raise BadRecord(TOO_LARGE)
                        item_id = make_id(data) if item_id is None else item_id
                        if not item_id:
                            raise BadRecord("empty data cannot be its own ID")
                        if not (self.binary_ids or is_text(item_id)):
                            raise BadRecord(f"{NOT_TEXT}; --binary-ids adds it")
                        if batch.add(item_id, data, due):
                            yield from batch.take()
                    except BadRecord as error:
                        self.rejected += 1
                        self.report(where, number, str(error))
                        if self.strict:
                            yield from batch.take()
                            return
        yield from batch.take()
