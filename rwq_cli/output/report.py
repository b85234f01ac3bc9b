"""What a command hands to the renderer: one report, whatever the output format will be."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rwq_cli.exit_codes import ExitStatus, MonitoringStatus

T = TypeVar("T")

# The style of a value that is a command line.
COMMAND_STYLE = "cyan"


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column of a table, and one field of `-o plain`.

    Attributes:
        title: The heading.
        human: The cell for people.
        raw: The field for `-o plain`; None where it is unknown or does not apply.
        right: Whether it is a number, set to the right.
        style: The style of a cell, a rich style such as `red`; None for none.
        shrinks: In which order it gives way on a narrow screen, from 1; 0 never.
    """

    title: str
    human: Callable[[T], str]
    raw: Callable[[T], str | int | None]
    right: bool = False
    style: Callable[[T], str | None] = lambda _record: None
    shrinks: int = 0


@dataclass(frozen=True)
class View(Generic[T]):
    """How records of one type look in every format.

    Attributes:
        columns: For tables and plain lines.
        fields: The JSON object, complete; CSV is the same, flattened.
        item_id: The ID, for `-o ids`; None if the record has none.
        sample: Any record, for the header of a CSV file without lines.
        data: The payload, for `-o data`; None if the record has none.
    """

    columns: Sequence[Column[T]]
    fields: Callable[[T], dict[str, Any]]
    item_id: Callable[[T], bytes | None]
    sample: T
    data: Callable[[T], bytes | None] = lambda _record: None


@dataclass
class Listing(Generic[T]):
    """Records, read while they are written.

    Attributes:
        view: How they look.
        records: The records.
        empty: The sentence of an empty table.
        footer: What to say below a table, given how many were shown; None for nothing.
        none_is_no: Whether an empty listing is the answer no.
        one_only: The user asked for one record: `-o data` then adds nothing to its bytes.
        null_separated: `-o ids` and `-o data` end each record with NUL, unescaped.
        id_batches: The IDs of the records in batches, for `-o ids` of many; None where the records
            are few or have to be read one by one. Either this or the records are read.
        sections: Where the records are told at length to people instead of in a table: titled
            sections of labelled lines.
        closing: What to say on stderr when all was written, known only then; None for nothing.
        status: The exit code where it depends on what the records say; None for the usual.
    """

    view: View[T]
    records: Iterable[T]
    empty: str
    footer: Callable[[int], str | None] = lambda _shown: None
    none_is_no: bool = False
    one_only: bool = False
    null_separated: bool = False
    id_batches: Iterable[Sequence[bytes]] | None = None
    sections: "Callable[[T], list[Section]] | None" = None
    closing: Callable[[], str | None] = lambda: None
    status: Callable[[], ExitStatus | None] = lambda: None


@dataclass
class Batch(Generic[T]):
    """Records of what was done, each to be told as it is acknowledged, and a summary of all.

    Attributes:
        view: How a record looks in `jsonl`, `csv` and `ids`.
        batches: The records, as they were acknowledged together; reading them does the work.
        count: How many records of a batch are counted under which word.
        word: The word that one record is counted under.
        counted: The words of the summary that are always there, in order.
        failed: Words that count as failure.
        also_done: Words among the further counts that tell of something done, too.
        shown: Words whose records `-o ids` prints.
        tells_only_shown: Whether `jsonl` and `csv`, too, print those records only.
        also: Further words that JSON always counts.
        fields: Fields of the summary besides the counts.
        extra: Further counts that are known only at the end.
        prefix: Begins the summary line, such as `would have ` in a dry run.
        suffix: Ends it; known only when all is done.
        null_separated: `-o ids` ends each with NUL, unescaped.
    """

    view: View[T]
    batches: Iterable[Any]
    count: Callable[[Any], Mapping[str, int]]
    word: Callable[[T], str]
    counted: Sequence[str]
    failed: frozenset[str]
    shown: frozenset[str]
    fields: dict[str, Any]
    tells_only_shown: bool = False
    also: Sequence[str] = ()
    also_done: frozenset[str] = frozenset()
    extra: Callable[[], dict[str, int]] = dict
    prefix: str = ""
    suffix: Callable[[], str] = str
    null_separated: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def totals(self) -> dict[str, int]:
        """The counts so far, by word: the fixed ones first."""
        totals = {word: self.counts[word] for word in (*self.counted, *self.also)}
        totals.update({word: n for word, n in self.counts.items() if word not in totals})
        totals.update(self.extra())
        return totals

    def summary(self) -> str:
        """The one line for people."""
        said = [
            f"{word.replace('-', ' ')} {number:,}"
            for word, number in self.totals().items()
            if number or word in self.counted
        ]
        return self.prefix + ", ".join(said) + self.suffix()

    def status(self) -> ExitStatus:
        """The exit code: all, part or none of it failed."""
        totals = self.totals()
        failures = sum(number for word, number in totals.items() if word in self.failed)
        if not failures:
            return ExitStatus.OK
        successes = sum(self.counts.values()) - sum(self.counts[word] for word in self.failed)
        successes += sum(totals.get(word, 0) for word in self.also_done)
        return ExitStatus.PARTIAL if successes else ExitStatus.NO


@dataclass
class Detail(Generic[T]):
    """One or more records, each told at length.

    Attributes:
        view: How they look to machines.
        records: The records.
        sections: The record for people: titled sections of labelled lines, each with a style.
        one_only: The user asked for one: `json` is an object and `-o data` adds nothing.
        is_missing: Whether a record is the answer no.
        missing: The sentence that says so, where the format has no place for it.
    """

    view: View[T]
    records: Iterable[T]
    sections: Callable[[T], "list[Section]"]
    one_only: bool
    is_missing: Callable[[T], bool] = lambda _record: False
    missing: Callable[[T], str] = lambda _record: ""


@dataclass(frozen=True)
class Section:
    """A titled part of a detail.

    Attributes:
        title: Its title; empty for none.
        rows: Label, value and style; an empty label continues the line before.
        numbers: Whether values that begin with a digit are set to the right.
    """

    title: str
    rows: Sequence[tuple[str, str, str | None]]
    numbers: bool = False


@dataclass(frozen=True)
class Text:
    """Text that is the result itself.

    Attributes:
        text: It, with its line ends.
    """

    text: str


@dataclass(frozen=True)
class Verdict(Generic[T]):
    """What a check found, with the exit code that it comes to.

    Attributes:
        view: How a record looks to machines.
        records: What was found.
        text: All of it for `table` and `plain`, with its line ends.
        one_only: The user asked for one: `json` is an object.
        status: The exit code.
    """

    view: View[T]
    records: Sequence[T]
    text: str
    one_only: bool
    status: MonitoringStatus


@dataclass
class Stream(Generic[T]):
    """Records in a format of their own, a line each behind a header, with a summary of what was not
    among them.

    Attributes:
        view: How a record looks in the formats that are not its own.
        batches: The records, as they were read together.
        header: The first line, with its end.
        line: The line of a record, with its end.
        summary: What to say at the end, given how many records there were.
        status: What it comes to then.
        null_separated: `-o ids` and `-o data` end each record with NUL, unescaped.
    """

    view: View[T]
    batches: Iterable[Sequence[T]]
    header: bytes
    line: Callable[[T], bytes]
    summary: Callable[[int], str]
    status: Callable[[int], ExitStatus]
    null_separated: bool = False


Report = Listing[Any] | Batch[Any] | Detail[Any] | Stream[Any] | Text | Verdict[Any]
