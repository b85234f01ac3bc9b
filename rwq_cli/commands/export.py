"""`rwq export`: write a queue as JSON lines."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.connect import OpenQueues, describe_target, warn_missing
from rwq_cli.cli.options import AllQueuesOption
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, escaped
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.export import Export
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.exit_codes import batch_status
from rwq_cli.output import human
from rwq_cli.output.export_lines import (
    ExportHeader,
    entry_line,
    export_end_line,
    header_line,
)
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import end_progress_at_first


@command(
    no="nothing was exported: the items do not exist, or each has a key of the wrong type",
    partial="some items were skipped: they do not exist, or have a key of the wrong type",
    reads_only=True,
    # The format of RWQ_OUTPUT might make it a backup that import cannot read.
    output=OutputFormat.JSONL,
)
@selects(ITEMS, acts=False)
def export(settings: Settings, choice: Choice, all_queues: AllQueuesOption = False) -> ExitStatus:
    """Write a whole queue to stdout, as JSON lines that rwq import reads: its items, then its
    results, and how many there are; not its history. Safe while workers run: each item is written
    as it was at one instant. IDs, or options other than --all, select items; results are then
    omitted. Several queues make one file, and rwq import restores each.

    rwq export -q jobs > jobs.jsonl
    rwq export -q jobs --state abandoned --match '"user": *42' > some.jsonl
    rwq export -q jobs | rwq import -q jobs-copy -
    rwq export --all-queues > everything.jsonl
    """
    if settings.output is not OutputFormat.JSONL or settings.reshapes_records:
        raise InvalidArgument(
            "export writes the JSON lines that rwq import reads, and nothing else",
            "for other formats, fields and orders, use rwq ls all --data",
        )
    opened = OpenQueues(settings, all_queues=all_queues).find()
    if choice.by_name and not opened.is_one:
        raise InvalidArgument("IDs can be exported from one queue only", "give -q once")
    return _Run(settings, choice, opened).write()


class Exported(NamedTuple):
    """What was exported, and what was not, in counts.

    Attributes:
        requested: How many IDs were given; 0 if none were.
        left_out: Queues with a structure of the wrong type.
    """

    items: int
    results: int
    requested: int = 0
    wrong_types: int = 0
    without_data: int = 0
    stray_leases: int = 0
    left_out: int = 0

    @property
    def missing(self) -> int:
        return self.requested and self.requested - self.items - self.wrong_types

    @property
    def status(self) -> ExitStatus:
        failures = bool(self.left_out) + bool(self.wrong_types) + bool(self.missing)
        return batch_status(self.items + self.results, failures)

    def in_words(self, where: str) -> str:
        """Return the summary; `where` names the queues."""
        counts = [("missing", self.missing), ("results", self.results)]
        skipped = [
            (self.wrong_types, "of the wrong type"),
            (0 if self.requested else self.without_data, "without data"),
            (self.stray_leases, "stray leases"),
        ]
        done = f"exported {human.count(self.items)}" if self.items else "nothing exported"
        done += "".join(f", {word} {human.count(number)}" for word, number in counts if number)
        rest = ", ".join(f"{human.count(number)} {kind}" for number, kind in skipped if number)
        return f"{done}{where}" + (f"; skipped {rest}" if rest else "")


class _Run:
    """One export of one or several queues."""

    def __init__(self, settings: Settings, choice: Choice, opened: OpenQueues) -> None:
        self._settings, self._choice, self._opened = settings, choice, opened
        self._exports: list[Export] = []
        self._requested = 0
        # With one queue, the header has its time; with several, it is written before the first is
        # read.
        self._only = self._begin(opened.queues[0]) if opened.is_one else None

    def write(self) -> ExitStatus:
        stdout, opened = self._settings.environment.stdout, self._opened
        header = ExportHeader(
            b"", opened.queues[0].now_ms() if opened.queues and not self._only else 0
        )
        if self._only is not None:
            header = ExportHeader(self._only.queue, self._only.exported_ms)
        stdout.write(header_line(header))
        written = 0
        for lines in end_progress_at_first(opened.read(self._lines), self._settings):
            stdout.write(b"".join(lines))
            written += len(lines)
        results = sum(run.results_read for run in self._exports)
        stdout.write(export_end_line(written - results, results))
        stdout.flush()
        return self._summarize(written - results, results)

    def _begin(self, queue: WorkQueue) -> Export:
        ids: frozenset[bytes] | None = None
        if not self._choice.is_whole_queue:
            choice = self._choice.choose(queue)
            ids = frozenset(item_id for item_id in choice.ids if not isinstance(item_id, Flush))
            self._requested += len(ids) if self._choice.by_name else 0
        self._exports.append(Export(queue, ids))
        return self._exports[-1]

    def _lines(self, queue: WorkQueue) -> Iterator[list[bytes]]:
        run, is_empty = self._only or self._begin(queue), True
        name = None if self._opened.is_one else queue.name
        for batch in self._entries(run):
            is_empty = is_empty and not batch
            yield [entry_line(entry, name) for entry in batch]
        # A selection by options has its own note.
        is_told = not (self._choice.by_name or self._choice.is_whole_queue)
        if is_empty and not run.skipped.wrong_keys and not is_told:
            warn_missing(self._settings, queue)

    def _entries(self, run: Export) -> Iterator[Sequence[ItemSnapshot | Result]]:
        yield from run.batches()
        if self._choice.is_whole_queue:
            try:
                yield from run.results()
            except PermissionDenied:
                note = "rwq: this user may not read results; none are in the export"
                self._settings.environment.note(note)

    def _summarize(self, items: int, results: int) -> ExitStatus:
        environment, opened = self._settings.environment, self._opened
        all_skipped = [run.skipped for run in self._exports]
        for key in chain.from_iterable(skipped.wrong_keys for skipped in all_skipped):
            environment.error(f"rwq: {escaped(key)} has the wrong type; not exported")
        exported = Exported(
            items,
            results,
            requested=self._requested,
            wrong_types=sum(len(skipped.wrong_types) for skipped in all_skipped),
            without_data=sum(len(skipped.missing) for skipped in all_skipped),
            stray_leases=sum(skipped.stray_leases for skipped in all_skipped),
            left_out=len(opened.left_out),
        )
        where = describe_target(self._settings, opened.label)
        environment.note(
            exported.in_words(where or ("" if opened.is_one else f" from {opened.label}"))
        )
        return exported.status
