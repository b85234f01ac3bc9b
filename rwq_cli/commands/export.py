"""`rwq export`: write a queue as JSON lines."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import cast

from rwq_cli.cli.choosing import Choice, SelectionScope, selects
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import summary_end_of
from rwq_cli.cli.open_queues import OpenQueues, open_matching_queues, warn_missing
from rwq_cli.cli.options import AllQueuesOption
from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument, PermissionDenied
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.export import Export, export as export_items
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.exit_codes import ExitStatus, batch_status
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import EXPORT_FIELDS, Header, entry_line, header_line
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import progress_until_first

app = CommandModule()

# A queue's name, and what is in the queue.
_Entry = tuple[bytes, ItemSnapshot | Result]

# The formats that write the lines of an export, which include results.
_WITH_RESULTS = (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.PLAIN, OutputFormat.JSONL)
_SCOPE = SelectionScope(default=ITEMS, everything=ITEMS, offered=ITEMS, defaults_to_all=True)


@app.command(
    record=EXPORT_FIELDS,
    help="Write a whole queue to stdout, as JSON lines that rwq import reads: its items, then its "
    "results. Safe while workers run: each item is written as it was at one instant. IDs, or "
    "options other than --all, select items; results are then omitted, as they are in the formats "
    "json, csv, ids and data. Several queues make one file, and rwq import restores each.",
    examples=(
        "rwq export -q jobs > jobs.jsonl",
        "rwq export -q jobs --state abandoned --match '\"user\": *42' > some.jsonl",
        "rwq export -q jobs | rwq import -q jobs-copy -",
        "rwq export --all-queues > everything.jsonl",
    ),
    exits={
        ExitStatus.NO: "nothing was exported: the items do not exist, or each has a key of the "
        "wrong type",
        ExitStatus.PARTIAL: "some items were skipped: they do not exist, or have a key of the "
        "wrong type",
    },
    reads_only=True,
    # That of RWQ_OUTPUT would be a backup that import cannot read.
    output=OutputFormat.JSONL,
)
@selects(_SCOPE)
def export(
    settings: Settings,
    choice: Choice,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    opened = open_matching_queues(settings, all_queues=all_queues)
    if choice.by_name and not opened.is_one:
        raise InvalidArgument("IDs can be exported from one queue only", "give -q once")
    return _Run(settings, choice, opened).write()


class _Run:
    """An export of one or several queues."""

    def __init__(self, settings: Settings, choice: Choice, opened: OpenQueues) -> None:
        self._settings = settings
        self._choice = choice
        self._opened = opened
        self._has_results = (
            choice.is_whole_queue and settings.output in _WITH_RESULTS and not settings.fields
        )
        self._exports: list[Export] = []
        self._empty: list[WorkQueue] = []
        # The IDs on the command line.
        self._named: frozenset[bytes] = frozenset()

    def write(self) -> ExitStatus:
        queues, is_one = self._opened.queues, self._opened.is_one
        options, stdout = self._settings.output_options, self._settings.environment.stdout
        # The header of several queues comes before the first is read.
        first = self._begin(queues[0]) if is_one else None
        if first is not None:
            header = Header(first.queue, first.exported_ms)
        else:
            header = Header(b"", queues[0].now_ms() if queues else 0)
        batches = self._batches(first)
        if options.format in _WITH_RESULTS and options.fields is None:
            written = 0
            stdout.write(header_line(header))
            for batch in progress_until_first(batches, options):
                for queue, entry in batch:
                    stdout.write(entry_line(entry, None if is_one else queue))
                written += len(batch)
        else:
            items = cast(Iterator[tuple[bytes, ItemSnapshot]], chain.from_iterable(batches))
            written = self._settings.out.table(items, EXPORT_FIELDS, ())
        stdout.flush()
        self._settings.environment.note(self._summary(written))
        return self._status(written)

    def _begin(self, queue: WorkQueue) -> Export:
        chosen: frozenset[bytes] | None = None
        if not self._choice.is_whole_queue:
            ids = self._choice.choose(queue, self._settings).ids
            chosen = frozenset(item_id for item_id in ids if not isinstance(item_id, Flush))
            self._named = chosen if self._choice.by_name else self._named
        self._exports.append(export_items(queue, chosen))
        return self._exports[-1]

    def _batches(self, first: Export | None) -> Iterator[Sequence[_Entry]]:
        choice = self._choice
        # A selection by options has its own note.
        is_selected = not (choice.by_name or choice.is_whole_queue)

        def read(queue: WorkQueue) -> Iterator[Sequence[_Entry]]:
            run = first or self._begin(queue)
            is_empty = True
            for batch in _entries(self._settings, run, has_results=self._has_results):
                is_empty = is_empty and not batch
                yield [(queue.name, entry) for entry in batch]
            if is_empty and not (is_selected or run.skipped.wrong_keys):
                self._empty.append(queue)

        yield from self._opened.each(self._settings, read)

    def _missing(self, exported: int) -> int:
        """How many of the named items do not exist."""
        if not self._choice.by_name:
            return 0
        return len(self._named) - exported - _wrong_types(self._exports)

    def _summary(self, written: int) -> str:
        settings, opened = self._settings, self._opened
        results = sum(run.results_read for run in self._exports)
        exported = written - results
        for queue in self._empty:
            warn_missing(settings, queue)
        for key in chain.from_iterable(run.skipped.wrong_keys for run in self._exports):
            settings.environment.error(f"rwq: {escaped(key)} has the wrong type; not exported")
        not_found = self._missing(exported)
        counts = f", missing {human.count(not_found)}" if not_found else ""
        if results:
            counts += f", results {human.count(results)}"
        origin = "" if opened.is_one else f" from {opened.label}"
        if not settings.target_from_env:
            origin = summary_end_of(settings, opened.label)
        skipped = _skipped_text(self._exports, has_missing=self._choice.by_name)
        done = f"exported {human.count(exported)}" if exported else "nothing exported"
        return f"{done}{counts}{origin}{skipped}"

    def _status(self, exported: int) -> ExitStatus:
        failures = [self._opened.left_out, _wrong_types(self._exports), self._missing(exported)]
        return batch_status(exported, sum(map(bool, failures)))


def _entries(
    settings: Settings, run: Export, *, has_results: bool
) -> Iterator[Sequence[ItemSnapshot | Result]]:
    """The items of one queue, and its results."""
    yield from run.batches()
    if not has_results:
        return
    try:
        yield from run.results()
    except PermissionDenied:
        settings.environment.note("rwq: this user may not read results; none are in the export")


def _wrong_types(runs: Iterable[Export]) -> int:
    return sum(len(run.skipped.wrong_types) for run in runs)


def _skipped_text(runs: Iterable[Export], *, has_missing: bool) -> str:
    """The part of the summary on entries that were skipped.

    Args:
        runs: The export of each queue.
        has_missing: True if IDs without data are counted as missing already.
    """
    skipped = [run.skipped for run in runs]
    counts = (
        (sum(len(each.wrong_types) for each in skipped), "of the wrong type"),
        (0 if has_missing else sum(len(each.missing) for each in skipped), "without data"),
        (sum(each.stray_leases for each in skipped), "stray leases"),
    )
    texts = [f"{human.count(number)} {kind}" for number, kind in counts if number]
    return f"; skipped {', '.join(texts)}" if texts else ""
