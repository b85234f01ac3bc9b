"""Output of commands that list or describe records.

    shown = out.table(queue.items(...), ITEM_FIELDS, ("position", "id", "bytes"), limit=50)
    out.footer(lambda: f"{shown} shown of {queue.lengths().waiting} waiting in jobs")

    out.describe(shown_items(...), SHOWN_FIELDS, sections_of)

Both stream: a record is read when it is written. A generator may write notes between its records.
`--sort`, `--reverse` and `--by` are applied here: the command then passes all its records, and
`limit`. For what a command did to items, see `output.report`.
"""

import csv
import operator
from codecs import getwriter
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nlargest, nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.escape import JsonText, escaped
from rwq_cli.output.field import Cut, Field, Fields, counted_by, plain, to_json
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.sections import Section

if TYPE_CHECKING:
    from rwq_cli.output.painter import Painter

T = TypeVar("T")
# A column: the name of a field, or a field that only a table has.
Column = str | Field[Any]


class HasUnfinished(Protocol):
    """What knows what a run has done, if Ctrl-C ends it."""

    def unfinished(self) -> str:
        """Return what was done so far; empty if it was written already."""


class Output:
    """Writes the records of one run in its format; if the output `continues`, `end` ends it.

    Attributes:
        continues: Whether more tables follow: `end` writes what follows the last record.
        is_cut: Whether there were more records than the limit, of those that are sorted or counted.
        report: What the run does to items, once it has begun.
    """

    report: HasUnfinished | None = None

    def __init__(self, options: OutputOptions) -> None:
        self.options = options
        self.continues = self.is_cut = False
        self._environment = options.environment
        self._written = self._changed_ids = 0
        # Until `use` is called, which it is not if there are no queues.
        self._fields: Fields[Any] = Fields("")
        self._table: Sequence[Field[Any]] = ()

    def table(
        self,
        records: Iterable[Any],
        fields: Fields[Any],
        columns: Sequence[Column],
        *,
        plain_columns: Sequence[Column] = (),
        wide: Sequence[Column] = (),
        empty: str | Callable[[], str] = "",
        id_batches: Iterable[Sequence[bytes]] | None = None,
        unframed: bool = False,
        csv_also: Sequence[Column] = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> int:
        """Write a listing; returns the number of records, which are read as they are written."""
        # `columns` are those of tables and CSV; CSV also has `csv_also`. `plain_columns` and `wide`
        # are those of `-o plain` and `-o wide`, if different. `empty` is written instead of a table
        # without rows. For `-o ids`, `id_batches` are read instead of the records. `limit` and
        # `offset` are for records that are sorted or counted. With `unframed`, `-o data` adds
        # nothing to the bytes.
        options, output = self.options, self.options.output
        if options.by is None:
            fields = fields.shown_as(_fields_of((*wide, *columns), fields))
        records, fields = self._arranged(records, fields, limit, offset)
        is_chosen = fields.is_chosen
        if is_chosen or options.by is not None:
            columns, plain_columns, wide, csv_also = fields.columns(), (), (), ()
        records, count = progress_until_first(records, options), 0
        if output.is_table:
            from rwq_cli.output.tables import write_table

            is_wide = output is OutputFormat.WIDE and not is_chosen
            visible = _fields_of(wide if is_wide else columns, fields) or fields.columns()
            visible = _ranked(visible) if is_chosen else visible
            count = write_table(
                visible, records, self.painter, keeps_all=is_chosen, is_wide=is_wide
            )
            sentence = empty if isinstance(empty, str) else empty() if not count else ""
            if not count and sentence and not self._environment.quiet:
                self._environment.stdout.write(f"{sentence}\n".encode())
        else:
            lines, in_csv = plain_columns or columns, (*columns, *csv_also)
            self.use(fields, lines, in_csv, unframed=unframed)
            if output is OutputFormat.IDS and id_batches is not None and not options.reads_all:
                for ids in progress_until_first(id_batches, options):
                    self._write_ids(ids)
                    count += len(ids)
            else:
                for record in records:
                    self.write(record)
                    count += 1
            self._end()
        self._environment.stdout.flush()
        return count

    def _arranged(
        self, records: Iterable[Any], fields: Fields[Any], limit: int | None, offset: int
    ) -> tuple[Iterable[Any], Fields[Any]]:
        """Count, sort and limit records as the options say; also returns the chosen fields."""
        options = self.options
        if options.is_special:
            check(fields, options)
        # One more than are written tells whether there are more.
        end = None if limit is None else offset + limit + 1
        if options.by is not None:
            records, fields = counted_by(records, fields, options.by)
        if options.is_ordered:
            records = in_order(records, fields, options, end)
        if options.reads_all:
            records = self._limited(islice(records, offset, None), limit)
        return records, fields if options.fields is None else fields.only(options.fields)

    def _limited(self, records: Iterable[T], limit: int | None) -> Iterator[T]:
        """Yield the first records, and note whether there are more."""
        for number, record in enumerate(records):
            self.is_cut = number == limit
            if self.is_cut:
                return
            yield record

    def describe(
        self,
        records: Iterable[T],
        fields: Fields[T],
        sections: Callable[[T], Sequence[Section]] = lambda _record: (),
        *,
        is_one: bool = True,
        text: str | None = None,
        csv_columns: Sequence[Column] = (),
    ) -> int:
        """Write detailed records; returns their number."""
        # `text` replaces the sections, and the lines of `plain`. With `is_one`, JSON is an object.
        options, out = self.options, self._environment.stdout
        is_object = options.output is OutputFormat.JSON and is_one
        is_text = options.output.is_table or options.output is OutputFormat.PLAIN
        if options.by is not None or (options.fields is not None and not is_object):
            return self.table(records, fields, ())
        if not (is_text or is_object):
            return self.table(records, fields, csv_columns, unframed=is_one)
        records, fields = self._arranged(records, fields, None, 0)
        count = 0
        for count, record in enumerate(progress_until_first(records, options), 1):
            if is_object:
                line = to_json(fields.json(record))
                if self._environment.stdout_is_terminal:
                    from rwq_cli.output.json_text import indented

                    line = indented(line)
                out.write(line + b"\n")
            elif text is None and options.output is OutputFormat.PLAIN:
                lines = [f"{name}\t{plain(value)}\n" for name, value in fields.flat(record).items()]
                out.write("".join(["\n" if count > 1 else "", *lines]).encode())
            elif text is None:
                self.sections(sections(record), is_first=count == 1, by_rich=is_one)
        if text is not None and is_text:
            out.write(text.encode())
        out.flush()
        return count

    def text(self, text: str) -> None:
        self.options.end_progress()
        self._environment.stdout.write(text.encode())

    def end(self) -> None:
        """Write what follows the last record."""
        self.continues = False
        self._end()
        self._environment.stdout.flush()

    def _end(self) -> None:
        if self.continues:
            return
        if self.options.output is OutputFormat.JSON:
            self._environment.stdout.write(b"\n]\n" if self._written else b"[]\n")
        if self.options.output is OutputFormat.CSV:
            self._write_header()
        if self._changed_ids:
            self._environment.note(
                "IDs that are not UTF-8 or hold control characters are shown escaped "
                f"({self._changed_ids:,}); -0 prints them unescaped"
            )

    def use(
        self,
        fields: Fields[Any],
        columns: Sequence[Column] = (),
        table: Sequence[Column] = (),
        *,
        unframed: bool = False,
    ) -> None:
        # Without `table`, CSV has all fields. With `unframed`, nothing follows the bytes of `data`.
        self._fields, self._write = fields, self._environment.stdout.write
        self._columns = _fields_of(columns, fields) or fields.columns()
        self._table = [] if fields.is_chosen else _fields_of(table, fields)
        self._unframed = unframed
        self._csv = csv.writer(getwriter("utf-8")(self._environment.stdout), lineterminator="\n")

    def write(self, record: Any) -> None:
        output, fields, write = self.options.output, self._fields, self._write
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
            self._csv.writerow(map(plain, values))
        elif output is OutputFormat.IDS:
            item_id = fields.id and fields.id.get(record)
            if item_id is not None:
                self._write_ids([item_id.encode() if isinstance(item_id, str) else item_id])
        else:
            data = fields.data and fields.data.get(record)
            end = b"\0" if self.options.null_separated else b"" if self._unframed else b"\n"
            if data is not None:
                write(data)
                write(end)
        self._written += 1

    def write_object(self, value: dict[str, Any]) -> None:
        # Only now: an error before the first record leaves stdout empty.
        self._write(b",\n " if self._written else b"[\n ")
        self._write(to_json(value))
        self._written += 1

    def _write_ids(self, ids: Sequence[bytes]) -> None:
        if self.options.null_separated:
            self._write(b"\0".join((*ids, b"")))
            return
        joined = b"".join(ids)
        if not (joined.isascii() and joined.decode().isprintable()):
            escaped_ids = [escaped(item_id).encode() for item_id in ids]
            self._changed_ids += sum(map(operator.ne, escaped_ids, ids))
            ids = escaped_ids
        self._write(b"\n".join((*ids, b"")))

    def _write_header(self) -> None:
        if self._fields.all and not self._written:
            titles = [column.flat_name for column in self._table]
            self._csv.writerow(titles or self._fields.flat_names)

    def sections(
        self, sections: Iterable[Section], *, is_first: bool = True, by_rich: bool = True
    ) -> None:
        """Draw sections, with an empty line between them.

        Args:
            is_first: Whether no section was drawn before.
            by_rich: Whether there are few: rich draws them.
        """
        for section in sections:
            if not is_first:
                self.painter.gap()
            self.painter.section(section, by_rich=by_rich)
            is_first = False

    @cached_property
    def painter(self) -> "Painter":
        from rwq_cli.output.painter import Painter

        return Painter(self.options)

    def footer(self, line: Callable[[], str]) -> None:
        """Write the note that `line` returns below a table; other formats, only to a terminal."""
        environment, is_table = self._environment, self.options.output.is_table
        if not is_table and (self.continues or not environment.stderr_is_terminal):
            return
        text = line()
        if self.options.colour and is_table and environment.stderr_is_terminal:
            from rwq_cli.output.console import styled

            text = styled(text, "dim")
        environment.flush()
        environment.note(text)

    def note(self, line: str) -> None:
        self._environment.flush()
        self._environment.note(line, once=True)


def _fields_of(columns: Sequence[Column], fields: Fields[T]) -> list[Field[T]]:
    return [fields[column] if isinstance(column, str) else column for column in columns]


def _ranked(columns: Sequence[Field[T]]) -> list[Field[T]]:
    """Rank columns so that the last are left out first, and the first one never."""
    return [
        column._replace(
            rank=index and 3 + len(columns) - index,
            cut=column.cut or (None if column.right else Cut.END),
        )
        for index, column in enumerate(columns)
    ]


def progress_until_first(records: Iterable[T], options: OutputOptions) -> Iterator[T]:
    """Yield the records; on a terminal, the progress line ends before the first is written."""
    for record in records:
        if options.environment.stdout_is_terminal:
            options.end_progress()
        yield record
    options.end_progress()


def check(fields: Fields[Any], options: OutputOptions) -> None:
    output = options.output
    if options.by is not None and not fields.is_stream:
        fields = counted_by((), fields, options.by)[1]
    if options.fields is not None:
        # A summary has fields of its own.
        if not (fields.has_summary and output is OutputFormat.JSON):
            fields.only(options.fields)
        if output.is_raw:
            raise InvalidArgument(f"--fields cannot be used with -o {output}", "use -o plain")
    if fields.is_stream:
        if options.reads_all:
            raise InvalidArgument(
                "--sort, --reverse and --by work only for listings",
                "this command streams its records",
            )
        return
    if options.sort is not None:
        fields.columns_of(options.sort)
    if output is OutputFormat.IDS and fields.has_other_ids and options.is_ordered:
        raise InvalidArgument(
            "-o ids prints items, and --sort and --reverse order what this command lists",
            "leave them out",
        )
    if output.is_raw and not fields.has(output):
        others = [other for other in OutputFormat if not other.is_raw]
        raise InvalidArgument(
            f"-o {output} has nothing to print for this command", f"use one of {', '.join(others)}"
        )


def in_order(
    records: Iterable[T], fields: Fields[T], options: OutputOptions, count: int | None
) -> Iterator[T]:
    """Yield the first `count` records in the requested order; all are read, only these kept."""
    if options.sort is None:
        yield from reversed(deque(records, count))
        return
    value, is_reversed = fields.columns_of(options.sort)[0].get, options.reverse

    def key(record: T) -> tuple[bool, object]:
        content = value(record)
        # Records without a value come last, in either order.
        return (content is None) is not is_reversed, None if content is None else _sort_key(content)

    if count is None:
        yield from sorted(records, key=key, reverse=is_reversed)
    else:
        yield from (nlargest if is_reversed else nsmallest)(count, records, key=key)


def _sort_key(value: Any) -> tuple[bool, float, bytes]:
    """Order numbers by their value, before texts by their bytes."""
    if isinstance(value, JsonText):
        # A number inside JSON data.
        try:
            value = float(value)
        except ValueError:
            return True, 0, value.encode()
    if isinstance(value, int | float):
        return False, value, b""
    return True, 0, value if isinstance(value, bytes) else str(value).encode()
