"""`rwq add`: add items."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated

from rwq_cli.cli.connect import open_queues
from rwq_cli.cli.options import DryRunOption, Duration, parse_id
from rwq_cli.cli.outcomes import OUTCOME_FIELDS, bad_record_reporter, kind_of, outcomes_of
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, argument, command, option
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import ServerError
from rwq_cli.core.items.add import Due, NewItems, add_batches, add_spread
from rwq_cli.core.keys import is_text
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.input import records
from rwq_cli.input.records import IdRule, InputFormat, RecordReader, parse_id_rule
from rwq_cli.input.values import parse_time
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import bytes_fields
from rwq_cli.output.outcomes import Outcomes

_KIND = kind_of(Status.ADDED, ())._replace(
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


def _time(text: str) -> str:
    # Checked early; the time itself depends on the server's clock.
    parse_time(text, lambda: 0)
    return text


@command(
    record=OUTCOME_FIELDS,
    ok="done; items whose ID exists are counted as duplicates",
    no="every record was rejected",
)
def add(
    settings: Settings,
    data: Annotated[list[str] | None, argument("[DATA...]", "Items; - or none: stdin.")] = None,
    file: Annotated[list[str] | None, option("-f, --file FILE", "Read a file; - is stdin.")] = None,
    input_format: Annotated[
        InputFormat,
        option("--format FORMAT", "lines, jsonl (data, data_b64, id, delay), nul, raw (one each)."),
    ] = InputFormat.LINES,
    item_id: Annotated[bytes | None, option("--id ID", "The single item's ID.", parse_id)] = None,
    id_from: Annotated[
        IdRule | None,
        option(
            "--id-from RULE", "uuid (default); from data: sha256, line, field:NAME.", parse_id_rule
        ),
    ] = None,
    unchecked: Annotated[bool, option("--unchecked", "Skip the check for duplicates.")] = False,
    binary_ids: Annotated[
        bool, option("--binary-ids", "Add IDs that are not UTF-8, too: other clients fail on them.")
    ] = False,
    delay_s: Annotated[
        Duration | None, option("--delay DUR", "Delay them; a JSON line's delay wins.")
    ] = None,
    at: Annotated[
        str | None,
        option(
            "--at TIME", "Until 08:00, 2026-11-22T08:00 (Z, +01:00), @UNIX (server's clock).", _time
        ),
    ] = None,
    strict: Annotated[bool, option("--strict", "Stop at the first bad record.")] = False,
    reconnect_s: Annotated[
        Duration | None,
        option("--reconnect DUR", "Retry if the server is lost; needs IDs, for the check."),
    ] = None,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    """Add items from arguments, files or stdin. With several -q, an item's ID determines its
    queue, so that an item added again is found to be a duplicate.

    rwq add -q jobs 'resize cat.png' 'resize dog.png'
    rwq add -q jobs -f urls.txt --id-from sha256
    jq -c '{id: .key, data: .}' dump.json | rwq add -q jobs --format jsonl
    rwq add -q jobs --delay 5m 'try again'
    rwq add -q jobs --at 08:00 -f urls.txt
    rwq add -q '{jobs:1}' -q '{jobs:2}' -f urls.txt --id-from sha256
    """
    if data == ["-"]:
        data, file = None, [*(file or ()), "-"]
    if data and file:
        raise InvalidArgument(
            "items come from arguments or from files, not both", "use one of them"
        )
    if item_id is not None and id_from is not None:
        raise InvalidArgument.both("--id", "--id-from")
    if delay_s is not None and at is not None:
        raise InvalidArgument.both("--delay", "--at")
    if reconnect_s is not None:
        has_ids = item_id is not None or id_from or input_format is InputFormat.JSONL
        if unchecked or not has_ids:
            raise InvalidArgument(
                "--reconnect needs IDs, and the check for duplicates",
                "use --id-from, not --unchecked",
            )
    queues = open_queues(settings)
    queue = queues[0]
    if len(queues) > 1 and reconnect_s is not None:
        raise InvalidArgument("--reconnect adds to one queue", "give -q once")
    due = Due(delay_s * 1000, from_now=True) if delay_s else None
    if at is not None:
        due = Due(parse_time(at, queue.now_ms), from_now=False)
    reader = RecordReader(
        settings.environment,
        input_format,
        id_from or records.random_id,
        strict=strict,
        report=bad_record_reporter(settings, "not added"),
        due=due,
        binary_ids=binary_ids,
    )
    if settings.progress is not None:
        settings.progress.fraction = reader.fraction
    items = reader.from_arguments(data) if data else reader.from_files(file or ["-"])
    if not data and not file and settings.environment.stdin_is_terminal:
        settings.environment.note("reading items from the terminal, one per line; Ctrl-D ends")
    if item_id is not None:
        if not (binary_ids or is_text(item_id)):
            raise InvalidArgument(records.NOT_TEXT, "--binary-ids adds it")
        items = records.with_id(items, item_id)
    added: Counter[bytes] = Counter()
    found: Iterable[tuple[bytes, OutcomeBatch]]
    if len(queues) > 1:
        found = add_spread(queues, items, unique=unchecked, dry_run=dry_run)
        out = Outcomes(
            settings,
            _KIND,
            None,
            dry_run=dry_run,
            explain=lambda failed: ("one of its keys has the wrong type" for _ in failed),
            where=lambda: f" ({_named(added)} on {settings.server_label})",
        )
    else:
        batches = _batches(settings, queue, items, reconnect_s, unique=unchecked, dry_run=dry_run)
        found = ((queue.name, batch) for batch in batches)
        out = outcomes_of(settings, queue, _KIND, dry_run=dry_run)
    out.extra = lambda: {"rejected": reader.rejected, "empty": reader.empty}
    with out:
        for name, batch in found:
            added[name] += batch.count(Status.ADDED)
            out.rows(batch, name)
    if len(queues) == 1:
        return out.finish()
    return out.finish(
        queues=[{**bytes_fields("queue", name), "added": n} for name, n in sorted(added.items())]
    )


def _named(added: Mapping[bytes, int]) -> str:
    if len(added) > _NAMED_QUEUES:
        return f"{len(added):,} queues"
    names = [f"{escaped(name)} {number:,}" for name, number in sorted(added.items())]
    return ", ".join(names) or "no queue"


def _batches(
    settings: Settings,
    queue: WorkQueue,
    items: Iterable[NewItems | Flush],
    reconnect_s: float | None,
    *,
    unique: bool,
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    """Add items; while a lost server may come back, send unacknowledged ones again."""
    if reconnect_s is None:
        yield from add_batches(queue, items, unique=unique, dry_run=dry_run).batches
        return
    # Parts of one call each: those not read yet, and those sent but not acknowledged.
    unread: Iterator[NewItems | Flush] = chain.from_iterable(
        [each] if isinstance(each, Flush) else each.parts() for each in items
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
                at = next(at for at, part in enumerate(sent) if part.ids[0] == batch.ids[0])
                del sent[at]
                lost_s = None
                yield batch
            return
        except ServerError as error:
            now_s = queue.clock.monotonic()
            if lost_s is None:
                lost_s = now_s
                note = f"rwq: {escaped_text(error.message)}; trying again for "
                settings.environment.error(note + human.duration(reconnect_s))
            if not error.is_transient or now_s - lost_s >= reconnect_s:
                raise
            queue.clock.sleep(_RETRY_S)
