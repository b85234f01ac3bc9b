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

# The reason for a failure, or what makes it from the command line that shows the item.
Reason = str | Callable[[str], str]


def changed_meanwhile(show: str) -> str:
    """The reason why an item is left that is not as it was read."""
    return f"it changed meanwhile; {show} says what it is now"


def not_as_chosen(show: str) -> str:
    """The reason why an item is left that options chose.

    An item that is listed twice, or with the guard of another state, may have been chosen by one of
    its entries.
    """
    return f"it is in another state, or no longer matches; {show} says what it is now"


_REASONS: dict[Status, Reason] = {
    Status.MISSING: "no such item",
    Status.CHANGED: changed_meanwhile,
    Status.NOT_LEASED: lambda show: f"it has no live lease; {show} says where it is",
    Status.NOT_BURIED: lambda show: f"it is not buried; {show} says where it is",
    Status.WRONG_TYPE: lambda show: f"one of its keys has the wrong type; {show} says which",
}


def failure_reasons(
    queue: bytes,
    failures: Iterable[Outcome],
    leases: ReadLeases,
    reasons: Mapping[Status, Reason],
    lines: Callable[[], CommandLines],
) -> Iterator[str]:
    """The reason for each failure, and what to do about it."""
    failures = list(failures)
    held = [each.item_id for each in failures if each.status is Status.NOT_OWNER]
    found = dict(zip(held, _read(leases, held), strict=True)) if held else {}
    for each in failures:
        reason = reasons.get(each.status) or _REASONS.get(each.status, each.status.value)
        if not isinstance(reason, str):
            reason = reason(lines().of_item("show", queue, each.item_id))
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
