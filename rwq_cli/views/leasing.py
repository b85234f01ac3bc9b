"""The words about leased items, and about those that could not be leased."""

from time import time
from typing import TYPE_CHECKING

from rwq_cli.core.model import Item, State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped

if TYPE_CHECKING:
    from rwq_cli.views.command_lines import CommandLines


def waiting_note(queues: str, wait_s: float) -> str:
    """What a lease waits for, and how long at most."""
    limit = "" if wait_s == float("inf") else f", {human.duration(wait_s)} at most"
    return f"waiting for an item in {queues}{limit}"


def held(item: Item) -> str | None:
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
