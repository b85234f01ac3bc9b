"""The formats for scripts: plain, json, jsonl, csv, ids and data, streamed record by record."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields, plain, to_json
from rwq_cli.output.options import OutputFormat, OutputOptions


class Writer:
    """Writes the records of one run in one format; `use` says of which kind they are."""

    def __init__(self, options: OutputOptions) -> None:
        self._options = options
        self._out = options.environment.stdout
        self._written = 0
        self._changed_ids = 0
        self._has_header = False

    def use(
        self,
        fields: Fields[Any],
        columns: Sequence[Field[Any]] = (),
        table: Sequence[Field[Any]] = (),
        *,
        unframed: bool = False,
    ) -> None:
        # Without `table`, CSV has all fields. With `unframed`, nothing follows the bytes of `data`.
        self._fields = fields
        self._columns = columns or fields.columns()
        self._table = [] if fields.is_chosen else table
        self._unframed = unframed

    def write(self, record: Any) -> None:
        output, fields, write = self._options.format, self._fields, self._out.write
        if output is OutputFormat.PLAIN:
            line = "\t".join(plain(column.get(record)) for column in self._columns)
            write(line.encode() + b"\n")
        elif output is OutputFormat.JSON:
            self.write_object(fields.json(record))
            return
        elif output is OutputFormat.JSONL:
            write(to_json(fields.json(record)) + b"\n")
        elif output is OutputFormat.CSV:
            self._write_header()
            values = [column.get(record) for column in self._table] or fields.flat(record).values()
            self._write_csv(map(plain, values))
        elif output is OutputFormat.IDS:
            item_id = fields.id and fields.id.get(record)
            self._write_id(item_id.encode() if isinstance(item_id, str) else item_id)
        else:
            data = fields.data and fields.data.get(record)
            end = b"\0" if self._options.null_separated else b"" if self._unframed else b"\n"
            if data is not None:
                write(data)
                write(end)
        self._written += 1

    def write_object(self, value: dict[str, Any]) -> None:
        # Only now: an error before the first record leaves stdout empty.
        self._out.write(b",\n " if self._written else b"[\n ")
        self._out.write(to_json(value))
        self._written += 1

    def write_ids(self, batches: Iterable[Sequence[bytes]]) -> int:
        written = 0
        for ids in batches:
            joined = b"".join(ids)
            is_safe = joined.isascii() and joined.decode().isprintable()
            if is_safe and not self._options.null_separated:
                self._out.write(b"\n".join(ids) + b"\n" if ids else b"")
            else:
                for item_id in ids:
                    self._write_id(item_id)
            written += len(ids)
        return written

    def end(self) -> None:
        if self._options.format is OutputFormat.JSON:
            self._out.write(b"\n]\n" if self._written else b"[]\n")
        if self._options.format is OutputFormat.CSV:
            self._write_header()
        if self._changed_ids:
            self._options.environment.note(
                "IDs that are not UTF-8 or hold control characters are shown escaped "
                f"({self._changed_ids:,}); -0 prints them unescaped"
            )

    def _write_header(self) -> None:
        if not self._has_header:
            self._has_header = True
            titles = [column.flat_name for column in self._table]
            self._write_csv(titles or self._fields.flat_names)

    def _write_csv(self, cells: Iterable[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        self._out.write(text.getvalue().encode())

    def _write_id(self, item_id: bytes | None) -> None:
        if item_id is None:
            return
        if self._options.null_separated:
            self._out.write(item_id + b"\0")
            return
        shown = escaped(item_id).encode()
        self._changed_ids += shown != item_id
        self._out.write(shown + b"\n")
