"""From a command's report to bytes on stdout: the format is chosen here, once."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.exit_codes import Code, ExitStatus
from rwq_cli.output import machine
from rwq_cli.output.encode import to_json
from rwq_cli.output.report import (
    Batch,
    Detail,
    Listing,
    Report,
    Stream,
    Text,
    Verdict,
)

T = TypeVar("T")


def render(report: Report, settings: Settings) -> Code:
    """Write a report in the format that the settings ask for.

    Args:
        report: What the command returned.
        settings: The run's settings.

    Raises:
        RwqError: Reading the report's records failed.
        OSError: stdout could not be written.

    Returns:
        The exit code that the report comes to.
    """
    if isinstance(report, Text):
        settings.end_progress()
        settings.environment.stdout.write(report.text.encode())
        return ExitStatus.OK
    if isinstance(report, Batch):
        return _render_batch(report, settings)
    if isinstance(report, Detail):
        return _render_detail(report, settings)
    if isinstance(report, Verdict):
        return _render_verdict(report, settings)
    if isinstance(report, Stream):
        return _render_stream(report, settings)
    return _render_listing(report, settings)


def _render_stream(report: Stream[Any], settings: Settings) -> ExitStatus:
    """Its own lines, unless another format was asked for."""
    output, environment = settings.output, settings.environment
    written = 0
    if output in (OutputFormat.TABLE, OutputFormat.PLAIN, OutputFormat.JSONL):
        environment.stdout.write(report.header)
        for batch in _progress_until_first(report.batches, settings):
            environment.stdout.write(b"".join(map(report.line, batch)))
            written += len(batch)
    else:
        writer = machine.Writer(environment, report.view, output, report.null_separated)
        records = (record for batch in report.batches for record in batch)
        written = writer.write_all(_progress_until_first(records, settings))
    environment.stdout.flush()
    environment.note(report.summary(written))
    return report.status(written)


def _progress_until_first(records: Iterable[T], settings: Settings) -> Iterator[T]:
    """Records that go to the screen: progress is shown until there is something to write."""
    for record in records:
        if settings.environment.stdout_is_terminal:
            settings.end_progress()
        yield record
    settings.end_progress()


def _render_listing(report: Listing[Any], settings: Settings) -> ExitStatus:
    output, environment = settings.output, settings.environment
    report.records = _progress_until_first(report.records, settings)
    if output is OutputFormat.TABLE:
        from rwq_cli.output.table import write_at_length, write_table

        write = write_at_length if report.sections is not None else write_table
        shown = write(report, settings)
    else:
        writer = machine.Writer(
            environment, report.view, output, report.null_separated, bare=report.one_only
        )
        if output is OutputFormat.IDS and report.id_batches is not None:
            shown = writer.write_ids(_progress_until_first(report.id_batches, settings))
        else:
            shown = writer.write_all(report.records)
        if not shown and report.none_is_no:
            environment.note(report.empty)
        elif shown and environment.stderr_is_terminal and (footer := report.footer(shown)):
            environment.flush()
            environment.note(footer)
    if closing := report.closing():
        environment.flush()
        environment.note(closing)
    usual = ExitStatus.NO if report.none_is_no and not shown else ExitStatus.OK
    told = report.status()
    return usual if told is None else told


def _render_batch(report: Batch[Any], settings: Settings) -> ExitStatus:
    """Do the work, and tell it record by record where the format is one of records.

    When stdout is closed (`rwq complete - | head`) or full, the work still goes on to its end: what
    was asked for is the work.
    """
    output, environment = settings.output, settings.environment
    telling = output in (OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS)
    tells_all = output is not OutputFormat.IDS and not report.tells_only_shown
    writer = machine.Writer(environment, report.view, output, report.null_separated)
    failure: OSError | None = None
    try:
        for batch in report.batches:
            report.counts.update(report.count(batch))
            if not telling or failure:
                continue
            if environment.stdout_is_terminal:
                settings.end_progress()
            try:
                for record in batch:
                    if tells_all or report.word(record) in report.shown:
                        writer.write(record)
            except OSError as error:
                failure = error
    except KeyboardInterrupt:
        # What was done is done, and must be known although the rest was not.
        settings.end_progress()
        environment.note(f"interrupted: {report.summary()}")
        raise
    settings.end_progress()
    try:
        if failure:
            raise failure
        if telling:
            writer.end()
        if output is OutputFormat.JSON:
            environment.stdout.write(to_json({**report.fields, **_underscored(report)}) + b"\n")
        environment.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError:
        environment.note(report.summary())
        raise
    if output is not OutputFormat.JSON:
        environment.note(report.summary())
    return report.status()


def _underscored(report: Batch[Any]) -> dict[str, int]:
    return {word.replace("-", "_"): number for word, number in report.totals().items()}


def _render_detail(report: Detail[Any], settings: Settings) -> ExitStatus:
    output, environment = settings.output, settings.environment
    total = missing = 0

    def counted() -> Any:
        nonlocal total, missing
        for record in _progress_until_first(report.records, settings):
            total += 1
            if report.is_missing(record):
                missing += 1
                if output in (OutputFormat.DATA, OutputFormat.IDS) and report.missing(record):
                    environment.note(report.missing(record))
            yield record

    if output is OutputFormat.TABLE:
        from rwq_cli.output.table import write_sections

        write_sections(report.sections, counted(), settings)
    elif output is OutputFormat.JSON and report.one_only:
        for record in counted():
            environment.stdout.write(to_json(report.view.fields(record)) + b"\n")
    elif output is OutputFormat.PLAIN:
        machine.write_fields(environment, report.view, counted())
    else:
        machine.Writer(environment, report.view, output, False, bare=report.one_only).write_all(
            counted()
        )
    if missing:
        return ExitStatus.NO if missing == total else ExitStatus.PARTIAL
    return ExitStatus.OK


def _render_verdict(report: Verdict[Any], settings: Settings) -> Code:
    output, environment = settings.output, settings.environment
    if output in (OutputFormat.TABLE, OutputFormat.PLAIN):
        environment.stdout.write(report.text.encode())
    elif output is OutputFormat.JSON and report.one_only:
        for record in report.records:
            environment.stdout.write(to_json(report.view.fields(record)) + b"\n")
    else:
        machine.Writer(environment, report.view, output, False).write_all(report.records)
    return report.status
