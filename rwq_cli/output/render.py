"""Writes a report in the requested format."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rwq_cli.core.errors import ServerError
from rwq_cli.exit_codes import ExitCode, ExitStatus, batch_status
from rwq_cli.output.encode import to_indented_json, to_json
from rwq_cli.output.machine import SharedWriter, Writer, write_fields
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.report import (
    Batch,
    Records,
    Report,
    ReportsByQueue,
    ReportStream,
    View,
)

if TYPE_CHECKING:
    from rwq_cli.output.screen import Piece

T = TypeVar("T")


def render(report: Report, options: OutputOptions) -> ExitCode:
    """Write a report, and return its exit code.

    Raises:
        RwqError: Reading the records failed.
        OSError: stdout cannot be written.
    """
    if isinstance(report, Batch):
        return _render_batch(report, options)
    if isinstance(report, Records):
        try:
            status = _render_records(report, options)
            options.environment.stdout.flush()
            return status
        except OSError as error:
            if report.if_unwritten and not isinstance(error, BrokenPipeError):
                options.environment.error(report.if_unwritten)
            raise
    if isinstance(report, ReportsByQueue):
        return _render_several(report, options)
    return _render_endless(report, options)


class _Part(NamedTuple):
    """One report of several.

    Attributes:
        name: Its queue's name; empty if notes do not name it.
        writer: Writes the records of all.
        is_first: Whether it is the first.
    """

    name: str
    writer: SharedWriter
    is_first: bool

    def note(self, line: str) -> str:
        """A note that names the queue."""
        return f"{self.name}: {line}" if self.name else line


_COUNTS: View[dict[str, Any]] = View(lambda counts: counts, None, {})


def _render_several(report: ReportsByQueue, options: OutputOptions) -> ExitCode:
    """Write the reports as one; batches in which nothing was done share one summary."""
    environment = options.environment
    writer = SharedWriter(_COUNTS, options)
    statuses: list[ExitCode] = []
    idle: list[Batch[Any]] = []
    has_work = False
    for name, each in report.reports:
        part = _Part(name, writer, not statuses)
        if isinstance(each, Records):
            statuses.append(_render_records(each, options, part))
            continue
        statuses.append(_render_batch(each, options, part))
        if any(each.totals().values()):
            has_work = True
        else:
            idle.append(each)
    if statuses or options.format is OutputFormat.JSON:
        writer.end_all()
    environment.stdout.flush()
    if idle and not has_work and options.format is not OutputFormat.JSON:
        where = "one queue" if len(idle) == 1 else f"{len(idle):,} queues"
        environment.note(f"{idle[0].done()} in {where}{idle[0].summary_end()}")
    status = max(statuses, default=ExitStatus.OK)
    is_mixed = has_work and status is ExitStatus.NO and ExitStatus.OK in statuses
    return ExitStatus.PARTIAL if is_mixed else status


def _render_endless(report: ReportStream, options: OutputOptions) -> ExitStatus:
    """Write each report when its work is done; those of nothing are left out."""
    environment = options.environment
    writer = SharedWriter(_COUNTS, options)
    with report.running:
        for name, batch in report.reports:
            part = _Part(name, writer, is_first=False)
            try:
                _render_batch(batch, options, part)
            except ServerError as error:
                if any(batch.totals().values()):
                    environment.error(_summary(batch, part))
                report.failed(error)
            # Raises if nobody reads the results any more.
            environment.stdout.flush()
    return ExitStatus.OK


def _render_records(
    report: Records[Any], options: OutputOptions, part: _Part | None = None
) -> ExitCode:
    records = report.records
    if options.is_special:
        from rwq_cli.output.fields import check_format

        check_format(report.view, options, has_ids=report.id_batches is not None)
    if options.is_ordered:
        from rwq_cli.output.fields import in_order

        records = in_order(report.view, records, options)
    report = report._replace(view=_with_fields(report.view, options))
    environment = options.environment
    total = missing = 0

    def counted() -> Iterator[Any]:
        nonlocal total, missing
        opening = report.opening
        for record in _progress_until_first(records, options):
            if opening:
                environment.note(opening)
                opening = None
            total += 1
            missing += (is_missing := report.is_missing(record))
            if note := report.note(record, options.format):
                # The reason for no output is an error, which --quiet does not hide.
                (environment.error if is_missing else environment.note)(note)
            yield record

    is_plain_ids = options.format is OutputFormat.IDS and not options.is_ordered
    if is_plain_ids and report.id_batches is not None:
        writer = _writer(report, options, part)
        total = writer.write_ids(_progress_until_first(report.id_batches, options))
    else:
        _write_records(report, counted(), options, part)
    _end_records(report, total, options, part)
    if (status := report.status()) is not None:
        return status
    if report.fails_if_empty and not total:
        return ExitStatus.NO
    return batch_status(total - missing, missing)


def _end_records(
    report: Records[Any], total: int, options: OutputOptions, part: _Part | None
) -> None:
    """Write what follows the records: the sentence for none, the footer and the closing note."""
    environment = options.environment
    if not total and (empty := report.empty()):
        if options.format.is_for_people and not environment.quiet:
            environment.stdout.write(f"{empty}\n".encode())
        elif report.fails_if_empty:
            environment.note(empty)
    shows_footer = options.format.is_for_people or environment.stderr_is_terminal
    footer = report.footer(total) if total and shows_footer else None
    if (
        footer
        and options.colour
        and options.format.is_for_people
        and environment.stderr_is_terminal
    ):
        from rwq_cli.output.screen import styled

        footer = styled(footer, "dim")
    closing = report.closing()
    if footer or closing:
        environment.flush()
    if footer:
        environment.note(part.note(footer) if part else footer)
    if closing:
        # A report that is watched has it at each time.
        environment.note(part.note(closing) if part else closing, once=True)


def _write_records(
    report: Records[T], records: Iterator[T], options: OutputOptions, part: _Part | None
) -> None:
    view, output, stdout = report.view, options.format, options.environment.stdout
    if report.text is not None and (output.is_for_people or output is OutputFormat.PLAIN):
        stdout.write(report.text.encode())
    elif output.is_for_people:
        from rwq_cli.output.table import write_sections, write_table

        if part:
            records = _headed(part, records, options)
        has_wide = output is OutputFormat.WIDE and view.all_columns
        write = write_table if view.sections is None or has_wide else write_sections
        write(view, records, options)
    elif (
        output is OutputFormat.PLAIN and not options.fields and (report.is_one or not view.columns)
    ):
        write_fields(stdout, view, records)
    elif output is OutputFormat.JSON and report.is_one:
        encode = to_indented_json if options.environment.stdout_is_terminal else to_json
        found = list(records)
        if not found and report.nothing is not None:
            found = [report.nothing]
        for record in found:
            stdout.write(encode(view.fields(record)) + b"\n")
    else:
        _writer(report, options, part).write_all(records)


def _headed(part: _Part, records: Iterator[T], options: OutputOptions) -> Iterator[T]:
    """The records; above the first one, a line with the name of their queue."""
    for number, record in enumerate(records):
        if not number:
            from rwq_cli.output.screen import print_lines

            gap: list[list[Piece]] = [] if part.is_first else [[]]
            print_lines([*gap, [(part.name, "bold")]], options)
        yield record


def _writer(report: Records[T], options: OutputOptions, part: _Part | None) -> Writer[T]:
    if part:
        return part.writer.use(report.view)
    return Writer(report.view, options, bare=report.is_one or report.unframed_data)


def _render_batch(
    report: Batch[Any], options: OutputOptions, part: _Part | None = None
) -> ExitStatus:
    """Do the work, and write each record if the format has records.

    If stdout is closed (`rwq complete - | head`) or full, the work continues to its end.
    """
    environment, output = options.environment, options.format
    view = _unsorted_view(report.view, options)
    writer = None
    if output in (OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS):
        writer = part.writer.use(view) if part else Writer(view, options)
    try:
        failure = _write_batches(report, writer, options)
    except KeyboardInterrupt:
        # Report what was done so far.
        options.end_progress()
        if not part or any(report.totals().values()):
            environment.error(f"interrupted: {_summary(report, part)}")
        raise
    options.end_progress()
    if not output.is_for_programs:
        for line in report.failure_lines():
            environment.error(line)
    if report.first_records and (output.is_for_people or output is OutputFormat.PLAIN):
        for line in report.preview_lines():
            environment.note(part.note(line) if part else line)
    try:
        if failure:
            raise failure
        if writer is not None:
            writer.end()
        if output is OutputFormat.JSON:
            if part:
                part.writer.write(report.summary_fields())
            else:
                environment.stdout.write(to_json(report.summary_fields()) + b"\n")
        environment.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError:
        environment.note(_summary(report, part))
        raise
    if output is not OutputFormat.JSON and (not part or any(report.totals().values())):
        summary_if_quiet = report.summary_if_quiet and any(report.counts.values())
        (environment.error if summary_if_quiet else environment.note)(_summary(report, part))
    return report.status()


def _write_batches(
    report: Batch[T], writer: Writer[T] | None, options: OutputOptions
) -> OSError | None:
    """Do all of the work, and write the records while stdout takes them; return why it does not."""
    shows_all = report.shows_all and options.format is not OutputFormat.IDS
    failure: OSError | None = None
    for batch in report.batches:
        report.add(batch)
        if writer is None or failure:
            continue
        if options.environment.stdout_is_terminal:
            options.end_progress()
        try:
            for record in batch:
                if shows_all or report.word(record) in report.shown:
                    writer.write(record)
        except OSError as error:
            failure = error
    return failure


def _summary(report: Batch[Any], part: _Part | None) -> str:
    return part.note(report.summary()) if part else report.summary()


def _unsorted_view(view: View[T], options: OutputOptions) -> View[T]:
    """The view with the requested fields, for records that are written as they arrive."""
    if options.is_ordered:
        from rwq_cli.output.fields import check_order

        check_order(options)
    return _with_fields(view, options)


def _with_fields(view: View[T], options: OutputOptions) -> View[T]:
    """The view with the requested fields."""
    if options.fields is None:
        return view
    from rwq_cli.output.fields import with_fields

    return with_fields(view, options.fields)


def _progress_until_first(records: Iterable[T], options: OutputOptions) -> Iterator[T]:
    """The records. On a terminal the progress line ends before the first one is written."""
    for record in records:
        if options.environment.stdout_is_terminal:
            options.end_progress()
        yield record
    options.end_progress()
