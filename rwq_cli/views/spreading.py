"""The outcomes of adding to several queues."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rwq_cli.core.items.spread import SpreadBatch, SpreadOutcome
from rwq_cli.core.model import Outcome, Status
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, View
from rwq_cli.views.outcomes import ADDED, NOT_ADDED, outcome_view

if TYPE_CHECKING:
    from rwq_cli.input.records import RecordReader
    from rwq_cli.views.command_lines import CommandLines

# A summary names at most this many queues.
_NAMED_QUEUES = 8


def batch_of_spread(
    batches: Iterable[SpreadBatch],
    reader: "RecordReader",
    *,
    server: str,
    lines: Callable[[], "CommandLines"],
    dry_run: bool,
) -> Batch[SpreadOutcome]:
    """The report of `rwq add` to several queues; reading the batches adds the items.

    Args:
        batches: The outcomes.
        reader: Counts the input that was not added.
        server: The server's name in the summary.
        lines: Returns what makes command lines.
        dry_run: Whether it is a dry run.
    """
    by_queue: dict[bytes, Counter[str]] = {}

    def count(batch: SpreadBatch) -> Mapping[str, int]:
        counts = {ADDED[status]: n for status, n in batch.outcomes.counts().items()}
        by_queue.setdefault(batch.queue, Counter()).update(counts)
        return counts

    def fields() -> dict[str, Any]:
        queues = [
            {**bytes_fields("queue", name), "added": counts["added"]}
            for name, counts in sorted(by_queue.items())
        ]
        return {**bytes_fields("queue", None), "dry_run": dry_run, "queues": queues}

    def summary_end() -> str:
        added = [
            f"{escaped(name)} {counts['added']:,}" for name, counts in sorted(by_queue.items())
        ]
        shown = ", ".join(added) if len(added) <= _NAMED_QUEUES else f"{len(added):,} queues"
        return f" ({shown or 'no queue'} on {server})"

    def explain(failed: Sequence[SpreadOutcome]) -> Iterator[str]:
        from rwq_cli.views.failures import failure_reasons

        for each in failed:
            yield from failure_reasons(each.queue, [each.outcome], lambda _ids: (), {}, lines)

    return Batch[SpreadOutcome](
        view=View(
            lambda each: outcome_view(each.queue).fields(each.outcome),
            lambda each: each.outcome.item_id,
            SpreadOutcome(b"", Outcome(b"", Status.MISSING)),
        ),
        batches=batches,
        count=count,
        word=lambda each: ADDED[each.outcome.status],
        counted=("added", "duplicates", "rejected"),
        failed=NOT_ADDED,
        shown=frozenset({"added"}),
        shows_all=False,
        fields=fields,
        dry_run=dry_run,
        explain=explain,
        extra=lambda: {"rejected": reader.rejected, "empty": reader.empty},
        summary_end=summary_end,
    )
