"""The repairs of a clean, each with its reason."""

from collections.abc import Callable, Iterable
from typing import Any

from rwq_cli.core.model import CleanAction, CleanBatch, Repair, State
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, View, infinitive

_REPAIRS = tuple(repair.value for repair in Repair)


def clean_report(
    queue: bytes, batches: Iterable[CleanBatch], *, summary_end: Callable[[], str], dry_run: bool
) -> Batch[CleanAction]:
    """The report of a clean. Reading the batches does the work; for `summary_end` see `Batch`."""

    def fields(action: CleanAction) -> dict[str, Any]:
        return {
            **bytes_fields("queue", queue),
            **bytes_fields("id", action.item_id),
            "action": action.action.value,
            "state": action.state.value,
            "where": action.where,
            "dry_run": dry_run,
        }

    return Batch(
        view=View(
            fields, lambda action: action.item_id, CleanAction(b"", Repair.DROPPED, State.GONE)
        ),
        batches=batches,
        count=lambda batch: {repair.value: number for repair, number in batch.counts().items()},
        word=lambda action: action.action.value,
        counted=_REPAIRS,
        failed=frozenset(),
        shown=frozenset(_REPAIRS),
        fields=lambda: {**bytes_fields("queue", queue), "dry_run": dry_run},
        dry_run=dry_run,
        idle="nothing to clean",
        summary_end=summary_end,
        # For cron, which mails what is printed.
        summary_if_quiet=True,
        preview=lambda action: (
            f"would {infinitive(action.action.value)} "
            f"{escaped(action.item_id)}: {action.state.value}"
        ),
    )
