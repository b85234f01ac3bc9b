"""What a run writes: the records that it lists or describes, and what it did to items.

    written = out.table(queue.items(...), ITEM_FIELDS, ("position", "id", "bytes"), limit=50)
    out.footer(lambda: f"{written} shown of {queue.lengths().waiting} waiting in jobs")

    out.describe(shown_items(...), EXPLANATION_FIELDS, sections_of)

    undo = Undo(settings, queue, "rm")
    with undo.report(_KIND, dry_run=choice.dry_run) as out:
        out.report_all(remove(queue, ids, undo, dry_run=choice.dry_run))   # or out.report_batch(…)
    return out.finish(undo_file=undo.name)

All stream: a record is read when it is written. A generator may write notes between its records.
`--sort`, `--reverse` and `--by` are applied here: the command then passes all its records, and
`limit`. Of what is done to items, rows are written as they come, if the format has rows, and
counted in a tally. `finish` writes the first failures by name and the summary, or the JSON object,
and returns the exit code; its arguments are further fields of the object. If Ctrl-C or a failure
ends the run, the summary says what was done so far. A command on several queues calls
`continue_until_end`, finishes the tally of each, and returns `end()`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rwq_cli.core.errors import ServerError
from rwq_cli.exit_codes import ExitStatus, mark_partial
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Cut, Field, Fields, count_by_value, format_plain, to_json
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.order import check, sort_records
from rwq_cli.output.rows import Layout, RowWriter
from rwq_cli.output.sections import Section
from rwq_cli.output.tally import FinishedTallies, OutcomeRecord, Tally

if TYPE_CHECKING:
    from rwq_cli.output.painter import Painter

T = TypeVar("T")
# A column: the name of a field, or a field that only a table has.
Column = str | Field[Any]
# The formats in which what is done has a row for each item.
_WITH_ROWS = (OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS)


class Output:
    """What a run writes in its format: the records that it lists, and what it did to items.

    Attributes:
        is_cut: Whether there were more records than the limit, of those that are sorted or counted.
        interrupted_text: What Ctrl-C says once a run has begun, while no tally has work.
    """

    interrupted_text: str | None = None

    def __init__(self, options: OutputOptions) -> None:
        self.options = options
        self.is_cut = self._continues = False
        self._environment = options.environment
        self._layout: Layout | None = None
        self._tally: Tally[Any] | None = None
        self._finished = FinishedTallies()
        # The error of a write, after which work goes on without its rows.
        self._unwritten: OSError | None = None
        # Ctrl-C may come after the summary.
        self._is_summarized = False

    @cached_property
    def _rows(self) -> RowWriter:
        return RowWriter(self.options)

    @cached_property
    def painter(self) -> "Painter":
        from rwq_cli.output.painter import Painter

        return Painter(self.options)

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
            fields = fields.shown_as(_resolve_columns((*wide, *columns), fields))
        records, fields = self._arranged(records, fields, limit, offset)
        is_chosen = fields.is_chosen
        if is_chosen or options.by is not None:
            columns, plain_columns, wide, csv_also = fields.columns(), (), (), ()
        records, count = end_progress_at_first(records, options), 0
        if output.is_table:
            from rwq_cli.output.tables import write_table

            is_wide = output is OutputFormat.WIDE and not is_chosen
            visible = _resolve_columns(wide if is_wide else columns, fields) or fields.columns()
            visible = _rank_columns(visible) if is_chosen else visible
            count = write_table(
                visible, records, self.painter, keeps_all=is_chosen, is_wide=is_wide
            )
            sentence = empty if isinstance(empty, str) else empty() if not count else ""
            if not count and sentence and not self._environment.quiet:
                self._environment.stdout.write(f"{sentence}\n".encode())
        else:
            lines = _resolve_columns(plain_columns or columns, fields) or fields.columns()
            in_csv = [] if fields.is_chosen else _resolve_columns((*columns, *csv_also), fields)
            self._layout = layout = Layout(fields, lines, in_csv, unframed)
            if output is OutputFormat.IDS and id_batches is not None and not options.reads_all:
                for ids in end_progress_at_first(id_batches, options):
                    self._rows.write_ids(ids)
                    count += len(ids)
            else:
                for record in records:
                    self._rows.write(layout, record)
                    count += 1
            if not self._continues:
                self._rows.end(layout)
        self._environment.stdout.flush()
        return count

    def _arranged(
        self, records: Iterable[Any], fields: Fields[Any], limit: int | None, offset: int
    ) -> tuple[Iterable[Any], Fields[Any]]:
        """Count, sort and limit records as the options say; also returns the chosen fields."""
        options = self.options
        if options.reshapes_records:
            check(fields, options)
        # One more than are written tells whether there are more.
        end = None if limit is None else offset + limit + 1
        if options.by is not None:
            records, fields = count_by_value(records, fields, options.by)
        if options.is_ordered:
            records = sort_records(records, fields, options, end)
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
        for count, record in enumerate(end_progress_at_first(records, options), 1):
            if is_object:
                line = to_json(fields.json(record))
                if self._environment.stdout_is_terminal:
                    from rwq_cli.output.json_text import indented

                    line = indented(line)
                out.write(line + b"\n")
            elif text is None and options.output is OutputFormat.PLAIN:
                lines = [
                    f"{name}\t{format_plain(value)}\n"
                    for name, value in fields.flat(record).items()
                ]
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
                self.painter.lines([[]])
            self.painter.section(section, by_rich=by_rich)
            is_first = False

    def footer(self, line: Callable[[], str]) -> None:
        """Write the note that `line` returns below a table; other formats, only to a terminal."""
        environment, is_table = self._environment, self.options.output.is_table
        if not is_table and (self._continues or not environment.stderr_is_terminal):
            return
        text = line()
        if self.options.colour and is_table and environment.stderr_is_terminal:
            from rwq_cli.output.console import apply_style

            text = apply_style(text, "dim")
        environment.flush()
        environment.note(text)

    def note(self, line: str) -> None:
        self._environment.flush()
        self._environment.note(line, once=True)

    def continue_until_end(self) -> None:
        """Let more tables, or tallies, follow the first one; `end` writes what follows the last."""
        self._continues = True

    def end(self) -> ExitStatus:
        """Write what follows the last record; return the exit code of all tallies."""
        environment, output, finished = self._environment, self.options.output, self._finished
        if self._continues:
            self._continues = False
            if output is OutputFormat.JSON or output in _WITH_ROWS:
                self._rows.end(self._layout)
            environment.stdout.flush()
            if (line := finished.summarize_idle()) and output is not OutputFormat.JSON:
                environment.note(line)
        return finished.status

    def begin_tally(self, tally: Tally[Any]) -> Self:
        """Begin to count what is done in this tally, within a `with` block."""
        names, fields = self.options.fields, tally.kind.fields
        if names and self.options.output in _WITH_ROWS:
            fields = fields.only(names)
        self._tally, self._layout = tally, Layout(fields, fields.columns())
        self._unwritten, self._is_summarized = None, False
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Say what was done so far if a failure ended the block."""
        # The error of a lost server says itself what was acknowledged.
        if isinstance(error, Exception) and not isinstance(error, ServerError):
            self.note_unfinished()
            if self.tally.successes and not self.tally.dry_run:
                mark_partial(error)

    @property
    def tally(self) -> Tally[Any]:
        """The counts of what is done; with several queues, in the last one."""
        assert self._tally is not None
        return self._tally

    def describe_unfinished(self) -> str | None:
        """Say what a run that Ctrl-C ended has done; "" if it was written, None if not begun."""
        tally = self._tally
        if tally is None or (self._continues and not tally.has_work):
            return "" if self._finished.has_work else self.interrupted_text
        return "" if self._is_summarized else tally.summary()

    def note_unfinished(self) -> None:
        if self.tally.has_work:
            self.options.end_progress()
            self._explained()
            self._environment.error(self.tally.labelled(self.tally.summary()))

    def _explained(self) -> list[tuple[Any, str]]:
        """Name the first failures, each with its reason, for people; return both."""
        reasons = self.tally.reasons()
        if not self.options.output.is_machine_readable:
            for outcome, reason in reasons:
                item_id = escaped(self.tally.kind.item_id(outcome))
                self._environment.error(f"rwq: {item_id}: {reason}")
        return reasons

    def report_all(self, outcomes: Any) -> None:
        """Count and write outcomes of the core, which does the work while they are read."""
        for batch in outcomes.batches:
            self.report_batch(batch)

    def report_batch(self, batch: Any, queue: bytes | None = None) -> None:
        """Count and write a batch of outcomes; the queue is that of the tally, unless given."""
        self.tally.add(batch)
        if self.options.output in _WITH_ROWS and self._unwritten is None:
            self._write(batch, self.tally.queue if queue is None else queue)

    def _write(self, batch: Iterable[Any], queue: bytes | None) -> None:
        """Write rows. If stdout is closed (`rwq complete - | head`) or full, work goes on."""
        if self._environment.stdout_is_terminal:
            self.options.end_progress()
        kind, dry_run, layout = self.tally.kind, self.tally.dry_run, self._layout
        assert layout is not None
        shows_all = kind.shows_all and self.options.output is not OutputFormat.IDS
        try:
            for outcome in batch:
                if shows_all or kind.word(outcome) in kind.printed:
                    self._rows.write(layout, OutcomeRecord(queue, outcome, dry_run))
        except OSError as error:
            self._unwritten = error

    def finish(self, **facts: object) -> ExitStatus:
        """Write what follows the rows, and return the exit code; JSON includes these facts."""
        environment, output, tally = self._environment, self.options.output, self.tally
        with self:
            self.options.end_progress()
            reasons = self._explained()
            if output.is_table or output is OutputFormat.PLAIN:
                for line in tally.preview_lines():
                    environment.note(tally.labelled(line))
            with suppress(BrokenPipeError):
                self._end_tally(facts, reasons)
            self._is_summarized = True
            has_summary = not self._continues or tally.needs_own_summary
            if output is not OutputFormat.JSON and has_summary:
                write = environment.error if tally.is_news else environment.note
                write(tally.labelled(tally.summary()))
            return self._finished.add(tally)

    def _end_tally(self, facts: Mapping[str, object], reasons: Sequence[tuple[Any, str]]) -> None:
        stdout, output = self._environment.stdout, self.options.output
        if self._unwritten is not None:
            raise self._unwritten
        if output is OutputFormat.JSON:
            summary = self.tally.json(facts, reasons, self.options.fields)
            if self._continues:
                self._rows.write_object(summary)
            else:
                stdout.write(to_json(summary) + b"\n")
        elif output in _WITH_ROWS and not self._continues:
            self._rows.end(self._layout)
        stdout.flush()


def _resolve_columns(columns: Sequence[Column], fields: Fields[T]) -> list[Field[T]]:
    return [fields[column] if isinstance(column, str) else column for column in columns]


def _rank_columns(columns: Sequence[Field[T]]) -> list[Field[T]]:
    """Rank columns so that the last are left out first, and the first one never."""
    return [
        column._replace(
            rank=index and 3 + len(columns) - index,
            cut=column.cut or (None if column.right else Cut.END),
        )
        for index, column in enumerate(columns)
    ]


def end_progress_at_first(records: Iterable[T], options: OutputOptions) -> Iterator[T]:
    """Yield the records; on a terminal, the progress line ends before the first is written."""
    for record in records:
        if options.environment.stdout_is_terminal:
            options.end_progress()
        yield record
    options.end_progress()
