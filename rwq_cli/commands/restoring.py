"""The report of the commands that restore items: import and undo."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from rwq_cli.cli.bad_records import bad_record_reporter
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.report import Batch
from rwq_cli.views.failures import ReadLeases, Reason, failure_reasons
from rwq_cli.views.naming import Naming
from rwq_cli.views.outcomes import outcome_view

_FAILED = frozenset(
    {"conflicts", "rejected", "missing", "changed", "not-owner", "results-rejected"}
)
_RESULTS_RESTORED = frozenset({"results", "results-already-there"})
_WORDS = {Status.CONFLICT: "conflicts", Status.WRONG_TYPE: "rejected"}


def restore_report(
    queue: bytes,
    batches: Iterable[OutcomeBatch],
    results: ResultTally,
    *,
    counted: Sequence[str],
    leases: ReadLeases,
    naming: Naming,
    reasons: Mapping[Status, Reason],
    extra: Callable[[], Mapping[str, int]],
    rejected: Sequence[str],
    dry_run: bool,
    words: Mapping[Status, str] | None = None,
    fields: Mapping[str, str] | None = None,
    suffix: Callable[[], str] = str,
) -> Batch[Outcome]:
    """The report of restoring items.

    Args:
        queue: The queue's name.
        batches: The outcomes of items; reading them does the work.
        results: The outcomes of results, counted.
        counted: The words that JSON always has, in order.
        leases: Reads the leases of items that another session holds.
        naming: How the queue and the server are named.
        reasons: See `failure_reasons`.
        extra: Returns counts to add to those of the items; called at the end.
        rejected: The first lines that cannot be used, with the reasons; read at the end.
        dry_run: Whether it is a dry run.
        words: Words for statuses that are not counted under their names.
        fields: Further fields of the summary.
        suffix: Returns the end of the summary line; called at the end.
    """
    names = {status: status.value for status in Status} | _WORDS | dict(words or {})
    return Batch(
        view=outcome_view(queue),
        batches=batches,
        count=lambda batch: {names[status]: n for status, n in batch.counts().items()},
        word=lambda outcome: names[outcome.status],
        counted=counted,
        failed=_FAILED,
        extra_success=_RESULTS_RESTORED,
        shown=frozenset({"imported", "replaced", "restored"}),
        fields=lambda: {**bytes_fields("queue", queue), **(fields or {}), "dry_run": dry_run},
        dry_run=dry_run,
        summary_end=naming.summary_end,
        suffix=suffix,
        rejected=rejected,
        explain=lambda failed: failure_reasons(queue, failed, leases, reasons, naming.lines),
        extra=lambda: {
            **extra(),
            "results": results.restored,
            "results-already-there": results.already_there,
            "results-rejected": results.wrong_type,
        },
    )


def bad_line(number: int, reason: str) -> str:
    """An unusable line and the reason, for the failures in JSON."""
    return f"line {number}: {reason}"


def bad_line_reporter(settings: Settings, name: str) -> Callable[[int, str], None]:
    """A function that reports an unusable line of a file."""
    place = "line" if name == "-" else f"{name}, line"
    report = bad_record_reporter(settings, "not imported")
    return lambda number, reason: report(place, number, reason)
