"""The formats for scripts: plain, json, jsonl, csv, ids and data, streamed record by record."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, Generic, TypeVar

from rwq_cli.output.encode import flat, to_json
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.report import View

T = TypeVar("T")


class Writer(Generic[T]):
    """Writes records in one format.

    Args:
        view: The representation of a record.
        options: The format, which is not a table, and where to write.
        bare: Whether `data` writes nothing after the bytes.
    """

    def __init__(self, view: View[T], options: OutputOptions, *, bare: bool = False) -> None:
        self._environment = options.environment
        self._out = options.environment.stdout
        self._view = view
        self._output = options.format
        self._null_separated = options.null_separated
        self._bare = bare
        self._written = 0
        self._changed_ids = 0
        self._csv_header: list[str] | None = None

    def write_all(self, records: Iterable[T]) -> int:
        """Write all records, and what precedes and follows them; returns their number."""
        for record in records:
            self.write(record)
        self.end()
        return self._written

    def write_ids(self, batches: Iterable[Sequence[bytes]]) -> int:
        """Write IDs, and what follows them; returns their number."""
        written = self._written
        for ids in batches:
            joined = b"".join(ids)
            if not self._null_separated and joined.isascii() and joined.decode().isprintable():
                self._out.write(b"\n".join(ids) + b"\n" if ids else b"")
            else:
                for item_id in ids:
                    self._write_id(item_id)
            self._written += len(ids)
        self.end()
        return self._written - written

    def write(self, record: T) -> None:
        """Write one record."""
        output = self._output
        if output is OutputFormat.PLAIN:
            columns = self._view.plain_columns or self._view.columns
            line = "\t".join(plain(column.raw(record)) for column in columns)
            self._out.write(line.encode() + b"\n")
        elif output is OutputFormat.JSON:
            # Only now: an error before the first record leaves stdout empty.
            self._out.write(b",\n " if self._written else b"[\n ")
            self._out.write(to_json(self._view.fields(record)))
        elif output is OutputFormat.JSONL:
            self._out.write(to_json(self._view.fields(record)) + b"\n")
        elif output is OutputFormat.CSV:
            self._write_csv(self._flat(record))
        elif output is OutputFormat.IDS:
            self._write_id(self._view.item_id(record) if self._view.item_id else None)
        else:
            self._write_data(self._view.data(record) if self._view.data else None)
        self._written += 1

    def end(self) -> None:
        """Write what follows the last record, and a note on escaped IDs."""
        if self._output is OutputFormat.JSON:
            self._out.write(b"\n]\n" if self._written else b"[]\n")
        if self._output is OutputFormat.CSV and not self._written:
            self._write_csv_header(self._flat(self._view.sample))
        if self._changed_ids:
            self._environment.note(
                "IDs that are not UTF-8 or hold control characters are shown escaped "
                f"({self._changed_ids:,}); -0 prints them unescaped"
            )

    def _flat(self, record: T) -> dict[str, Any]:
        return flat(self._view.fields(record), self._view.nested)

    def _write_csv(self, record: dict[str, Any]) -> None:
        if self._csv_header is None:
            self._write_csv_header(record)
        assert self._csv_header is not None
        self._write_csv_line([plain(record.get(name)) for name in self._csv_header])

    def _write_csv_header(self, record: dict[str, Any]) -> None:
        self._csv_header = list(record)
        self._write_csv_line(self._csv_header)

    def _write_csv_line(self, cells: Sequence[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        self._out.write(text.getvalue().encode())

    def _write_id(self, item_id: bytes | None) -> None:
        if item_id is None:
            return
        if self._null_separated:
            self._out.write(item_id + b"\0")
            return
        shown = escaped(item_id).encode()
        self._changed_ids += shown != item_id
        self._out.write(shown + b"\n")

    def _write_data(self, data: bytes | None) -> None:
        if data is None:
            return
        self._out.write(data)
        if self._null_separated:
            self._out.write(b"\0")
        elif not self._bare:
            self._out.write(b"\n")


class SharedWriter(Writer[Any]):
    """Writes the records of several reports as if they were those of one."""

    def use(self, view: View[Any]) -> "SharedWriter":
        """Write records of another report from now on."""
        self._view = view
        return self

    def end(self) -> None:
        """Write nothing, because another report may follow."""

    def end_all(self) -> None:
        """Write what follows the last record of all."""
        super().end()


def plain(value: Any) -> str:
    """A field of a line: a raw number, escaped text, or nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return escaped(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return escaped_text(value)
    return str(value)


def write_fields(stdout: BinaryIO, view: View[T], records: Iterable[T]) -> None:
    """Write a line for each field, its name first, and a blank line between records."""
    for number, record in enumerate(records):
        if number:
            stdout.write(b"\n")
        for name, value in flat(view.fields(record), view.nested).items():
            stdout.write(f"{name}\t{plain(value)}\n".encode())
