"""The outcomes of verbs that change items: their fields, how they are counted, why each failed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, Outcome, Status
from rwq_cli.core.state.rules import guard_kind
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.outcomes import Kind, Row
from rwq_cli.views.command_lines import CommandLines

OUTCOME_FIELDS: Fields[Row[Outcome]] = Fields(
    "What became of an item",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "what.item_id", "the item's ID", ID),
    field(
        "status",
        "what.status",
        "what was done, or why nothing was: see [below](#what-became-of-items)",
    ),
    field("holder", "what.holder", "who holds the item, if that is why nothing was done"),
    is_stream=True,
)


def kind_of(
    success: Status, failures: Sequence[Status], *, neutral: Sequence[Status] = ()
) -> Kind[Outcome]:
    """How outcomes of a verb on items are counted; JSON always has `failures` and `neutral`."""
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


# In a reason, what stands for the command line that shows the item.
SHOW = "{show}"
CHANGED_MEANWHILE = f"it changed meanwhile; {SHOW} says what it is now"
_REASONS = {
    Status.MISSING: "no such item",
    # Listed twice, or with the guard of another state, it may have been chosen by one entry.
    Status.CHANGED: f"it is in another state, or no longer matches; {SHOW} says what it is now",
    Status.NOT_LEASED: f"it has no live lease; {SHOW} says where it is",
    Status.NOT_BURIED: f"it is not buried; {SHOW} says where it is",
    Status.MOVING: f"it is being moved here; {SHOW} says from where",
    Status.WRONG_TYPE: f"one of its keys has the wrong type; {SHOW} says which",
}


def failure_reasons(
    queue: bytes,
    failures: Iterable[Outcome],
    leases: Callable[[Sequence[bytes]], Sequence[Lease | None]],
    reasons: Mapping[Status, str],
    lines: Callable[[], CommandLines],
) -> Iterator[str]:
    """Why each item failed, and what to do about it; `leases` reads the effective ones of IDs."""
    failures = list(failures)
    found: dict[bytes, Lease | None] = {}
    if held := [each.item_id for each in failures if each.status is Status.NOT_OWNER]:
        # The work is done; a failure here must not hide its report.
        with suppress(ServerError):
            found = dict(zip(held, leases(held), strict=True))
    for each in failures:
        reason = reasons.get(each.status) or _REASONS.get(each.status, each.status.value)
        if SHOW in reason:
            reason = reason.replace(SHOW, lines().of_item("show", queue, each.item_id))
        if each.status is Status.NOT_OWNER:
            reason = f"{_holding(each, found.get(each.item_id))}; {reason}"
        yield reason


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
