"""The way out of a command that acts on items; see `rwq_cli.output.outcomes`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rwq_cli.cli.connect import naming
from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import Outcome, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.field import bytes_fields
from rwq_cli.output.outcomes import Kind, Outcomes, Parts

if TYPE_CHECKING:
    from rwq_cli.views.failures import Reason


def outcomes_of(
    settings: Settings,
    queue: WorkQueue,
    kind: Kind[Outcome],
    *,
    dry_run: bool,
    reasons: "Mapping[Status, Reason] | None" = None,
    facts: Mapping[str, object] | None = None,
    suffix: Callable[[], str] = str,
    parts: Parts | None = None,
    name: str = "",
    leased_in: WorkQueue | None = None,
) -> Outcomes[Outcome]:
    """Make what shows the outcomes of a verb on the items of a queue.

    Args:
        settings: The run's settings.
        queue: The queue.
        kind: How outcomes are counted.
        dry_run: True if nothing is changed.
        reasons: See `failure_reasons`.
        facts: Fields of the JSON summary after the queue.
        suffix: Returns the end of the summary.
        parts: The parts of which this is one; None for a command on one queue.
        name: The queue's name in notes; see `Outcomes`.
        leased_in: The queue whose leases keep items from being changed, if it is another one.
    """
    named = naming(settings, queue, is_prefixed=bool(name))

    def explain(failed: Sequence[Outcome]) -> Iterable[str]:
        from rwq_cli.core.inspect.report import effective_leases
        from rwq_cli.views.failures import failure_reasons, not_as_chosen

        known = {Status.CHANGED: not_as_chosen, **(reasons or {})}
        leases = partial(effective_leases, leased_in or queue)
        return failure_reasons(queue.name, failed, leases, known, named.lines)

    return Outcomes(
        settings.output_options,
        kind,
        queue.name,
        dry_run=dry_run,
        facts={**bytes_fields("queue", queue.name), **(facts or {})},
        explain=explain,
        where=named.summary_end,
        suffix=suffix,
        parts=parts,
        name=name,
    )
