"""Which items to list: the structures that they are in, and what else selects them."""

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State

# States that only a walk over the whole queue finds.
FOUND_DEEP = frozenset({State.ORPHANED, State.UNLISTED, State.HELD, State.DUPLICATED})
# States of IDs in any list or sorted set that are not items.
ANYWHERE = frozenset({State.GHOST, State.WRONG_TYPE})
_MAIN = ANYWHERE | {State.WAITING}
_PROCESSING = ANYWHERE | {State.LEASED, State.HELD, State.ABANDONED}
# The states of IDs that are listed as delayed or buried.
SCHEDULED_STATES = {
    "delayed": ANYWHERE | {State.DELAYED, State.DUE},
    "buried": ANYWHERE | {State.BURIED},
}

# The states of items.
ITEMS = frozenset(state for state in State if state.is_item)


class Searcher(Protocol):
    """A compiled regular expression, or what has such a `search`."""

    def search(self, string: bytes, /) -> object: ...


class Selection(NamedTuple):
    """Which items of a listing to select.

    Attributes:
        states: Only items in one of these; None for any.
        match: A regular expression that must be found in the data; None for any.
        id_glob: A glob that the whole ID must match; None for any.
        older_than_s: Only items idle for at least this many seconds; None for any.
        where: Decides whether an item with this data is selected; None for any.
        holder: Only items that this holder has leased; None for any.
    """

    states: frozenset[State] | None = None
    match: Searcher | None = None
    id_glob: bytes | None = None
    older_than_s: float | None = None
    where: Callable[[bytes], bool] | None = None
    holder: bytes | None = None

    @property
    def is_all(self) -> bool:
        """Whether it selects every item."""
        return self == Selection()

    @property
    def needs_data(self) -> bool:
        """Whether it looks into the data."""
        return self.match is not None or self.where is not None

    def id_pattern(self) -> "re.Pattern[bytes] | None":
        """The glob for IDs as a compiled regular expression; None for any ID."""
        return None if self.id_glob is None else glob_pattern(self.id_glob)

    def accepts(self, item: Item) -> bool:
        """Whether it selects an item, whose details were read."""
        if self.needs_data and not (item.data is not None and self._accepts_data(item.data)):
            return False
        if self.older_than_s is not None:
            return item.idle_s is not None and item.idle_s >= self.older_than_s
        return True

    def _accepts_data(self, data: bytes) -> bool:
        if self.match is not None and not self.match.search(data):
            return False
        return self.where is None or self.where(data)


class Source(NamedTuple):
    """Which structures a listing walks.

    A listing decides the state of an ID by its entry in the list, its keys and its scores. Only a
    `deep` listing knows whether an ID is in both lists, or in one of them twice.

    Attributes:
        main: Walk the main list.
        processing: Walk the processing list.
        delayed: Walk the delayed sorted set, the next due first.
        buried: Walk the buried sorted set, the longest buried first.
        deep: Walk the whole queue for items in no list or sorted set, and for duplicated items.
            They come last, in no particular order.
    """

    main: bool = False
    processing: bool = False
    delayed: bool = False
    buried: bool = False
    deep: bool = False

    @property
    def is_one(self) -> bool:
        """Whether it is a single structure, whose entries can be skipped without reading them."""
        return not self.deep and self.main + self.processing + self.delayed + self.buried == 1


def source_of(states: frozenset[State]) -> Source:
    """The structures that items in these states are in."""
    return Source(
        main=bool(states & _MAIN),
        processing=bool(states & _PROCESSING),
        delayed=bool(states & SCHEDULED_STATES["delayed"]),
        buried=bool(states & SCHEDULED_STATES["buried"]),
        deep=bool(states & FOUND_DEEP),
    )
