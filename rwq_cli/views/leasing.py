"""Leased items, and the reasons why others could not be leased."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import time
from typing import TYPE_CHECKING

from rwq_cli.core.model import Item, State
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.report import DRY_RUN, Records
from rwq_cli.views.items import LEASED_COLUMNS, QUEUE, item_view

if TYPE_CHECKING:
    from rwq_cli.core.items.lease_by_id import LeaseAttempt
    from rwq_cli.views.command_lines import CommandLines

_IF_UNWRITTEN = "rwq: items may now be leased to this session; rwq release --mine puts them back"
_DRY_RUN = f"{DRY_RUN}these would be leased now"


def lease_report(
    queues: Sequence[bytes],
    items: Iterable[Item],
    id_batches: Iterable[Sequence[bytes]],
    *,
    one: bool,
    dry_run: bool,
) -> Records[Item]:
    """The report of `rwq lease`. Reading the items, or the batches of IDs, leases them."""
    return Records(
        view=item_view((QUEUE, *LEASED_COLUMNS) if len(queues) > 1 else LEASED_COLUMNS),
        records=items,
        empty=lambda: f"Nothing to lease in {', '.join(map(escaped, queues))}.",
        fails_if_empty=True,
        unframed_data=one,
        # In a dry run, a note comes first.
        id_batches=None if dry_run else id_batches,
        opening=_DRY_RUN if dry_run else None,
        note=_held,
        if_unwritten=None if dry_run else _IF_UNWRITTEN,
    )


def waiting_note(queues: Sequence[bytes], wait_s: float) -> str:
    """What a lease waits for, and how long at most."""
    limit = "" if wait_s == float("inf") else f", {human.duration(wait_s)} at most"
    return f"waiting for an item in {', '.join(map(escaped, queues))}{limit}"


def _held(item: Item, output: OutputFormat) -> str | None:
    """The ID and the end of the lease of an item, if only its data is shown."""
    if output is not OutputFormat.DATA or item.lease is None or item.lease.ttl_ms is None:
        return None
    left_s = item.lease.ttl_ms / 1000
    ends = human.moment(round(1000 * (time() + left_s)))
    return (
        f"leased {escaped(item.item_id)} of {escaped(item.queue)} for {human.duration(left_s)}, "
        f"until {ends}"
    )


def lease_by_id_report(
    queue: bytes,
    attempts: "Iterable[LeaseAttempt]",
    *,
    one: bool,
    dry_run: bool,
    lines: Callable[[], "CommandLines"],
) -> Records[Item]:
    """The report of `rwq lease --id`. Reading the attempts leases the items."""
    refusals: list[str] = []
    leased = 0

    def items() -> Iterator[Item]:
        nonlocal leased
        for attempt in attempts:
            if attempt.is_leased:
                leased += 1
                yield attempt.item
            else:
                refusals.append(_refusal(lines(), queue, attempt.item))

    return Records(
        view=item_view(LEASED_COLUMNS),
        records=items(),
        # If nothing was leased, the refusals are the output.
        empty=lambda: "\n".join(refusals),
        fails_if_empty=True,
        unframed_data=one,
        opening=_DRY_RUN if dry_run else None,
        note=_held,
        closing=lambda: "\n".join(refusals) if leased else None,
        status=lambda: ExitStatus.PARTIAL if refusals and leased else None,
        if_unwritten=None if dry_run else _IF_UNWRITTEN,
    )


def _refusal(lines: "CommandLines", queue: bytes, item: Item) -> str:
    """Why an item was not leased, and what to do about it."""
    shown = escaped(item.item_id)
    if item.lease is not None:
        holder = escaped(item.lease.holder) or "an unknown holder"
        left = "without expiry"
        if item.lease.ttl_ms is not None:
            left = f"for {human.duration(item.lease.ttl_ms / 1000)} more"
        ends = lines.of_item("release --force", queue, item.item_id)
        return f"{shown} is leased by {holder} {left}; to end that lease: {ends}"
    if item.state is State.GONE:
        return f"no such item: {shown}"
    if item.state is State.WRONG_TYPE:
        show = lines.of_item("show", queue, item.item_id)
        return f"{shown}: one of its keys has the wrong type; {show} says which"
    returns = lines.of_item("release", queue, item.item_id)
    clean = "light" if item.state is State.ABANDONED else "deep"
    return (
        f"{shown} is {item.state.value}, not waiting; to return it: {returns} "
        f"(a {clean} clean also returns it)"
    )
