"""Choosing many items by what they are, to act on them: the one grammar of all verbs.

What is chosen is collected before anything is done to it, so that what the verb moves or removes
can neither hide an item from the walk nor show it twice. The IDs are what is kept: about 110 MB for
a million of them.
"""

from collections.abc import Callable

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.listing import FOUND_DEEP, Selection, Source, list_items
from rwq_cli.core.inspect.report import Detail
from rwq_cli.core.model import State

_ANYWHERE = frozenset({State.GHOST, State.WRONG_TYPE})
_MAIN = _ANYWHERE | {State.WAITING}
_PROCESSING = _ANYWHERE | {State.LEASED, State.HELD, State.ABANDONED}
_DELAYED = _ANYWHERE | {State.DELAYED, State.DUE}
_BURIED = _ANYWHERE | {State.BURIED}

# Every state that can be chosen: a stray lease and what is gone are in no list and have no data.
SELECTABLE = _MAIN | _PROCESSING | _DELAYED | _BURIED | FOUND_DEEP
# Those of items: what has data that a verb may act on.
ITEMS = SELECTABLE - _ANYWHERE
# In these a healthy item may be seen for a moment, between two commands of a worker or producer.
_PASSING = frozenset(
    {State.ABANDONED, State.ORPHANED, State.UNLISTED, State.DUPLICATED, State.GHOST}
)

Sleep = Callable[[float], None]


def source_of(states: frozenset[State]) -> Source:
    """Which structures have to be walked to meet everything that is in one of these states."""
    return Source(
        main=bool(states & _MAIN),
        processing=bool(states & _PROCESSING),
        delayed=bool(states & _DELAYED),
        buried=bool(states & _BURIED),
        deep=bool(states & FOUND_DEEP),
    )


def choose_ids(
    queue: Queue,
    selection: Selection,
    *,
    limit: int | None,
    grace_s: float,
    sleep: Sleep,
) -> list[bytes]:
    """The IDs of the items that a selection chooses.

    What looks abandoned, orphaned, unlisted, duplicated or a ghost may be a healthy item between
    two commands of its worker; it is chosen only if a second look, a grace period later, says the
    same. All else may change after it was chosen, too: the verb that acts decides by what it finds.

    Args:
        queue: The queue.
        selection: Which items; without states, those in any state that items can have.
        limit: How many at most, 1 or more, next or longest leased first; None for all. A second
            look may leave fewer of them.
        grace_s: Seconds between the two looks, where a second one is needed.
        sleep: Waits for so many seconds.

    Returns:
        Each ID once, in the order of `list_items`.
    """
    states = ITEMS if selection.states is None else selection.states
    detail = Detail(sizes=False, bare=True)
    chosen: dict[bytes, None] = {}
    passing: dict[bytes, State] = {}
    wanted = Selection(states, selection.match, selection.id_glob, selection.older_than_s)
    for item in list_items(queue, source_of(states), wanted, detail, limit=None):
        if item.item_id not in chosen:
            chosen[item.item_id] = None
            if item.state in _PASSING:
                passing[item.item_id] = item.state
            if len(chosen) == limit:
                break
    if not passing:
        return list(chosen)
    sleep(grace_s)
    unsettled = frozenset(passing.values())
    again = Selection(unsettled, id_glob=selection.id_glob)
    for item in list_items(queue, source_of(unsettled), again, detail, limit=None):
        if passing.get(item.item_id) is item.state:
            del passing[item.item_id]
            if not passing:
                break
    return [item_id for item_id in chosen if item_id not in passing]
