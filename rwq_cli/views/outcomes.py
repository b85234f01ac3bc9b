"""The outcomes of verbs that change items."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, Outcome, Outcomes, Status
from rwq_cli.core.state.rules import guard_kind
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, View
from rwq_cli.views.command_lines import command_line

# Reads the effective leases of a few IDs.
ReadLeases = Callable[[Sequence[bytes]], Sequence[Lease | None]]


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
    queue: bytes,
    outcomes: Outcomes,
    *,
    success: Status,
    failures: Sequence[Status],
    dry_run: bool,
    neutral: Sequence[Status] = (),
    leases: ReadLeases,
    reasons: Mapping[Status, str] | None = None,
) -> Batch[Outcome]:
    """The report of a verb on IDs.

    Args:
        queue: The queue's name.
        outcomes: The outcomes; reading them does the work.
        success: The status of an item on which the verb succeeded.
        failures: The statuses of an item on which it failed.
        dry_run: Whether it is a dry run.
        neutral: Statuses that are neither; JSON always counts them.
        leases: Reads the leases of items that another session holds.
        reasons: See `failure_lines`.
    """
    return Batch(
        view=outcome_view(queue),
        batches=outcomes.batches,
        count=lambda batch: {status.value: n for status, n in batch.counts().items()},
        word=lambda outcome: outcome.status.value,
        counted=(success.value, *(status.value for status in failures)),
        # An item that has changed since it was chosen is left alone.
        failed=frozenset(status.value for status in (*failures, Status.CHANGED)),
        shown=frozenset({success.value}),
        fields={**bytes_fields("queue", queue), "dry_run": dry_run},
        dry_run=dry_run,
        json_counted=tuple(status.value for status in neutral),
        explain=lambda failed: failure_lines(queue, failed, leases, reasons or {}),
    )


# Why an item failed, and what to do; `SHOW` stands for the command that shows it.
_REASONS = {
    Status.MISSING: "no such item",
    Status.CHANGED: "it changed meanwhile; SHOW says what it is now",
    Status.NOT_LEASED: "it has no live lease; SHOW says where it is",
    Status.NOT_BURIED: "it is not buried; SHOW says where it is",
    Status.WRONG_TYPE: "one of its keys has the wrong type; SHOW says which",
}


def failure_lines(
    queue: bytes,
    failures: Iterable[Outcome],
    leases: ReadLeases,
    reasons: Mapping[Status, str],
) -> Iterator[str]:
    """A line for each failure: the ID, the reason, and what to do about it.

    Args:
        queue: The queue's name.
        failures: What failed.
        leases: Reads the leases of what another session holds, for the time left.
        reasons: The reasons that are specific to this verb; for `NOT_OWNER`, what to do about it.
    """
    failures = list(failures)
    held = [each.item_id for each in failures if each.status is Status.NOT_OWNER]
    found = dict(zip(held, _read(leases, held), strict=True)) if held else {}
    for each in failures:
        reason = reasons.get(each.status) or _REASONS.get(each.status, each.status.value)
        if each.status is Status.NOT_OWNER:
            reason = f"{_holding(each, found[each.item_id])}; {reason}"
        reason = reason.replace("SHOW", command_line("show", queue, each.item_id))
        yield f"rwq: {escaped(each.item_id)}: {reason}"


def _read(leases: ReadLeases, ids: Sequence[bytes]) -> Sequence[Lease | None]:
    try:
        return leases(ids)
    except ServerError:
        # The work is done, and its report must not fail.
        return [None] * len(ids)


def _holding(outcome: Outcome, lease: Lease | None) -> str:
    """Who holds an item, and for how long by a later read; a guard has no holder."""
    if outcome.holder is None:
        return "nobody holds it" if lease is None else "leased by an unknown holder"
    guard = guard_kind(Lease(outcome.holder, None))
    if guard is not None:
        return "it is buried" if guard == BURIED_GUARD else "it is delayed"
    text = f"leased by {escaped(outcome.holder)}"
    if lease is None or lease.holder != outcome.holder:
        return text
    if lease.ttl_ms is None:
        return f"{text} without expiry"
    return f"{text} for {human.duration(lease.ttl_ms / 1000)}"


_ADDED = {Status.ADDED: "added", Status.DUPLICATE: "duplicates"}


class Rejects(Protocol):
    """Counts input that was not added; see `rwq_cli.input.records.RecordReader`."""

    rejected: int
    empty: int


def batch_of_added(
    queue: bytes, outcomes: Outcomes, rejects: Rejects, *, dry_run: bool
) -> Batch[Outcome]:
    """The report of `rwq add`. Reading the outcomes adds the items."""
    return Batch(
        view=outcome_view(queue),
        batches=outcomes.batches,
        count=lambda batch: {_ADDED[status]: n for status, n in batch.counts().items()},
        word=lambda outcome: _ADDED[outcome.status],
        counted=("added", "duplicates", "rejected"),
        failed=frozenset({"rejected"}),
        shown=frozenset({"added"}),
        shows_all=False,
        fields={**bytes_fields("queue", queue), "dry_run": dry_run},
        dry_run=dry_run,
        extra=lambda: {"rejected": rejects.rejected, "empty": rejects.empty},
    )
