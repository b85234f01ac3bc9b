"""What the commands that put items back have in common."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from rwq_cli.cli.bad_records import bad_record_reporter
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.all_results import ResultTally
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.report import Batch
from rwq_cli.views.outcomes import DRY_RUN, outcome_view

IMPORTED = ("imported", "already-there", "skipped", "replaced", "conflicts", "rejected")
_FAILED = frozenset(
    {"conflicts", "rejected", "missing", "changed", "not-owner", "results-rejected"}
)
_RESULTS_DONE = frozenset({"results", "results-already-there"})
_WORDS = {Status.CONFLICT: "conflicts", Status.WRONG_TYPE: "rejected"}


def put_report(
    queue: bytes,
    batches: Iterable[OutcomeBatch],
    *,
    rejected: Callable[[], int],
    dry_run: bool,
    null_separated: bool,
    words: Mapping[Status, str] | None = None,
    counted: Sequence[str] = IMPORTED,
    fields: Mapping[str, str] | None = None,
    extra: Callable[[], dict[str, int]] = dict,
    suffix: Callable[[], str] = str,
) -> Batch[Outcome]:
    """The report of putting items back.

    Args:
        queue: The queue's name.
        batches: What becomes of the items; reading them does the work.
        rejected: How many lines could not be used; asked at the end.
        dry_run: Whether nothing is changed.
        null_separated: Whether `-o ids` ends each ID with NUL.
        words: What to call statuses other than by their names.
        counted: The words of the summary that are always there, in order.
        fields: Further fields of the summary.
        extra: Further counts, asked at the end.
        suffix: Ends the summary line; asked at the end.
    """
    called = {**_WORDS, **(words or {})}

    def word(status: Status) -> str:
        return called.get(status, status.value)

    report = Batch(
        view=outcome_view(queue),
        batches=batches,
        count=lambda batch: {word(status): n for status, n in batch.counts().items()},
        word=lambda outcome: word(outcome.status),
        counted=counted,
        failed=_FAILED,
        also_done=_RESULTS_DONE,
        shown=frozenset({"imported", "replaced", "restored"}),
        fields={**bytes_fields("queue", queue), **(fields or {}), "dry_run": dry_run},
        prefix=DRY_RUN if dry_run else "",
        suffix=suffix,
        null_separated=null_separated,
    )
    report.extra = lambda: {"rejected": rejected() + report.counts["rejected"], **extra()}
    return report


def result_counts(tally: ResultTally) -> dict[str, int]:
    """What became of results, for the summary."""
    return {
        "results": tally.put,
        "results-already-there": tally.there,
        "results-rejected": tally.refused,
    }


def report_bad_line(settings: Settings, name: str) -> Callable[[int, str], None]:
    """A function that reports a line of a file that cannot be used."""
    place = "line" if name == "-" else f"{name}, line"
    report = bad_record_reporter(settings, "not imported")
    return lambda number, reason: report(place, number, reason)
