"""What became of items: a row for each, and a summary at the end.

    undo = Undo(settings, queue, "rm")
    with undo.report(_KIND, dry_run=choice.dry_run) as out:
        out.all(remove(queue, ids, undo, dry_run=choice.dry_run))   # or out.rows(…)
    return out.finish(undo_file=undo.name)

The command does the work. Rows are written to the run's `Output` as they come, if the format has
rows, and counted. `finish` writes the first failures by name and the summary (`would` in a dry
run), or the JSON object, and returns the exit code; its arguments are further fields of the object.
If Ctrl-C or a failure ends the run, the summary says what was done so far.
A command on several queues makes one `Parts` and a `Report` for each queue, finishes each, and
returns `parts.finish()`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, Generic, NamedTuple, Self, TypeVar

from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.model import Status
from rwq_cli.exit_codes import ExitStatus, batch_status, mark_partial
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Fields, bytes_fields, to_json
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.records import Output

T = TypeVar("T")

DRY_RUN = "dry run: "
# How many failures a summary names, and how many items a dry run.
NAMED_FAILURES = 5
NOTHING_DONE = "nothing done"
_WITH_ROWS = (OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS)


class Word(NamedTuple):
    """The meaning of a word in `status` or in a summary, and the infinitive for a dry run."""

    infinitive: str
    meaning: str


# Those of the core are rows of `Status`. The others are counts only, or about lines and files.
WORDS = {
    **{
        status.value: Word(status.infinitive, status.meaning) for status in Status if status.meaning
    },
    "restored": Word("restore", "it was restored"),
    "restored-before": Word("", "it was restored by an earlier run that was interrupted"),
    "in-doubt": Word("", "it was restored although it may have been completed meanwhile"),
    "deleted": Word("delete", "the undo file was deleted"),
    "in-use": Word("", "another rwq uses the undo file"),
    "retry": Word("", "its command failed, and it will be tried again"),
    "rejected": Word(
        "", "`work` gave it up, its record cannot be used, or a key has the wrong type"
    ),
    "lost": Word("", "its lease was lost, or its command itself completed, buried or released it"),
    "empty": Word("", "empty lines (`add`)"),
    "results": Word("", "results of completed items that were restored, or removed by `purge`"),
    "results-already-there": Word("", "results that exist already"),
    "results-rejected": Word("", "results whose key is taken by something else"),
}


_COUNT_NAMES = [word.replace("-", "_") for word in WORDS]
_FACT_NAMES = ("queue", "queue_b64", "queues", "to", "to_b64", "verb", "undo_file", "dry_run")


def check_summary_fields(names: Sequence[str]) -> None:
    """Raise `InvalidArgument` for a name that no summary in JSON has."""
    for name in names:
        if name not in (*_FACT_NAMES, *_COUNT_NAMES, "failures"):
            raise InvalidArgument(
                f"no field {name!r} in a summary",
                f"it has {', '.join(_FACT_NAMES)}, failures, and counts such as removed; "
                "-o jsonl has the fields of each item",
            )


class Row(NamedTuple, Generic[T]):
    """What the fields of an outcome are read from; the queue is None if `what` names it."""

    queue: bytes | None
    what: T
    dry_run: bool = False


class Kind(NamedTuple, Generic[T]):
    """How outcomes of one kind are counted and shown."""

    fields: Fields[Row[T]]
    # The word of an outcome: that of the core, such as `not-owner`.
    word: Callable[[T], str]
    item_id: Callable[[T], bytes]
    # The words that JSON always has, in order, first that for success; those that count as
    # failures; those whose rows `-o ids` prints; and further ones that JSON always has.
    counted: Sequence[str]
    failed: frozenset[str] = frozenset()
    printed: frozenset[str] = frozenset()
    json_counted: Sequence[str] = ()
    # True if `jsonl` and `csv` have the rows of all words.
    shows_all: bool = True
    # What a word is counted as, if not as itself, such as `duplicates`; empty for not at all.
    names: Mapping[str, str] = {}
    # Words of added counts that are successes.
    successes: frozenset[str] = frozenset()
    # The summary of nothing; empty for `nothing` and the first word.
    idle: str = ""
    # Words whose summary is written even with `-q`. If there are any such words, a part that has
    # counted none of them writes no summary.
    news: frozenset[str] = frozenset()
    # What a dry run says of an outcome, for people.
    preview: Callable[[T], str] | None = None

    def name_of(self, word: str) -> str:
        return self.names.get(word, str(word))


@dataclass
class Report(Generic[T]):
    """The rows and the summary of one command, or of its part for one queue."""

    out: Output
    kind: Kind[T]
    queue: bytes | None
    _: KW_ONLY
    dry_run: bool
    # What begins the JSON summary; None for the queue.
    facts: Mapping[str, object] | None = None
    # Returns the reason for each failure.
    explain: Callable[[Sequence[T]], Iterable[str]] | None = None
    # Return the place that the summary names, and the end of the summary.
    where: Callable[[], str] = str
    suffix: Callable[[], str] = str
    # If there are several queues: what they share, and the name in notes.
    parts: "Parts | None" = None
    name: str = ""
    # Returns the counts of what has no row, such as rejected lines; and for JSON, the reasons why
    # parts of the input have none.
    extra: Callable[[], Mapping[str, int]] = dict
    rejected: Sequence[str] = ()
    # The number of rows by what they are counted as.
    counts: Counter[str] = field(default_factory=Counter)
    _failures: list[T] = field(default_factory=list)
    _previewed: list[str] = field(default_factory=list)
    _unwritten: OSError | None = None
    # Ctrl-C may come after the summary.
    _has_ended: bool = False

    def __post_init__(self) -> None:
        fields, names = self.kind.fields, self.options.fields
        is_chosen = names is not None and self.options.output in _WITH_ROWS
        self.out.use(fields.only(names) if is_chosen and names else fields)

    @property
    def options(self) -> OutputOptions:
        return self.out.options

    def __enter__(self) -> Self:
        if self.parts is None:
            self.out.report = self
        else:
            self.parts.latest = self
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Say what was done so far if a failure ended the block."""
        # The error of a lost server says itself what was acknowledged.
        if isinstance(error, Exception) and not isinstance(error, ServerError):
            self.note_unfinished()
            if self._successes() and not self.dry_run:
                mark_partial(error)

    def unfinished(self) -> str:
        return "" if self._has_ended else self.summary()

    def note_unfinished(self) -> None:
        if self.has_work:
            self.options.end_progress()
            self._explained()
            self.options.environment.error(self._named(self.summary()))

    def _explained(self) -> list[tuple[T, str]]:
        """Name the first failures, each with its reason, for people; return both."""
        reasons: list[tuple[T, str]] = []
        if self.explain is not None and self._failures:
            reasons += zip(self._failures, self.explain(self._failures), strict=True)
        if not self.options.output.is_machine_readable:
            for outcome, reason in reasons:
                item_id = escaped(self.kind.item_id(outcome))
                self.options.environment.error(f"rwq: {item_id}: {reason}")
        return reasons

    def all(self, outcomes: Any) -> None:
        """Count and write outcomes of the core, which does the work while they are read."""
        for batch in outcomes.batches:
            self.rows(batch)

    def row(self, outcome: T) -> None:
        self.rows((outcome,))

    def rows(self, batch: Any, queue: bytes | None = None) -> None:
        kind = self.kind
        counts = Counter(map(kind.word, batch)) if isinstance(batch, Sequence) else batch.counts()
        for word, number in counts.items():
            if name := kind.name_of(word):
                self.counts[name] += number
        room = NAMED_FAILURES - len(self._failures)
        if room and any(kind.name_of(word) in kind.failed for word in counts):
            failed = (
                outcome for outcome in batch if kind.name_of(kind.word(outcome)) in kind.failed
            )
            self._failures += islice(failed, room)
        if self.dry_run and kind.preview is not None:
            previews = islice(batch, NAMED_FAILURES - len(self._previewed))
            self._previewed += map(kind.preview, previews)
        if self.options.output in _WITH_ROWS and self._unwritten is None:
            self._write(batch, self.queue if queue is None else queue)

    def _write(self, batch: Iterable[T], queue: bytes | None) -> None:
        """Write rows. If stdout is closed (`rwq complete - | head`) or full, work goes on."""
        if self.options.environment.stdout_is_terminal:
            self.options.end_progress()
        kind = self.kind
        shows_all = kind.shows_all and self.options.output is not OutputFormat.IDS
        try:
            for outcome in batch:
                if shows_all or kind.word(outcome) in kind.printed:
                    self.out.write(Row(queue, outcome, self.dry_run))
        except OSError as error:
            self._unwritten = error

    def finish(self, **facts: object) -> ExitStatus:
        """Write what follows the rows, and return the exit code; JSON includes these facts."""
        environment, output = self.options.environment, self.options.output
        with self:
            self.options.end_progress()
            reasons = self._explained()
            if self._previewed and (output.is_table or output is OutputFormat.PLAIN):
                more = self.counts.total() - len(self._previewed)
                rest = [f"and {more:,} more; -o ids lists all"] if more else []
                for line in (*self._previewed, *rest):
                    environment.note(self._named(line))
            try:
                if self._unwritten is not None:
                    raise self._unwritten
                if self.parts is None and output in _WITH_ROWS:
                    self.out.end()
                if output is OutputFormat.JSON:
                    summary = self._json(facts, reasons)
                    if self.parts is None:
                        environment.stdout.write(to_json(summary) + b"\n")
                    else:
                        self.out.write_object(summary)
                environment.stdout.flush()
            except BrokenPipeError:
                pass
            is_news = any(self.counts[word] for word in self.kind.news)
            has_summary = self.parts is None or is_news or (self.has_work and not self.kind.news)
            self._has_ended = True
            if output is not OutputFormat.JSON and has_summary:
                (environment.error if is_news else environment.note)(self._named(self.summary()))
            totals = self.totals()
            failures = sum(totals.get(word, 0) for word in self.kind.failed)
            status = batch_status(self._successes(), failures)
            if self.parts is not None:
                self.parts.add(self, status)
            return status

    def _successes(self) -> int:
        extra = self.extra()
        rows = sum(n for word, n in self.counts.items() if word not in self.kind.failed)
        return rows + sum(extra.get(word, 0) + self.counts[word] for word in self.kind.successes)

    @property
    def has_work(self) -> bool:
        return any(self.totals().values())

    def totals(self) -> dict[str, int]:
        kind = self.kind
        totals = {**dict.fromkeys((*kind.counted, *kind.json_counted), 0), **self.counts}
        for word, number in self.extra().items():
            totals[word] = totals.get(word, 0) + number
        return totals

    def summary(self) -> str:
        return self.done() + self.where() + self.suffix()

    def done(self) -> str:
        parts: list[str] = []
        was_would = False
        would = {word: row.infinitive for word, row in WORDS.items()} if self.dry_run else {}
        for word, number in self.totals().items():
            if number:
                infinitive = would.get(word, "")
                label = infinitive or word.replace("-", " ")
                start = "would " if infinitive and not was_would else ""
                parts.append(f"{start}{label} {number:,}")
                was_would = bool(infinitive)
        first = self.kind.counted[0]
        nothing = f"nothing to {would.get(first, '')}" if self.dry_run else f"nothing {first}"
        text = ", ".join(parts) or self.kind.idle or nothing
        return (DRY_RUN if self.dry_run else "") + text

    def _json(
        self, facts: Mapping[str, object], reasons: Sequence[tuple[T, str]]
    ) -> dict[str, object]:
        """Return the summary as JSON: facts, counts, and the first failures with reasons."""
        totals = {word.replace("-", "_"): number for word, number in self.totals().items()}
        first = bytes_fields("queue", self.queue) if self.facts is None else self.facts
        summary = {**first, "dry_run": self.dry_run, **facts, **totals}
        # `add` names what it rejects as it reads; its other failures are rare.
        if self.explain is not None and (self.kind.shows_all or self._failures):
            failures: list[tuple[bytes | None, str, str]]
            failures = [(None, "rejected", reason) for reason in self.rejected]
            failures += [
                (self.kind.item_id(what), self.kind.name_of(self.kind.word(what)), reason)
                for what, reason in reasons
            ]
            summary["failures"] = [
                {**bytes_fields("id", item_id), "code": code, "reason": reason}
                for item_id, code, reason in failures[:NAMED_FAILURES]
            ]
        if self.options.fields is None:
            return summary
        counts = dict.fromkeys(_COUNT_NAMES, 0)
        return {name: summary.get(name, counts.get(name)) for name in self.options.fields}

    def _named(self, line: str) -> str:
        return f"{self.name}: {line}" if self.name else line


class Parts:
    """One command on several queues: the rows of all are one output."""

    # The parts in which nothing was done share one summary.
    def __init__(self, out: Output, *, nothing: str = NOTHING_DONE) -> None:
        # `nothing` is what Ctrl-C says as long as no part has done anything.
        self._nothing = nothing
        self._out = out
        self._out.report = self
        # The part that was begun last.
        self.latest: Report[Any] | None = None
        self._statuses: set[ExitStatus] = set()
        # One of the parts without work, and their number: a clean that goes on has ever more.
        self._idle: Report[Any] | None = None
        self._idle_parts = 0
        self._has_work = False

    def unfinished(self) -> str:
        if self.latest is not None and self.latest.has_work:
            return self.latest.unfinished()
        return "" if self._has_work else self._nothing

    def add(self, part: Report[Any], status: ExitStatus) -> None:
        self._statuses.add(status)
        if part.has_work:
            self._has_work = True
        else:
            self._idle, self._idle_parts = part, self._idle_parts + 1

    def finish(self) -> ExitStatus:
        """Write what follows the last part, and return the exit code of all."""
        environment, output = self._out.options.environment, self._out.options.output
        if output is OutputFormat.JSON or (self._statuses and output in _WITH_ROWS):
            self._out.end()
        environment.stdout.flush()
        if self._idle and not self._has_work and output is not OutputFormat.JSON:
            where = "one queue" if self._idle_parts == 1 else f"{self._idle_parts:,} queues"
            environment.note(f"{self._idle.done()} in {where}{self._idle.where()}")
        status = max(self._statuses, default=ExitStatus.OK)
        is_mixed = self._has_work and status is ExitStatus.NO and ExitStatus.OK in self._statuses
        return ExitStatus.PARTIAL if is_mixed else status
