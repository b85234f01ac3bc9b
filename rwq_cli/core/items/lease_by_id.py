"""Leasing items by their IDs, wherever they wait: `lua/ops/lease_by_id.lua`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rwq_cli.core.clock import LEASE_S, lease_time_ms
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.report import Detail, with_details
from rwq_cli.core.items.bulk import ways_to_find
from rwq_cli.core.items.lease import hint_at_lost_leases, leased_item
from rwq_cli.core.model import Item, Lease, State
from rwq_cli.core.state.probe import parse_lease, parse_returns


class LeaseAttempt(NamedTuple):
    """An attempt to lease one item: the item with its new lease, or waiting in a dry run; if it was
    not leased, its ID, the state that prevented it, and the current lease."""

    item: Item
    is_leased: bool


def lease_ids(
    queue: Queue,
    ids: Iterable[bytes | str],
    *,
    lease_s: float = LEASE_S,
    data: bool = True,
    dry_run: bool = False,
) -> Iterator[LeaseAttempt]:
    """Lease these items, a few, which may wait anywhere in the queue, or be delayed, due or buried.

    One atomic step removes all entries and guards of an item, and puts it into processing with its
    lease. An item that somebody holds is left alone. So is an abandoned or orphaned item: it is
    not waiting, and needs a clean or a release. Yields the attempt for each distinct ID.
    """
    lease = Lease(queue.holder, lease_time_ms(lease_s))
    for item_id in dict.fromkeys(map(to_bytes, ids)):
        args = {"holder": lease.holder, "lease_ms": lease.ttl_ms, "wants_data": data, "id": item_id}
        with hint_at_lost_leases():
            for call in ways_to_find(queue, [item_id]):
                reply = queue.run("lease_by_id", dry_run=dry_run, **call.args(), **args)
                if reply:
                    break
        is_leased, state, position, holder, left_ms, payload, returns = reply
        found = State(state.decode())
        if not is_leased:
            item = Item(queue.name, item_id, found, lease=parse_lease(holder, left_ms))
            yield LeaseAttempt(item, False)
        elif dry_run:
            place = position if position >= 0 else None
            waiting = Item(
                queue.name, item_id, found, position=place, returns=parse_returns(returns)
            )
            (item,) = with_details(queue, [waiting], Detail.DATA)
            yield LeaseAttempt(item, True)
        else:
            count = parse_returns(returns)
            item = leased_item(queue.name, item_id, payload, lease, count)
            yield LeaseAttempt(item, True)
