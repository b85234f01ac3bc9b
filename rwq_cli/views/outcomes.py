"""The outcomes of verbs that change items."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rwq_cli.core.model import Outcome, Status
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.options import OutputOptions
from rwq_cli.output.outcomes import Kind, Outcomes as OutcomeOutput, Parts, Row
from rwq_cli.views.naming import Naming

if TYPE_CHECKING:
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.views.failures import Reason


OUTCOME_FIELDS: Fields[Row[Outcome]] = Fields(
    "What became of an item",
    Field("queue", lambda row: row.queue, "the queue's name", is_bytes=True),
    Field("id", lambda row: row.what.item_id, "the item's ID", is_bytes=True, is_id=True),
    Field(
        "status",
        lambda row: row.what.status.value,
        "what was done, or why nothing was: see [below](#what-became-of-items)",
    ),
    Field(
        "holder", lambda row: row.what.holder, "who holds the item, if that is why nothing was done"
    ),
)


def kind_of(
    success: Status, failures: Sequence[Status], *, neutral: Sequence[Status] = ()
) -> Kind[Outcome]:
    """How the outcomes of a verb on items are counted.

    Args:
        success: The status of an item on which the verb succeeded.
        failures: The statuses of an item on which it failed; JSON always counts them.
        neutral: Statuses that are neither; JSON always counts them, too.
    """
    return Kind(
        OUTCOME_FIELDS,
        word=lambda outcome: outcome.status.value,
        item_id=lambda outcome: outcome.item_id,
        counted=(success.value, *(status.value for status in failures)),
        # An item that is not what it was chosen as is left alone.
        failed=frozenset(map(str, (*failures, Status.CHANGED, Status.WRONG_TYPE))),
        shown=frozenset({success.value}),
        json_counted=tuple(map(str, neutral)),
    )


def outcomes_of(
    options: OutputOptions,
    kind: Kind[Outcome],
    queue: "WorkQueue",
    naming: Naming,
    *,
    dry_run: bool,
    reasons: "Mapping[Status, Reason] | None" = None,
    facts: Mapping[str, object] | None = None,
    suffix: Callable[[], str] = str,
    parts: Parts | None = None,
    name: str = "",
    leased_in: "WorkQueue | None" = None,
) -> OutcomeOutput[Outcome]:
    """The way out of a verb on items; see `rwq_cli.output.outcomes`.

    Args:
        options: The output options.
        kind: How its outcomes are counted.
        queue: The queue.
        naming: How the queue and the server are named.
        dry_run: Whether it is a dry run.
        reasons: See `failure_reasons`.
        facts: Fields of the JSON summary after the queue.
        suffix: Returns the end of the summary.
        parts: The parts of which this is one; None for a command on one queue.
        name: The queue's name in notes; see `Outcomes`.
        leased_in: The queue whose leases keep items from being changed, if it is another one.
    """

    def explain(failed: Sequence[Outcome]) -> Iterable[str]:
        from rwq_cli.core.inspect.report import effective_leases
        from rwq_cli.views.failures import failure_reasons, not_as_chosen

        known = {Status.CHANGED: not_as_chosen, **(reasons or {})}
        leases = partial(effective_leases, leased_in or queue)
        return failure_reasons(queue.name, failed, leases, known, naming.lines)

    return OutcomeOutput(
        options,
        kind,
        queue.name,
        dry_run=dry_run,
        facts={**bytes_fields("queue", queue.name), **(facts or {})},
        explain=explain,
        where=naming.summary_end,
        suffix=suffix,
        parts=parts,
        name=name,
    )
