"""The way out of a command that acts on items, see `rwq_cli.output.outcomes`; and bad records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rwq_cli.cli.connect import command_lines, summary_end
from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import Lease, Outcome, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import bytes_fields, to_json
from rwq_cli.output.outcomes import Kind, Outcomes


def outcomes_of(
    settings: Settings,
    queue: WorkQueue,
    kind: Kind[Outcome],
    *,
    dry_run: bool,
    reasons: Mapping[Status, str] | None = None,
    facts: Mapping[str, object] | None = None,
    name: str = "",
    leased_in: WorkQueue | None = None,
    **options: Any,
) -> Outcomes[Outcome]:
    """Make what shows the outcomes of a verb on the items of a queue; see `Outcomes`."""
    # `reasons` are further ones for `failure_reasons`, `facts` fields of the JSON summary after the
    # queue, and `leased_in` is the queue whose leases keep items from being changed.

    def explain(failed: Sequence[Outcome]) -> Iterable[str]:
        from rwq_cli.core.state.probe import probe
        from rwq_cli.views.outcomes import failure_reasons

        lines = partial(command_lines, settings, queue.connection)

        def leases(ids: Iterable[bytes]) -> list[Lease | None]:
            return [facts.lease for facts in probe(leased_in or queue, ids)]

        return failure_reasons(queue.name, failed, leases, reasons or {}, lines)

    return Outcomes(
        settings,
        kind,
        queue.name,
        dry_run=dry_run,
        facts={**bytes_fields("queue", queue.name), **(facts or {})},
        explain=explain,
        where=partial(summary_end, settings, None if name else escaped(queue.name)),
        name=name,
        **options,
    )


def bad_record_reporter(settings: Settings, consequence: str) -> Callable[[str, int, str], None]:
    """A function that reports a bad record on stderr: its source, its number from 1, the reason."""

    def report(where: str, number: int, reason: str) -> None:
        if settings.output.is_json:
            record = {"error": reason, "code": "bad-record", "hint": None, "record": number}
            settings.environment.error(to_json(record).decode())
        else:
            place, why = escaped_text(where), escaped_text(reason)
            settings.environment.error(f"rwq: {place} {number}: {why}; {consequence}")

    return report
