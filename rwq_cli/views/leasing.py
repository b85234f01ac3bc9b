"""Leased items, and the reasons why others could not be leased."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import time
from typing import TYPE_CHECKING

from rwq_cli.core.model import Item, State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.outcomes import DRY_RUN
from rwq_cli.output.records import Output
from rwq_cli.views.items import columns_for
from rwq_cli.views.listing import write_items

if TYPE_CHECKING:
    from rwq_cli.views.command_lines import CommandLines

_UNWRITTEN = "rwq: items may now be leased to this session; rwq release --mine puts them back"


def write_leased(
    out: Output,
    items: Iterable[Item],
    *,
    one: bool,
    dry_run: bool,
    empty: str | Callable[[], str],
    id_batches: Iterable[Sequence[bytes]] | None = None,
    has_queue: bool = False,
) -> int:
    """Write leased items; returns their number. Reading them, or their IDs, leases them."""
    environment = out.options.environment

    def noted() -> Iterator[Item]:
        for number, item in enumerate(items):
            if dry_run and not number:
                environment.note(f"{DRY_RUN}these would be leased now")
            if out.options.format is OutputFormat.DATA and (held := _held(item)):
                environment.note(held)
            yield item

    try:
        shown = write_items(
            out,
            noted(),
            columns_for("leased now"),
            empty=empty,
            has_queue=has_queue,
            # In a dry run, a note comes first.
            id_batches=None if dry_run else id_batches,
            unframed=one,
        )
    except OSError as error:
        if not dry_run and not isinstance(error, BrokenPipeError):
            environment.error(_UNWRITTEN)
        raise
    if not shown and not out.options.format.is_table:
        environment.note(empty if isinstance(empty, str) else empty())
    return shown


def waiting_note(queues: Sequence[bytes], wait_s: float) -> str:
    """What a lease waits for, and how long at most."""
    limit = "" if wait_s == float("inf") else f", {human.duration(wait_s)} at most"
    return f"waiting for an item in {', '.join(map(escaped, queues))}{limit}"


def _held(item: Item) -> str | None:
    """The ID and the end of the lease of an item, of which only the data is shown."""
    if item.lease is None or item.lease.ttl_ms is None:
        return None
    left_s = item.lease.ttl_ms / 1000
    ends = human.moment(round(1000 * (time() + left_s)))
    return (
        f"leased {escaped(item.item_id)} of {escaped(item.queue)} for {human.duration(left_s)}, "
        f"until {ends}"
    )


def refusal(lines: "CommandLines", queue: bytes, item: Item) -> str:
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
