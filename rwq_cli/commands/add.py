"""`rwq add`: put items in."""

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DryRunOption, NullIdsOption
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import Due, NewItems, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.input.records import IdRule, InputFormat, RecordReader
from rwq_cli.output.encode import bytes_fields, to_json
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, Report
from rwq_cli.views.outcomes import DRY_RUN
from rwq_cli.views.records import outcome_view

app = CommandModule()


@app.command(
    help="Put items in, from arguments, files or stdin.",
    examples=(
        "rwq add -q jobs 'resize cat.png' 'resize dog.png'",
        "rwq add -q jobs -f urls.txt --id-from sha256",
        "jq -c '{id: .key, data: .}' dump.json | rwq add -q jobs --format jsonl",
        "rwq add -q jobs --delay 5m 'try again'",
        "rwq add -q jobs --at 08:00 -f urls.txt",
    ),
    exits={
        ExitStatus.OK: "done; an item whose ID exists already is counted, not added",
        ExitStatus.NO: "every record was rejected",
        ExitStatus.PARTIAL: "some records were rejected, the others are in",
    },
)
def add(
    settings: Settings,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA]...", help="Items; - or none at all reads stdin."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("-f", "--file", metavar="FILE", help="Read items from a file; - is stdin."),
    ] = None,
    input_format: Annotated[
        InputFormat,
        typer.Option(
            "--format",
            help="lines: a line is an item. jsonl: an object a line with data or data_b64, and "
            "id and delay if it has them. nul: items end with NUL. raw: each input is one item.",
        ),
    ] = InputFormat.LINES,
    item_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The ID, for exactly one item.")
    ] = None,
    id_from: Annotated[
        str | None,
        typer.Option(
            "--id-from",
            metavar="RULE",
            help="uuid, sha256 (of the data), line (the data itself) or field:NAME (of JSON data).",
        ),
    ] = None,
    unique: Annotated[
        bool,
        typer.Option("--unique", help="The IDs are known to be new: skip the duplicate check."),
    ] = False,
    delay: Annotated[
        str | None,
        typer.Option(
            "--delay",
            metavar="DUR",
            help="Put the items off for so long; a delay in a JSON line has precedence.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="Put the items off until then, by the server's clock: 08:00, 2026-11-22T08:00, "
            "with a zone (Z, +01:00) or in the local one, or @ and unix seconds.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Nothing more after the first bad record.")
    ] = False,
    dry_run: DryRunOption = False,
    null: NullIdsOption = False,
) -> Report:
    if data == ["-"]:
        data, file = None, [*(file or ()), "-"]
    if data and file:
        raise InvalidArgument("items come from arguments or from files, not both", "drop one")
    if item_id is not None and id_from is not None:
        raise InvalidArgument("--id and --id-from exclude each other", "give one of them")
    if delay is not None and at is not None:
        raise InvalidArgument("--delay and --at exclude each other", "give one of them")
    queue = open_queue(settings)
    environment = settings.environment

    def report_bad(where: str, number: int, why: str) -> None:
        if settings.output in (OutputFormat.JSON, OutputFormat.JSONL):
            record = {"error": why, "code": "bad-record", "hint": None, "record": number}
            environment.note(to_json(record).decode())
        else:
            place = escaped(os.fsencode(where))
            environment.note(f"rwq: {place} {number}: {escaped(why.encode())}; not added")

    reader = RecordReader(
        environment,
        input_format,
        IdRule.parse("uuid" if id_from is None else id_from),
        strict,
        report_bad,
        _due(queue, delay, at),
    )
    if settings.progress is not None:
        settings.progress.fraction = reader.fraction
    items = reader.from_arguments(data) if data else reader.from_files(file or ["-"])
    if not data and not file and environment.stdin_is_terminal:
        environment.note("reading items from the terminal, one a line; Ctrl-D ends")
    if item_id is not None:
        items = _one_with_id(items, os.fsencode(item_id))
    return Batch(
        view=outcome_view(queue.name),
        batches=queue.add_batches(items, unique=unique, dry_run=dry_run).batches,
        count=lambda batch: {_WORDS[status]: n for status, n in batch.counts().items()},
        word=lambda outcome: _WORDS[outcome.status],
        counted=("added", "duplicates", "rejected"),
        failed=frozenset({"rejected"}),
        shown=frozenset({"added"}),
        tells_only_shown=True,
        fields={**bytes_fields("queue", queue.name), "dry_run": dry_run},
        prefix=DRY_RUN if dry_run else "",
        extra=lambda: {"rejected": reader.rejected, "empty": reader.empty},
        null_separated=null,
    )


def _due(queue: WorkQueue, delay: str | None, at: str | None) -> Due | None:
    """Until when the items are put off."""
    if at is not None:
        from rwq_cli.input.times import parse_time

        return Due(parse_time(at, queue.now_ms), from_now=False)
    seconds = 0.0 if delay is None else parse_duration(delay)
    return Due(seconds * 1000, from_now=True) if seconds else None


_WORDS = {Status.ADDED: "added", Status.DUPLICATE: "duplicates"}


def _one_with_id(batches: Iterator[NewItems | Flush], item_id: bytes) -> Iterator[NewItems | Flush]:
    """The one item there is, under the ID given; nothing is added if there are more."""
    only: NewItems | None = None
    for batch in batches:
        if isinstance(batch, Flush):
            continue
        if only is not None or len(batch.ids) > 1:
            raise InvalidArgument("--id names one item, but there are more", "use --id-from")
        only = batch
    return iter([only._replace(ids=[item_id])] if only is not None else [])
