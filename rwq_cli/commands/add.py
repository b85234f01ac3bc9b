"""`rwq add`: add items."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, NamedTuple

from rwq_cli.cli.connect import open_queues
from rwq_cli.cli.options import DryRunOption, Duration, parse_id
from rwq_cli.cli.reports import (
    OUTCOME_FIELDS,
    begin_report,
    make_outcome_kind,
    make_record_reporter,
)
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, argument, command, option
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import ServerError
from rwq_cli.core.items.add import Due, NewItems, add_batches, add_spread
from rwq_cli.core.keys import is_text
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.input import records
from rwq_cli.input.records import IdRule, InputFormat, RecordReader, parse_id_rule
from rwq_cli.input.values import parse_time, time_note
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import bytes_fields
from rwq_cli.output.tally import Tally

_KIND = make_outcome_kind(Status.ADDED, ())._replace(
    counted=("added", "duplicates", "rejected"),
    names={"duplicate": "duplicates"},
    failed=frozenset({"rejected", "wrong-type"}),
    # Duplicates are only counted.
    shows_all=False,
)
# The pause before a lost server is contacted again.
_RETRY_S = 0.5
# A summary names at most this many queues.
_NAMED_QUEUES = 8


def _checked_time(text: str) -> str:
    # Checked early; the time itself depends on the server's clock.
    parse_time(text, lambda: 0)
    return text


class AddOptions(NamedTuple):
    """What to add, and how: the options of the command."""

    settings: Settings
    data: Annotated[list[str] | None, argument("[DATA...]", "The items; - or none: stdin.")] = None
    file: Annotated[list[str] | None, option("-f, --file FILE", "Read a file; - is stdin.")] = None
    input_format: Annotated[
        InputFormat,
        option("--format FORMAT", "lines, jsonl (data, data_b64, id, delay), nul, raw (one each)."),
    ] = InputFormat.LINES
    item_id: Annotated[bytes | None, option("--id ID", "The single item's ID.", parse_id)] = None
    id_from: Annotated[
        IdRule | None,
        option(
            "--id-from RULE", "uuid (default); from data: sha256, line, field:NAME.", parse_id_rule
        ),
    ] = None
    unchecked: Annotated[bool, option("--unchecked", "Skip the check for duplicates.")] = False
    binary_ids: Annotated[
        bool, option("--binary-ids", "Add IDs that are not UTF-8, too: other clients fail on them.")
    ] = False
    delay_s: Annotated[
        Duration | None, option("--delay DUR", "Delay them; a JSON line's delay wins.")
    ] = None
    at: Annotated[
        str | None,
        option(
            "--at TIME",
            "Until 08:00, 2026-11-22T08:00 (Z, +01:00), @UNIX (server's clock).",
            _checked_time,
        ),
    ] = None
    strict: Annotated[bool, option("--strict", "Stop at the first bad record.")] = False
    reconnect_s: Annotated[
        Duration | None,
        option("--reconnect DUR", "Retry for this long if the server is lost; needs IDs."),
    ] = None
    dry_run: DryRunOption = False

    def sources(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the items that are arguments, and the files to read; at least one is empty."""
        data, files = self.data or (), self.file or ()
        if data == ["-"]:
            data, files = (), [*files, "-"]
        if "-" in data:
            raise InvalidArgument(
                "- reads the items from stdin, and cannot be combined with other items",
                "drop the other items; echo - | rwq add adds one that is a -",
            )
        if data and files:
            raise InvalidArgument(
                "items come from arguments or from files, not both", "use one of them"
            )
        return data, files

    def check(self) -> None:
        if self.item_id is not None and not (self.binary_ids or is_text(self.item_id)):
            raise InvalidArgument(records.NOT_TEXT, "--binary-ids adds it")
        has_ids = self.item_id is not None or self.id_from or self.input_format is InputFormat.JSONL
        if self.reconnect_s is not None and (self.unchecked or not has_ids):
            raise InvalidArgument(
                "--reconnect needs IDs, and the check for duplicates",
                "use --id-from, not --unchecked",
            )

    def due(self, queue: WorkQueue) -> Due | None:
        """Return when the items are due, by the server's clock; note a time that may be wrong."""
        if self.at is None:
            return Due(self.delay_s * 1000, from_now=True) if self.delay_s else None
        now_ms = queue.now_ms()
        unix_ms = parse_time(self.at, lambda: now_ms)
        if (note := time_note(self.at, unix_ms, now_ms)) is not None:
            self.settings.environment.note(f"rwq: note: --at {escaped_text(note)}")
        return Due(unix_ms, from_now=False)

    def reader(self, due: Due | None) -> RecordReader:
        reader = RecordReader(
            self.settings.environment,
            self.input_format,
            self.id_from or records.random_id,
            strict=self.strict,
            report=make_record_reporter(self.settings, "not added"),
            due=due,
            binary_ids=self.binary_ids,
        )
        if self.settings.progress is not None:
            self.settings.progress.fraction = reader.fraction
        return reader

    def items(self, reader: RecordReader) -> Iterator[NewItems | Flush]:
        environment, (data, files) = self.settings.environment, self.sources()
        items = reader.from_arguments(data) if data else reader.from_files(files or ["-"])
        if not (data or files) and environment.stdin_is_terminal:
            environment.note("reading items from the terminal, one per line; Ctrl-D ends")
        return items if self.item_id is None else records.with_id(items, self.item_id)


@command(
    record=OUTCOME_FIELDS,
    ok="done; items whose ID exists are counted as duplicates",
    no="every record was rejected",
    excludes=["--id --id-from", "--delay --at"],
)
def add(settings: Settings, options: AddOptions) -> ExitStatus:
    """Add items from arguments, files or stdin. With several -q, an item's ID determines its
    queue, so that an item added again is found to be a duplicate.

    rwq add -q jobs 'resize cat.png' 'resize dog.png'
    rwq add -q jobs -f urls.txt --id-from sha256
    jq -c '{id: .key, data: .}' dump.json | rwq add -q jobs --format jsonl
    rwq add -q jobs --delay 5m 'try again'
    rwq add -q jobs --at 08:00 -f urls.txt
    rwq add -q '{jobs:1}' -q '{jobs:2}' -f urls.txt --id-from sha256
    """
    options.sources()
    options.check()
    queues = open_queues(settings)
    if len(queues) > 1 and options.reconnect_s is not None:
        raise InvalidArgument("--reconnect adds to one queue", "give -q once")
    return _add(queues, options, options.reader(options.due(queues[0])))


def _add(queues: Sequence[WorkQueue], options: AddOptions, reader: RecordReader) -> ExitStatus:
    """Add the items, each to the queue that its ID picks, and show what became of them."""
    settings, items, dry_run = options.settings, options.items(reader), options.dry_run
    added: Counter[bytes] = Counter()
    batches: Iterable[tuple[bytes, OutcomeBatch]]
    extra = lambda: {"rejected": reader.rejected, "empty": reader.empty}  # noqa: E731
    if len(queues) > 1:
        batches = add_spread(queues, items, unique=options.unchecked, dry_run=dry_run)
        tally = Tally(
            _KIND,
            None,
            dry_run=dry_run,
            explain=lambda failed: ("one of its keys has the wrong type" for _ in failed),
            where=lambda: f" ({_describe_counts(added)} on {settings.server_label})",
            extra=extra,
        )
        out = settings.out.begin_tally(tally)
    else:
        (queue,) = queues
        batches = ((queue.name, batch) for batch in _add_to_one(queue, items, options))
        out = begin_report(settings, queue, _KIND, dry_run=dry_run, extra=extra)
    with out:
        for name, batch in batches:
            added[name] += batch.count(Status.ADDED)
            out.report_batch(batch, name)
    if len(queues) == 1:
        return out.finish()
    return out.finish(
        queues=[{**bytes_fields("queue", name), "added": n} for name, n in sorted(added.items())]
    )


def _describe_counts(added: Mapping[bytes, int]) -> str:
    if len(added) > _NAMED_QUEUES:
        return f"{len(added):,} queues"
    names = [f"{escaped(name)} {number:,}" for name, number in sorted(added.items())]
    return ", ".join(names) or "no queue"


def _add_to_one(
    queue: WorkQueue, items: Iterable[NewItems | Flush], options: AddOptions
) -> Iterator[OutcomeBatch]:
    """Add items; while a lost server may come back, send unacknowledged ones again."""
    unique, dry_run, reconnect_s = options.unchecked, options.dry_run, options.reconnect_s
    if reconnect_s is None:
        yield from add_batches(queue, items, unique=unique, dry_run=dry_run).batches
        return
    # Parts of one call each: those not read yet, and those sent but not acknowledged.
    unread: Iterator[NewItems | Flush] = chain.from_iterable(
        [batch] if isinstance(batch, Flush) else batch.parts() for batch in items
    )
    sent: list[NewItems] = []
    lost_s: float | None = None

    def later() -> Iterator[NewItems | Flush]:
        for part in unread:
            if not isinstance(part, Flush):
                sent.append(part)
            yield part

    while True:
        try:
            for batch in add_batches(queue, chain(list(sent), later()), dry_run=dry_run).batches:
                # A call may have been refused and the next one accepted.
                first_id = batch.ids[0]
                del sent[next(n for n, part in enumerate(sent) if part.ids[0] == first_id)]
                lost_s = None
                yield batch
            return
        except ServerError as error:
            now_s = queue.clock.monotonic()
            if lost_s is None:
                lost_s = now_s
                note = f"rwq: {escaped_text(error.message)}; trying again for "
                options.settings.environment.error(note + human.duration(reconnect_s))
            if not error.is_transient or now_s - lost_s >= reconnect_s:
                raise
            queue.clock.sleep(_RETRY_S)
