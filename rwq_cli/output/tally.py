"""What became of items, in counts: the words, and the summary of one command or of its part for
one queue. `Output` writes it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import Status
from rwq_cli.exit_codes import ExitStatus, batch_status
from rwq_cli.output.field import Fields, bytes_fields

T = TypeVar("T")

DRY_RUN = "dry run: "
# How many failures a summary names, and how many items a dry run.
NAMED_FAILURES = 5


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


class OutcomeRecord(NamedTuple, Generic[T]):
    """What the fields of an outcome are read from; the queue is None if `outcome` names it."""

    queue: bytes | None
    outcome: T
    dry_run: bool = False


class OutcomeKind(NamedTuple, Generic[T]):
    """How outcomes of one kind are counted and shown."""

    fields: Fields[OutcomeRecord[T]]
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
class Tally(Generic[T]):
    """The counts of what was done to items.

    Args:
        kind: How outcomes are counted.
        queue: The queue; None for several.
        dry_run: Whether nothing was changed.
        facts: What begins the JSON summary; None for the queue.
        explain: Returns the reason for each failure.
        where: Returns the place that the summary names.
        suffix: Returns the end of the summary.
        name: What begins each note, if there are several queues.
        extra: Returns the counts of what has no row, such as rejected lines.
        rejected: The reasons why parts of the input have no row, for JSON.
    """

    kind: OutcomeKind[T]
    queue: bytes | None
    _: KW_ONLY
    dry_run: bool
    facts: Mapping[str, object] | None = None
    explain: Callable[[Sequence[T]], Iterable[str]] | None = None
    where: Callable[[], str] = str
    suffix: Callable[[], str] = str
    name: str = ""
    extra: Callable[[], Mapping[str, int]] = dict
    rejected: Sequence[str] = ()
    # The number of rows by what they are counted as.
    counts: Counter[str] = field(default_factory=Counter)
    _failures: list[T] = field(default_factory=list)
    _previews: list[str] = field(default_factory=list)

    def add(self, batch: Any) -> None:
        """Count outcomes: a sequence of them, or a batch of the core."""
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
            previews = islice(batch, NAMED_FAILURES - len(self._previews))
            self._previews += map(kind.preview, previews)

    def reasons(self) -> list[tuple[T, str]]:
        """Return the first failures, each with its reason."""
        if self.explain is None or not self._failures:
            return []
        return list(zip(self._failures, self.explain(self._failures), strict=True))

    def preview_lines(self) -> list[str]:
        more = self.counts.total() - len(self._previews) if self._previews else 0
        rest = [f"and {more:,} more; -o ids lists all"] if more else []
        return [*self._previews, *rest]

    @property
    def has_work(self) -> bool:
        return any(self.totals().values())

    @property
    def is_news(self) -> bool:
        return any(self.counts[word] for word in self.kind.news)

    @property
    def needs_own_summary(self) -> bool:
        """Whether it has a summary of its own beside those of other queues."""
        return self.is_news or (self.has_work and not self.kind.news)

    @property
    def successes(self) -> int:
        extra = self.extra()
        rows = sum(n for word, n in self.counts.items() if word not in self.kind.failed)
        return rows + sum(extra.get(word, 0) + self.counts[word] for word in self.kind.successes)

    @property
    def status(self) -> ExitStatus:
        totals = self.totals()
        return batch_status(self.successes, sum(totals.get(word, 0) for word in self.kind.failed))

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

    def json(
        self,
        facts: Mapping[str, object],
        reasons: Sequence[tuple[T, str]],
        names: Sequence[str] | None,
    ) -> dict[str, object]:
        """Return the summary as JSON, or the fields with these names.

        Args:
            facts: What comes before the counts.
            reasons: The first failures, each with its reason.
        """
        totals = {word.replace("-", "_"): number for word, number in self.totals().items()}
        first = bytes_fields("queue", self.queue) if self.facts is None else self.facts
        summary = {**first, "dry_run": self.dry_run, **facts, **totals}
        # `add` names what it rejects as it reads; its other failures are rare.
        if self.explain is not None and (self.kind.shows_all or self._failures):
            failures: list[tuple[bytes | None, str, str]]
            failures = [(None, "rejected", reason) for reason in self.rejected]
            failures += [
                (self.kind.item_id(outcome), self.kind.name_of(self.kind.word(outcome)), reason)
                for outcome, reason in reasons
            ]
            summary["failures"] = [
                {**bytes_fields("id", item_id), "code": code, "reason": reason}
                for item_id, code, reason in failures[:NAMED_FAILURES]
            ]
        if names is None:
            return summary
        counts = dict.fromkeys(_COUNT_NAMES, 0)
        return {name: summary.get(name, counts.get(name)) for name in names}

    def labelled(self, line: str) -> str:
        return f"{self.name}: {line}" if self.name else line


class FinishedTallies:
    """The finished tallies of a command, one for each of its queues."""

    def __init__(self) -> None:
        self.has_work = False
        self._statuses: set[ExitStatus] = set()
        # One of the tallies without work, and their number: a clean that goes on has ever more.
        self._idle: Tally[Any] | None = None
        self._idle_count = 0

    def add(self, tally: Tally[Any]) -> ExitStatus:
        status = tally.status
        self._statuses.add(status)
        if tally.has_work:
            self.has_work = True
        else:
            self._idle, self._idle_count = tally, self._idle_count + 1
        return status

    def summarize_idle(self) -> str:
        """Return the summary that the queues share if nothing was done in any of them."""
        if self._idle is None or self.has_work:
            return ""
        where = "one queue" if self._idle_count == 1 else f"{self._idle_count:,} queues"
        return f"{self._idle.done()} in {where}{self._idle.where()}"

    @property
    def status(self) -> ExitStatus:
        status = max(self._statuses, default=ExitStatus.OK)
        is_mixed = self.has_work and status is ExitStatus.NO and ExitStatus.OK in self._statuses
        return ExitStatus.PARTIAL if is_mixed else status
