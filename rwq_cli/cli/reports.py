"""Outcomes of verbs: how they are counted and shown, and why each item failed; bad records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rwq_cli.cli.connect import describe_target, make_command_lines
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, Outcome, Status
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import ID, NAME, Fields, bytes_fields, field, to_json
from rwq_cli.output.records import Output
from rwq_cli.output.tally import OutcomeKind, OutcomeRecord, Tally

if TYPE_CHECKING:
    from rwq_cli.core.queue import WorkQueue

OUTCOME_FIELDS: Fields[OutcomeRecord[Outcome]] = Fields(
    "What became of an item",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "outcome.item_id", "the item's ID", ID),
    field("status", "outcome.status", "what was done, or why not ([words](#what-became-of-items))"),
    field("holder", "outcome.holder", "who holds the item, if that is why nothing was done"),
    is_stream=True,
    has_summary=True,
)
# Why an outcome is a failure, and the way out.
Reasons = Mapping[Status, str | Callable[[Outcome], str]]
# The placeholder in a reason for the command line that shows the item.
SHOW = "{show}"
CHANGED_MEANWHILE = f"it changed meanwhile; {SHOW} says what it is now"
_REASONS = {
    Status.MISSING: "no such item",
    # An item listed twice, or with another state's guard, may have been chosen by one entry.
    Status.CHANGED: f"it is in another state, or no longer matches; {SHOW} says what it is now",
    Status.NOT_LEASED: f"it has no live lease; {SHOW} says where it is",
    Status.NOT_BURIED: f"it is not buried; {SHOW} says where it is",
    Status.MOVING: f"it is being moved here; {SHOW} says from where",
    Status.WRONG_TYPE: f"one of its keys has the wrong type; {SHOW} says which",
}


def make_outcome_kind(
    success: Status, failures: Sequence[Status], *, neutral: Sequence[Status] = ()
) -> OutcomeKind[Outcome]:
    """Return how a verb's outcomes are counted; JSON always has `failures` and `neutral`."""
    return OutcomeKind(
        OUTCOME_FIELDS,
        word=lambda outcome: outcome.status.value,
        item_id=lambda outcome: outcome.item_id,
        counted=(success.value, *(status.value for status in failures)),
        # An item that is not what it was chosen as is left alone, and so is a copy on its way.
        failed=frozenset(map(str, (*failures, Status.CHANGED, Status.WRONG_TYPE, Status.MOVING))),
        printed=frozenset({success.value}),
        json_counted=tuple(map(str, neutral)),
    )


def begin_report(
    settings: Settings,
    queue: "WorkQueue",
    kind: OutcomeKind[Outcome],
    *,
    dry_run: bool,
    reasons: Reasons | None = None,
    facts: Mapping[str, object] | None = None,
    name: str = "",
    leased_in: "WorkQueue | None" = None,
    **options: Any,
) -> Output:
    """Begin to report what a verb does to the items of a queue."""
    # `reasons` are further reasons for failures, `facts` are fields of the JSON summary after the
    # queue, and `leased_in` is the queue whose leases keep items from being changed.
    tally = Tally(
        kind,
        queue.name,
        dry_run=dry_run,
        facts={**bytes_fields("queue", queue.name), **(facts or {})},
        explain=partial(
            _explain_failures, settings, queue, leased_in or queue, {**_REASONS, **(reasons or {})}
        ),
        where=partial(describe_target, settings, None if name else escaped(queue.name)),
        name=name,
        **options,
    )
    return settings.out.begin_tally(tally)


def _explain_failures(
    settings: Settings,
    queue: "WorkQueue",
    leased_in: "WorkQueue",
    reasons: Reasons,
    failures: Sequence[Outcome],
) -> Iterator[str]:
    """Yield why each item failed, and what to do about it."""
    from rwq_cli.core.state.reads import read_facts

    leases: dict[bytes, Lease | None] = {}
    if held := [failure.item_id for failure in failures if failure.status is Status.NOT_OWNER]:
        # The work is done; a failure here must not hide its report.
        with suppress(ServerError):
            lease_reads = (facts.lease for facts in read_facts(leased_in, held))
            leases = dict(zip(held, lease_reads, strict=True))
    for failure in failures:
        reason = reasons.get(failure.status, failure.status.value)
        reason = reason if isinstance(reason, str) else reason(failure)
        if SHOW in reason:
            lines = make_command_lines(settings, queue.connection)
            reason = reason.replace(SHOW, lines.of_item("show", queue.name, failure.item_id))
        if failure.status is Status.NOT_OWNER:
            reason = f"{_describe_holder(failure, leases.get(failure.item_id))}; {reason}"
        yield reason


def _describe_holder(outcome: Outcome, lease: Lease | None) -> str:
    """Say who holds an item, and for how long, as read afterwards; a guard has no holder."""
    from rwq_cli.core.state.rules import guard_kind

    if outcome.holder is None:
        return "nobody holds it" if lease is None else "leased by an unknown holder"
    if (guard := guard_kind(Lease(outcome.holder, None))) is not None:
        return "it is buried" if guard == BURIED_GUARD else "it is delayed"
    text = f"leased by {escaped(outcome.holder)}"
    if lease is None or lease.holder != outcome.holder:
        return text
    if lease.ttl_ms is None:
        return f"{text} without expiry"
    return f"{text} for {human.duration(lease.ttl_ms / 1000)}"


def make_record_reporter(settings: Settings, consequence: str) -> Callable[[str, int, str], None]:
    """Return a function that reports a bad record on stderr: source, number from 1, reason."""

    def report(where: str, number: int, reason: str) -> None:
        if settings.output.is_json:
            record = {"error": reason, "code": "bad-record", "hint": None, "record": number}
            settings.environment.error(to_json(record).decode())
        else:
            place, why = escaped_text(where), escaped_text(reason)
            settings.environment.error(f"rwq: {place} {number}: {why}; {consequence}")

    return report
