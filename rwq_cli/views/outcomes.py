"""What the verbs that take many IDs have in common."""

from collections.abc import Sequence

from rwq_cli.core.model import Outcome, Outcomes, Status
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.report import Batch
from rwq_cli.views.records import outcome_view

DRY_RUN = "dry run, nothing changed: "


def batch_of_ids(
    queue: bytes,
    outcomes: Outcomes,
    *,
    done: Status,
    failures: Sequence[Status],
    dry_run: bool,
    null_separated: bool,
    also: Sequence[Status] = (),
) -> Batch[Outcome]:
    """The report of a verb on IDs.

    Args:
        queue: The queue's name.
        outcomes: What becomes of each ID; reading them does the work.
        done: The status that the verb is for.
        failures: The statuses that mean no.
        dry_run: Whether nothing is changed.
        null_separated: Whether `-o ids` ends each ID with NUL.
        also: Further statuses that JSON always counts.
    """
    return Batch(
        view=outcome_view(queue),
        batches=outcomes.batches,
        count=lambda batch: {status.value: n for status, n in batch.counts().items()},
        word=lambda outcome: outcome.status.value,
        counted=(done.value, *(status.value for status in failures)),
        failed=frozenset(status.value for status in failures),
        shown=frozenset({done.value}),
        fields={**bytes_fields("queue", queue), "dry_run": dry_run},
        prefix=DRY_RUN if dry_run else "",
        also=tuple(status.value for status in also),
        null_separated=null_separated,
    )
