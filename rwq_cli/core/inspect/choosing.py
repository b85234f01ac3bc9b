"""Choosing the items that a verb acts on.

All items are chosen before the verb acts, so that its changes cannot make the listing miss an item
or list it twice. Their IDs are kept in memory: about 110 MB for a million.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.listing import items, listed_states
from rwq_cli.core.inspect.lookup import look_twice
from rwq_cli.core.inspect.selection import ITEMS, Selection, source_of
from rwq_cli.core.model import State
from rwq_cli.core.state.expected import ANY, Expected, fingerprint


class Chosen(NamedTuple):
    """Items to act on, and the conditions that they were chosen by, which are checked again."""

    ids: Iterable[bytes | Flush]
    expected: Expected = ANY


def choose(
    queue: Queue, selection: Selection, *, limit: int | None = None, grace_s: float = GRACE_S
) -> Chosen:
    """Choose items, each once, in the order of `items`; without states, items in any state.

    An item that looks abandoned, orphaned, unlisted, duplicated or like a ghost may be healthy,
    between two commands of its worker. It is chosen only if it is still the same item in the same
    state a grace period later (`look_twice`), so there may be fewer than `limit`.
    """
    queue.connection.set_no_touch()
    states = ITEMS if selection.states is None else selection.states
    chosen: dict[bytes, State] = {}
    fingerprints: dict[bytes, str] = {}
    for item_id, state, data in _candidates(queue, selection._replace(states=states), states):
        chosen.setdefault(item_id, state)
        if data is not None:
            fingerprints.setdefault(item_id, fingerprint(data))
        if len(chosen) == limit:
            break
    in_transit = [item_id for item_id, state in chosen.items() if state.may_be_in_transit]
    if in_transit:
        states_now = {f.item_id: f.state for f in look_twice(queue, in_transit, grace_s)}
        for item_id in in_transit:
            if states_now.get(item_id) is not chosen[item_id]:
                del chosen[item_id]
    expected = Expected(
        states,
        selection.older_than_s,
        fingerprints if selection.needs_data else None,
        chosen.keys() & in_transit,
    )
    return Chosen(list(chosen), expected)


def _candidates(
    queue: Queue, selection: Selection, states: frozenset[State]
) -> Iterator[tuple[bytes, State, bytes | None]]:
    """IDs with their states, and with their data if the selection needs them."""
    source, needs_data = source_of(states), selection.needs_data
    if selection == Selection(states, id_glob=selection.id_glob):
        for item_id, state in listed_states(queue, source, states, selection.id_glob):
            yield item_id, state, None
        return
    for item in items(queue, source, selection, data=needs_data, bare=not needs_data):
        yield item.item_id, item.state, item.data
