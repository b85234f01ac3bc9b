"""`rwq export`: write a queue as JSON lines."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import cast

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.connect import OpenQueues, summary_end, warn_missing
from rwq_cli.cli.options import AllQueuesOption
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, escaped
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.export import Export
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.probe import ItemSnapshot
from rwq_cli.exit_codes import batch_status
from rwq_cli.output import human
from rwq_cli.output.export_file import EXPORT_FIELDS, Header, entry_line, header_line
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import check, progress_until_first

# A queue's name, and what is in the queue.
_Entry = tuple[bytes, ItemSnapshot | Result]

# The formats that write the lines of an export, which include results.
_LINES = (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.PLAIN, OutputFormat.JSONL)


@command(
    record=EXPORT_FIELDS,
    no="nothing was exported: the items do not exist, or each has a key of the wrong type",
    partial="some items were skipped: they do not exist, or have a key of the wrong type",
    reads_only=True,
    # The format of RWQ_OUTPUT might make it a backup that import cannot read.
    output=OutputFormat.JSONL,
)
@selects(ITEMS, acts=False)
def export(settings: Settings, choice: Choice, all_queues: AllQueuesOption = False) -> ExitStatus:
    """Write a whole queue to stdout, as JSON lines that rwq import reads: its items, then its
    results. Safe while workers run: each item is written as it was at one instant. IDs, or options
    other than --all, select items; results are then omitted, as they are in the formats json, csv,
    ids and data. Several queues make one file, and rwq import restores each.

    rwq export -q jobs > jobs.jsonl
    rwq export -q jobs --state abandoned --match '"user": *42' > some.jsonl
    rwq export -q jobs | rwq import -q jobs-copy -
    rwq export --all-queues > everything.jsonl
    """
    opened = OpenQueues(settings, all_queues=all_queues).find()
    if choice.by_name and not opened.is_one:
        raise InvalidArgument("IDs can be exported from one queue only", "give -q once")
    environment = settings.environment
    is_lines = settings.output in _LINES and settings.fields is None
    if settings.reads_all:
        check(EXPORT_FIELDS, settings)
    exports: list[Export] = []
    named = 0

    def begin(queue: WorkQueue) -> Export:
        nonlocal named
        chosen: frozenset[bytes] | None = None
        if not choice.is_whole_queue:
            ids = choice.choose(queue).ids
            chosen = frozenset(item_id for item_id in ids if not isinstance(item_id, Flush))
            named += len(chosen) if choice.by_name else 0
        exports.append(Export(queue, chosen))
        return exports[-1]

    # With one queue, the header has its time; with several, it is written before the first is read.
    first = begin(opened.queues[0]) if opened.is_one else None

    def entries(run: Export) -> Iterator[Sequence[ItemSnapshot | Result]]:
        yield from run.batches()
        if choice.is_whole_queue and is_lines:
            try:
                yield from run.results()
            except PermissionDenied:
                environment.note("rwq: this user may not read results; none are in the export")

    def read(queue: WorkQueue) -> Iterator[Sequence[_Entry]]:
        run, is_empty = first or begin(queue), True
        for batch in entries(run):
            is_empty = is_empty and not batch
            yield [(queue.name, entry) for entry in batch]
        # A selection by options has its own note.
        if is_empty and not run.skipped.wrong_keys and (choice.by_name or choice.is_whole_queue):
            warn_missing(settings, queue)

    batches = opened.each(read)
    if is_lines:
        header = Header(b"", opened.queues[0].now_ms() if opened.queues and not first else 0)
        if first is not None:
            header = Header(first.queue, first.exported_ms)
        environment.stdout.write(header_line(header))
        written = 0
        for batch in progress_until_first(batches, settings):
            lines = (entry_line(entry, None if opened.is_one else name) for name, entry in batch)
            environment.stdout.write(b"".join(lines))
            written += len(batch)
    else:
        items = cast(Iterator[tuple[bytes, ItemSnapshot]], chain.from_iterable(batches))
        written = settings.out.table(items, EXPORT_FIELDS, ())
    environment.stdout.flush()
    for key in chain.from_iterable(run.skipped.wrong_keys for run in exports):
        environment.error(f"rwq: {escaped(key)} has the wrong type; not exported")
    results = sum(run.results_read for run in exports)
    wrong = sum(len(run.skipped.wrong_types) for run in exports)
    missing = named - (written - results) - wrong if named else 0
    counts = [("missing", missing), ("results", results)]
    skipped = [
        (wrong, "of the wrong type"),
        (0 if named else sum(len(run.skipped.missing) for run in exports), "without data"),
        (sum(run.skipped.stray_leases for run in exports), "stray leases"),
    ]
    where = summary_end(settings, opened.label)
    where = where or ("" if opened.is_one else f" from {opened.label}")
    done = f"exported {human.count(written - results)}" if written > results else "nothing exported"
    done += "".join(f", {word} {human.count(number)}" for word, number in counts if number)
    rest = ", ".join(f"{human.count(number)} {kind}" for number, kind in skipped if number)
    environment.note(f"{done}{where}" + (f"; skipped {rest}" if rest else ""))
    return batch_status(written, bool(opened.left_out) + bool(wrong) + bool(missing))
