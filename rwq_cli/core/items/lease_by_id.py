"""Leasing items by their IDs, wherever they wait."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rwq_cli.core.errors import WrongType
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.report import Detail, facts_of, item_from, with_details
from rwq_cli.core.items.lease import count_of, leased_item
from rwq_cli.core.model import Facts, Item, Lease, State
from rwq_cli.core.state.rules import is_guard, state_of

_NO_ITEM = frozenset({State.GONE, State.GHOST, State.STRAY_LEASE})
# In these a worker may have it in hand; the others wait for somebody.
_ELSEWHERE = frozenset({State.LEASED, State.HELD, State.UNLISTED, State.ABANDONED, State.ORPHANED})


@dataclass(frozen=True, slots=True)
class Picked:
    """What became of the attempt to lease one item.

    Attributes:
        item: Where it was taken, the item under its new lease, or in a dry run as it waits. Where
            not, its ID, the state that was the reason, and the lease of whoever holds it.
        is_taken: Whether it was taken.
    """

    item: Item
    is_taken: bool


def pick_items(queue: Queue, ids: Iterable[bytes], *, lease: Lease, data: bool) -> Iterator[Picked]:
    """Lease each of these items: waiting anywhere in the queue, delayed, due or buried.

    All its entries and its guard go, and it is put into processing with its lease, in one step.
    What somebody holds is left to them; what is abandoned or in no list does not wait, and is left
    to a clean or a release.

    Args:
        queue: The queue.
        ids: The IDs; few, because each costs a pass over the main list.
        lease: The lease that they get.
        data: Return the payloads.

    Yields:
        What became of each distinct ID, as the server acknowledges it.
    """
    wants_data = "1" if data else "0"
    for item_id in dict.fromkeys(ids):
        words = (lease.holder, lease.ttl_ms, wants_data, item_id)
        found, holder, left_ms, payload, returns = queue.run("lease_id", *words)
        if found == b"waiting":
            count = count_of(returns)
            yield Picked(leased_item(queue.keys.name, item_id, payload, lease, count), True)
            continue
        other = None if left_ms == -2 else Lease(holder, None if left_ms == -1 else left_ms)
        state = State.HELD if left_ms == -1 else State(found.decode())
        yield Picked(Item(queue.keys.name, item_id, state, lease=other), False)


def would_pick(queue: Queue, ids: Iterable[bytes]) -> Iterator[Picked]:
    """Which items would be leased."""
    for item_report in facts_of(queue, dict.fromkeys(ids)):
        facts = item_report.facts
        if facts.wrong_types:
            raise WrongType.of(next(iter(facts.wrong_types)))
        reason = _reason_to_leave(facts)
        if reason is None:
            items = [item_from(queue.keys.name, facts, item_report.position)]
            (item,) = with_details(queue, items, Detail(data=True))
            yield Picked(item, True)
        else:
            lease = None if reason is State.GONE else facts.lease
            yield Picked(Item(queue.keys.name, facts.item_id, reason, lease=lease), False)


def _reason_to_leave(facts: Facts) -> State | None:
    """The state that is the reason to leave an item; None where it can be leased."""
    state = state_of(facts)
    if state in _NO_ITEM:
        return State.GONE
    if state in _ELSEWHERE:
        return state
    lease = facts.lease
    if lease and not is_guard(lease) and (facts.in_processing or not facts.in_main):
        if not lease.ends:
            return State.HELD
        return State.LEASED if facts.in_processing else State.UNLISTED
    return None
