"""Reports: what a command returns, independent of the output format."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from rwq_cli.core.errors import ServerError
from rwq_cli.exit_codes import ExitCode, ExitStatus, batch_status
from rwq_cli.output.encode import JsonText
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Cut as Cut, Fields, bytes_fields
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.sections import COMMAND_STYLE as COMMAND_STYLE, Row as Row, Section as Section

T = TypeVar("T")

DRY_RUN = "dry run: "
# Dry-run wording, by the wording of the completed action.
INFINITIVES = {
    "added": "add",
    "buried": "bury",
    "completed": "complete",
    "delayed": "delay",
    "deleted": "delete",
    "dropped": "drop",
    "imported": "import",
    "kicked": "kick",
    "moved": "move",
    "promoted": "promote",
    "pruned": "prune",
    "released": "release",
    "removed": "remove",
    "replaced": "replace",
    "restored": "restore",
    "returned": "return",
    "set": "set",
    "skipped": "skip",
    "touched": "touch",
}
NAMED_FAILURES = 5
# How many items a dry run names.
NAMED_RECORDS = 5


# Columns up to this rank are left out before another is cut.
LAST_EXTRA = 3


def infinitive(word: str) -> str:
    """What a dry run would do, for the word of what was done."""
    return INFINITIVES[word]


def _nothing(*_: Any) -> None:
    """The default of a report's optional notes."""


class Column(NamedTuple, Generic[T]):
    """One column of a table, and one field of `-o plain`.

    Attributes:
        title: The heading.
        raw: The field for `-o plain`; None if it is unknown or does not apply.
        human: The cell of a table; None for the same as the field.
        right: Whether it is right-aligned.
        style: The style of a cell, such as `red`; None if there is none.
        field: The name of the field in JSON and CSV; empty for the title in lower case.
        rank: The order in which columns are left out on a narrow terminal, 1 first; 0 is left out
            only after all others. Up to LAST_EXTRA they are extras.
        cut: Where its cells are cut on a narrow terminal; None for nowhere.
    """

    title: str
    raw: Callable[[T], bytes | str | float | None]
    human: Callable[[T], str] | None = None
    right: bool = False
    style: Callable[[T], str | None] | None = None
    field: str = ""
    rank: int = 0
    cut: Cut | None = None

    @property
    def name(self) -> str:
        """The name of its field."""
        return self.field or self.title.lower()


class View(NamedTuple, Generic[T]):
    """The representation of records of one type in every format.

    Attributes:
        fields: The JSON object, complete; CSV is the same, flattened.
        item_id: The ID, for `-o ids`; None if no record has one.
        sample: Any record, for the header of a CSV file without lines.
        columns: For tables and plain lines. Without any, plain has a line for each field.
        sections: The detailed record, in place of a table row.
        data: The payload, for `-o data`; None if no record has one.
        nested: The fields that are an object or null, with their inner fields: CSV has a column
            for each.
        plain_columns: For plain lines, with the ID first; empty for `columns`.
        all_columns: For `-o wide` and `--fields`; empty for `columns`.
        overview: With sections, the columns of a table of all records above them; empty for none.
    """

    fields: Callable[[T], dict[str, Any]]
    item_id: Callable[[T], bytes | None] | None
    sample: T
    columns: Sequence[Column[T]] = ()
    sections: Callable[[T], Sequence[Section]] | None = None
    data: Callable[[T], bytes | None] | None = None
    nested: Mapping[str, Sequence[str]] = MappingProxyType({})
    plain_columns: Sequence[Column[T]] = ()
    all_columns: Sequence[Column[T]] = ()
    overview: Sequence[Column[T]] = ()


def view_of(
    fields: Fields[T],
    sample: T,
    columns: Sequence[Column[T]] = (),
    sections: Callable[[T], Sequence[Section]] | None = None,
) -> View[T]:
    """Declared fields as a view, for reports: they are on their way out."""

    def json(record: T) -> dict[str, Any]:
        values = fields.json(record)
        for name in fields.texts:
            if values[name] is not None:
                values[name] = JsonText(values[name])
        return values

    return View(
        json,
        fields.id and fields.id.get,
        sample,
        columns,
        sections,
        data=fields.data and fields.data.get,
    )


class Records(NamedTuple, Generic[T]):
    """Records, read while they are written.

    Attributes:
        view: Their representation.
        records: The records.
        empty: Returns the sentence that replaces an empty table.
        fails_if_empty: Whether no records mean exit code 1.
        is_one: Whether the user asked for one record: JSON is an object then.
        nothing: With `is_one`, the record that JSON shows if there is none; None if there always is
            one.
        unframed_data: Whether `-o data` adds nothing to the bytes, because one item was requested.
        id_batches: The IDs of the records in batches, read in place of the records for `-o ids`;
            None if only the records can be read.
        text: The output for `table` and `plain`, with line ends; None for the view's.
        opening: A note for stderr before the first record; left out if there is none.
        note: A note for stderr on a record in this format.
        footer: Returns a note for stderr after a table, given the number of records.
        closing: A note for stderr after the last record.
        is_missing: Whether a record stands for something that does not exist.
        status: Returns the exit code; None for the usual one.
        if_unwritten: A line for stderr if the output cannot be written; None for none.
    """

    view: View[T]
    records: Iterable[T]
    empty: Callable[[], str] = str
    fails_if_empty: bool = False
    is_one: bool = False
    nothing: T | None = None
    unframed_data: bool = False
    id_batches: Iterable[Sequence[bytes]] | None = None
    text: str | None = None
    opening: str | None = None
    note: Callable[[T, OutputFormat], str | None] = _nothing
    footer: Callable[[int], str | None] = _nothing
    closing: Callable[[], str | None] = _nothing
    is_missing: Callable[[T], bool] = lambda _record: False
    status: Callable[[], ExitCode | None] = _nothing
    if_unwritten: str | None = None


# Without eq and repr the class is created in half the time, at every start.
@dataclass(eq=False, repr=False)
class Batch(Generic[T]):
    """The outcome for each item, written as it is acknowledged, and a summary.

    Attributes:
        view: How a record looks in `jsonl`, `csv` and `ids`.
        batches: The records, in the batches that were acknowledged; reading them does the work.
        count: Counts the records of a batch, by word.
        word: The word of one record.
        counted: The words that JSON always has, in order; the first is what the command is for.
        failed: Words that count as failure.
        shown: Words whose records `-o ids` prints.
        fields: Returns the fields of the summary besides the counts; called at the end.
        shows_all: Whether `jsonl` and `csv` print the records of all words.
        json_counted: Further words that JSON always has.
        extra_success: Words of `extra` that count as success.
        extra: Returns counts to add to those of the records; called at the end.
        dry_run: Whether nothing was changed.
        idle: The summary if there was nothing to do; None for one of the first word.
        summary_end: Returns where it was done, for the summary.
        suffix: The end of the summary line; called when the work is done.
        summary_if_quiet: Whether a quiet run has a summary, too, if anything was done.
        explain: Returns the reason for each of these failures, and what to do; None if failures are
            reported otherwise.
        preview: What a dry run would do to a record, for people; None to name no records.
        rejected: Why parts of the input became no records, for the failures in JSON; read at the
            end.
        first_failures: The first records that failed, `NAMED_FAILURES` at most.
        first_records: In a dry run with a preview, the first records.
    """

    view: View[T]
    batches: Iterable[Any]
    count: Callable[[Any], Mapping[str, int]]
    word: Callable[[T], str]
    counted: Sequence[str]
    failed: frozenset[str]
    shown: frozenset[str]
    fields: Callable[[], dict[str, Any]]
    shows_all: bool = True
    json_counted: Sequence[str] = ()
    extra_success: frozenset[str] = frozenset()
    extra: Callable[[], dict[str, int]] = dict
    dry_run: bool = False
    idle: str | None = None
    summary_end: Callable[[], str] = str
    suffix: Callable[[], str] = str
    summary_if_quiet: bool = False
    explain: Callable[[Sequence[T]], Iterable[str]] | None = None
    preview: Callable[[T], str] | None = None
    rejected: Sequence[str] = ()
    counts: Counter[str] = field(default_factory=Counter)
    first_failures: list[T] = field(default_factory=list)
    first_records: list[T] = field(default_factory=list)

    def add(self, batch: Any) -> None:
        """Count a batch, and keep the first failures."""
        counts = self.count(batch)
        self.counts.update(counts)
        room = NAMED_FAILURES - len(self.first_failures)
        if room and self.failed and any(counts.get(word) for word in self.failed):
            failures = (record for record in batch if self.word(record) in self.failed)
            self.first_failures += islice(failures, room)
        if self.dry_run and self.preview is not None:
            self.first_records += islice(batch, NAMED_RECORDS - len(self.first_records))

    def summary_fields(self) -> dict[str, Any]:
        """The summary as JSON: the fields, the counts, and the first failures with reasons."""
        totals = {word.replace("-", "_"): number for word, number in self.totals().items()}
        summary = {**self.fields(), **totals}
        # What an add rejects is named while it is read; other failures are rare there.
        if self.explain is not None and (self.shows_all or self.first_failures):
            failures = [
                {**bytes_fields("id", None), "code": "rejected", "reason": reason}
                for reason in self.rejected
            ]
            failures += [
                {**bytes_fields("id", item_id), "code": self.word(record), "reason": reason}
                for record, item_id, reason in self._explained()
            ]
            summary["failures"] = failures[:NAMED_FAILURES]
        return summary

    def failure_lines(self) -> Iterator[str]:
        """A line for each of the first failures."""
        for _, item_id, reason in self._explained():
            yield f"rwq: {escaped(item_id or b'')}: {reason}"

    def preview_lines(self) -> Iterator[str]:
        """A line for each of the first records of a dry run, and how many more there are."""
        assert self.preview is not None
        yield from map(self.preview, self.first_records)
        if more := self.counts.total() - len(self.first_records):
            yield f"and {more:,} more; -o ids lists all"

    def _explained(self) -> Iterator[tuple[T, bytes | None, str]]:
        if self.explain is None or not self.first_failures:
            return
        for record, reason in zip(
            self.first_failures, self.explain(self.first_failures), strict=True
        ):
            item_id = None if self.view.item_id is None else self.view.item_id(record)
            yield record, item_id, reason

    def totals(self) -> dict[str, int]:
        """The counts so far by word, in the order of the summary."""
        totals = {word: self.counts[word] for word in (*self.counted, *self.json_counted)}
        totals.update(self.counts)
        for word, number in self.extra().items():
            totals[word] = totals.get(word, 0) + number
        return totals

    def summary(self) -> str:
        """The summary line."""
        return self.done() + self.summary_end() + self.suffix()

    def done(self) -> str:
        """What was done, or would be."""
        parts: list[str] = []
        was_would = False
        for word, number in self.totals().items():
            if not number:
                continue
            is_would = self.dry_run and word in INFINITIVES
            shown = INFINITIVES[word] if is_would else word.replace("-", " ")
            parts.append(f"{'would ' if is_would and not was_would else ''}{shown} {number:,}")
            was_would = is_would
        text = ", ".join(parts)
        if not parts:
            done = self.counted[0]
            text = f"nothing to {INFINITIVES[done]}" if self.dry_run else f"nothing {done}"
            text = self.idle or text
        return (DRY_RUN if self.dry_run else "") + text

    def status(self) -> ExitStatus:
        """The exit code."""
        totals = self.totals()
        failures = sum(totals.get(word, 0) for word in self.failed)
        successes = sum(n for word, n in self.counts.items() if word not in self.failed)
        successes += sum(totals.get(word, 0) for word in self.extra_success)
        return batch_status(successes, failures)


class ReportsByQueue(NamedTuple):
    """Reports of one kind, one for each queue, as one output.

    Attributes:
        reports: Each queue's name, escaped, and its report.
    """

    reports: Iterable[tuple[str, Records[Any] | Batch[Any]]]


class ReportStream(NamedTuple):
    """Reports without end, each written when its work is done, until the process is stopped.

    Attributes:
        reports: The name of each report's queue, escaped, or nothing; and the report.
        failed: Called if the server fails in a report; raises the error if that is the end.
        running: What lasts as long as they do.
    """

    reports: Iterable[tuple[str, Batch[Any]]]
    failed: Callable[[ServerError], None]
    running: AbstractContextManager[object]


Report = Records[Any] | Batch[Any] | ReportsByQueue | ReportStream
