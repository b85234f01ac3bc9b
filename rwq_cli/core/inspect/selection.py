"""Choosing many items by what they are, to act on them: the options that all verbs share.

All are chosen before anything is done to them, so that what the verb moves or removes can neither
hide an item from the listing nor list it twice. Their IDs are kept: about 110 MB for a million.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rwq_cli.core.batches import Flush
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.listing import (
    FOUND_DEEP,
    Selection,
    Source,
    items,
    listed_states,
)
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.model import State
from rwq_cli.core.state.expected import ANY, Expected, fingerprint

_ANYWHERE = frozenset({State.GHOST, State.WRONG_TYPE})
_MAIN = _ANYWHERE | {State.WAITING}
_PROCESSING = _ANYWHERE | {State.LEASED, State.HELD, State.ABANDONED}
_DELAYED = _ANYWHERE | {State.DELAYED, State.DUE}
_BURIED = _ANYWHERE | {State.BURIED}

# Every state that can be chosen: a stray lease and what is gone are in no list and have no data.
SELECTABLE = _MAIN | _PROCESSING | _DELAYED | _BURIED | FOUND_DEEP
# Those of items: what has data that a verb may act on.
ITEMS = SELECTABLE - _ANYWHERE
# A healthy item may be in these for a moment, between two commands of a worker or producer.
_IN_TRANSIT = frozenset(
    {State.ABANDONED, State.ORPHANED, State.UNLISTED, State.DUPLICATED, State.GHOST}
)


def source_of(states: frozenset[State]) -> Source:
    """The structures in which everything is that is in one of these states."""
    return Source(
        main=bool(states & _MAIN),
        processing=bool(states & _PROCESSING),
        delayed=bool(states & _DELAYED),
        buried=bool(states & _BURIED),
        deep=bool(states & FOUND_DEEP),
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """Items to act on.

    Attributes:
        ids: Their IDs.
        expected: What they were chosen for, which the operation that acts checks again.
    """

    ids: Iterable[bytes | Flush]
    expected: Expected = ANY


def choose(
    queue: Queue, selection: Selection, *, limit: int | None = None, grace_s: float = 1.0
) -> Chosen:
    """The items that a selection chooses.

    An item that looks abandoned, orphaned, unlisted, duplicated or like a ghost may be healthy,
    between two commands of its worker. It is chosen only if a second look, a grace period later,
    says the same.

    Args:
        queue: The queue.
        selection: Which items; without states, those in any state that items can have.
        limit: How many at most, 1 or more, next or longest leased first; None for all. A second
            look may leave fewer of them.
        grace_s: Seconds between the two looks, if a second one is needed.

    Returns:
        Each ID once, in the order of `items`, with what it was chosen for.
    """
    queue.connection.look_only()
    states = ITEMS if selection.states is None else selection.states
    chosen: dict[bytes, State] = {}
    fingerprints: dict[bytes, str] = {}
    needs_data = selection.match is not None
    for item_id, state, data in _candidates(queue, states, selection):
        chosen.setdefault(item_id, state)
        if data is not None:
            fingerprints.setdefault(item_id, fingerprint(data))
        if len(chosen) == limit:
            break
    expected = Expected(states, selection.older_than_s, fingerprints if needs_data else None)
    in_transit = [item_id for item_id, state in chosen.items() if state in _IN_TRANSIT]
    if not in_transit:
        return Chosen(list(chosen), expected)
    queue.clock.sleep(grace_s)
    for facts in facts_of(queue, in_transit):
        if facts.state is not chosen[facts.item_id]:
            del chosen[facts.item_id]
    return Chosen(list(chosen), expected)


def _candidates(
    queue: Queue, states: frozenset[State], selection: Selection
) -> Iterator[tuple[bytes, State, bytes | None]]:
    """IDs with their states, and their data if those are selected by."""
    source, needs_data = source_of(states), selection.match is not None
    if not needs_data and selection.older_than_s is None:
        for item_id, state in listed_states(queue, source, states, selection.id_glob):
            yield item_id, state, None
        return
    wanted = Selection(states, selection.match, selection.id_glob, selection.older_than_s)
    for item in items(queue, source, wanted, data=needs_data, bare=not needs_data):
        yield item.item_id, item.state, item.data
