"""Records in the formats that scripts read: plain lines, JSON, CSV, IDs or data."""

import csv
import operator
from codecs import getwriter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields, format_plain, to_json
from rwq_cli.output.options import OutputFormat, OutputOptions


class Layout(NamedTuple):
    """What is written of each record.

    Attributes:
        plain: The columns of plain lines.
        csv: Those of CSV; without any, all fields.
        unframed: Whether nothing follows the bytes of `-o data`.
    """

    fields: Fields[Any]
    plain: Sequence[Field[Any]]
    csv: Sequence[Field[Any]] = ()
    unframed: bool = False


class RowWriter:
    """Writes the records of one run; `end` writes what follows the last one."""

    def __init__(self, options: OutputOptions) -> None:
        self._options, self._write = options, options.environment.stdout.write
        self._csv = csv.writer(getwriter("utf-8")(options.environment.stdout), lineterminator="\n")
        self._written = self._changed_ids = 0

    def write(self, layout: Layout, record: Any) -> None:
        output, fields, write = self._options.output, layout.fields, self._write
        if output is OutputFormat.PLAIN:
            line = "\t".join(format_plain(column.get(record)) for column in layout.plain)
            write(line.encode() + b"\n")
        elif output is OutputFormat.JSON:
            self.write_object(fields.json(record))
            return
        elif output is OutputFormat.JSONL:
            write(to_json(fields.json(record)) + b"\n")
        elif output is OutputFormat.CSV:
            self._write_header(layout)
            values = [column.get(record) for column in layout.csv] or fields.flat(record).values()
            self._csv.writerow(map(format_plain, values))
        elif output is OutputFormat.IDS:
            item_id = fields.id and fields.id.get(record)
            if item_id is not None:
                self.write_ids([item_id.encode() if isinstance(item_id, str) else item_id])
        else:
            data = fields.data and fields.data.get(record)
            end = b"\0" if self._options.null_separated else b"" if layout.unframed else b"\n"
            if data is not None:
                write(data)
                write(end)
        self._written += 1

    def write_object(self, value: dict[str, Any]) -> None:
        # Only now: an error before the first record leaves stdout empty.
        self._write(b",\n " if self._written else b"[\n ")
        self._write(to_json(value))
        self._written += 1

    def write_ids(self, ids: Sequence[bytes]) -> None:
        if self._options.null_separated:
            self._write(b"\0".join((*ids, b"")))
            return
        joined = b"".join(ids)
        if not (joined.isascii() and joined.decode().isprintable()):
            escaped_ids = [escaped(item_id).encode() for item_id in ids]
            self._changed_ids += sum(map(operator.ne, escaped_ids, ids))
            ids = escaped_ids
        self._write(b"\n".join((*ids, b"")))

    def end(self, layout: Layout | None) -> None:
        """Write what follows the last record; without any, there may be no layout."""
        if self._options.output is OutputFormat.JSON:
            self._write(b"\n]\n" if self._written else b"[]\n")
        if self._options.output is OutputFormat.CSV and layout is not None:
            self._write_header(layout)
        if self._changed_ids:
            self._options.environment.note(
                "IDs that are not UTF-8 or hold control characters are shown escaped "
                f"({self._changed_ids:,}); -0 prints them unescaped"
            )

    def _write_header(self, layout: Layout) -> None:
        if not self._written:
            titles = [column.flat_name for column in layout.csv]
            self._csv.writerow(titles or layout.fields.flat_names)
