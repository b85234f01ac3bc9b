"""The outcomes of verbs that change items."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rwq_cli.core.model import Outcome, Outcomes, Status
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, View
from rwq_cli.views.naming import Naming

if TYPE_CHECKING:
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.input.records import RecordReader
    from rwq_cli.views.failures import Reason


def outcome_view(queue: bytes) -> View[Outcome]:
    """The view of an outcome, which has no table."""

    def fields(outcome: Outcome) -> dict[str, Any]:
        return {
            **bytes_fields("queue", queue),
            **bytes_fields("id", outcome.item_id),
            "status": outcome.status.value,
            "holder": None if outcome.holder is None else escaped(outcome.holder),
        }

    return View(fields, lambda outcome: outcome.item_id, Outcome(b"", Status.MISSING))


def batch_of_ids(
    queue: "WorkQueue",
    outcomes: Outcomes,
    *,
    success: Status,
    failures: Sequence[Status],
    dry_run: bool,
    neutral: Sequence[Status] = (),
    naming: Naming,
    reasons: "Mapping[Status, Reason] | None" = None,
    fields: Mapping[str, object] | None = None,
) -> Batch[Outcome]:
    """The report of a verb on IDs.

    Args:
        queue: The queue.
        outcomes: The outcomes; reading them does the work.
        success: The status of an item on which the verb succeeded.
        failures: The statuses of an item on which it failed.
        dry_run: Whether it is a dry run.
        neutral: Statuses that are neither; JSON always counts them.
        naming: How the queue and the server are named.
        reasons: See `failure_reasons`.
        fields: Further fields of the summary.
    """
    # An item that is not what it was chosen as is left alone.
    failed = (*failures, Status.CHANGED, Status.WRONG_TYPE)

    def explain(failed: Sequence[Outcome]) -> Iterable[str]:
        from rwq_cli.views.failures import failure_reasons, not_as_chosen

        known = {Status.CHANGED: not_as_chosen, **(reasons or {})}
        leases = queue.effective_leases
        return failure_reasons(queue.name, failed, leases, known, naming.lines)

    return Batch(
        view=outcome_view(queue.name),
        batches=outcomes.batches,
        count=lambda batch: {status.value: n for status, n in batch.counts().items()},
        word=lambda outcome: outcome.status.value,
        counted=(success.value, *(status.value for status in failures)),
        failed=frozenset(status.value for status in failed),
        shown=frozenset({success.value}),
        fields=lambda: {**bytes_fields("queue", queue.name), **(fields or {}), "dry_run": dry_run},
        dry_run=dry_run,
        json_counted=tuple(status.value for status in neutral),
        explain=explain,
        summary_end=naming.summary_end,
    )


ADDED = {
    Status.ADDED: "added",
    Status.DUPLICATE: "duplicates",
    Status.WRONG_TYPE: Status.WRONG_TYPE.value,
}
NOT_ADDED = frozenset({"rejected", Status.WRONG_TYPE.value})


def batch_of_added(
    queue: bytes, outcomes: Outcomes, reader: "RecordReader", *, naming: Naming, dry_run: bool
) -> Batch[Outcome]:
    """The report of `rwq add`. Reading the outcomes adds the items."""

    def explain(failed: Sequence[Outcome]) -> Iterable[str]:
        from rwq_cli.views.failures import failure_reasons

        return failure_reasons(queue, failed, lambda _ids: (), {}, naming.lines)

    return Batch(
        view=outcome_view(queue),
        batches=outcomes.batches,
        count=lambda batch: {ADDED[status]: n for status, n in batch.counts().items()},
        word=lambda outcome: ADDED[outcome.status],
        counted=("added", "duplicates", "rejected"),
        failed=NOT_ADDED,
        shown=frozenset({"added"}),
        shows_all=False,
        fields=lambda: {**bytes_fields("queue", queue), "dry_run": dry_run},
        dry_run=dry_run,
        explain=explain,
        extra=lambda: {"rejected": reader.rejected, "empty": reader.empty},
        summary_end=naming.summary_end,
    )
