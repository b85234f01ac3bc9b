"""The failures of a batch by name: why each item failed, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, Outcome, Status
from rwq_cli.core.state.rules import guard_kind
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.views.command_lines import CommandLines

# Reads the effective leases of a few IDs.
ReadLeases = Callable[[Sequence[bytes]], Sequence[Lease | None]]

# In a reason, what stands for the command line that shows the item.
SHOW = "{show}"
CHANGED_MEANWHILE = f"it changed meanwhile; {SHOW} says what it is now"
# An item that is listed twice, or with the guard of another state, may have been chosen by one of
# its entries.
NOT_AS_CHOSEN = f"it is in another state, or no longer matches; {SHOW} says what it is now"
_REASONS = {
    Status.MISSING: "no such item",
    Status.CHANGED: CHANGED_MEANWHILE,
    Status.NOT_LEASED: f"it has no live lease; {SHOW} says where it is",
    Status.NOT_BURIED: f"it is not buried; {SHOW} says where it is",
    Status.MOVING: f"it is being moved here; {SHOW} says from where",
    Status.WRONG_TYPE: f"one of its keys has the wrong type; {SHOW} says which",
}


def failure_reasons(
    queue: bytes,
    failures: Iterable[Outcome],
    leases: ReadLeases,
    reasons: Mapping[Status, str],
    lines: Callable[[], CommandLines],
) -> Iterator[str]:
    failures = list(failures)
    held = [each.item_id for each in failures if each.status is Status.NOT_OWNER]
    found = dict(zip(held, _read(leases, held), strict=True)) if held else {}
    for each in failures:
        reason = reasons.get(each.status) or _REASONS.get(each.status, each.status.value)
        if SHOW in reason:
            reason = reason.replace(SHOW, lines().of_item("show", queue, each.item_id))
        if each.status is Status.NOT_OWNER:
            reason = f"{_holding(each, found[each.item_id])}; {reason}"
        yield reason


def _read(leases: ReadLeases, ids: Sequence[bytes]) -> Sequence[Lease | None]:
    try:
        return leases(ids)
    except ServerError:
        # The work is done; a failure here must not hide its report.
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
