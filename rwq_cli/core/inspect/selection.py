"""Which items to list: the structures that they are in, and what else selects them."""

import operator
import re
from collections.abc import Callable, Set
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.keys import GUARDS, glob_pattern
from rwq_cli.core.model import Item, State

# States that only a walk over the whole queue finds.
FOUND_DEEP = frozenset({State.ORPHANED, State.UNLISTED, State.HELD, State.DUPLICATED})
# States of IDs in any list or sorted set that are not items.
_ANYWHERE = frozenset({State.GHOST, State.WRONG_TYPE})
_MAIN = _ANYWHERE | {State.WAITING}
_PROCESSING = _ANYWHERE | {State.LEASED, State.HELD, State.ABANDONED}
# The states of IDs that are listed as delayed or buried.
SCHEDULED_STATES = {
    "delayed": _ANYWHERE | {State.DELAYED, State.DUE},
    "buried": _ANYWHERE | {State.BURIED},
}

# The states of items.
ITEMS = frozenset(state for state in State if state.is_item)

_COMPARISON = re.compile(r"\s*(<=|>=|!=|<|>|=)?\s*([0-9]{1,15})\s*")
_COMPARE: dict[str | None, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    None: operator.eq,
}


def comparison(text: str) -> Callable[[int], bool]:
    """A comparison of a count with a number, such as `>=2`; a number alone means that number."""
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"{text!r} is not a comparison", "give a number, such as 2, or '>=2'")
    compare, number = _COMPARE[match[1]], int(match[2])
    return lambda count: compare(count, number)


class Selection(NamedTuple):
    """Which items of a listing to select.

    Attributes:
        states: Only items in one of these; None for any.
        match: Decides whether an item with this data is selected, such as the `search` of a
            compiled regular expression; None for any.
        where: The same; both must hold.
        id_glob: A glob that the whole ID must match; None for any.
        older_than_s: Only items idle for at least this many seconds; None for any.
        holder_glob: Only items that a holder has leased who matches this glob; None for any.
        reason_glob: Only items that are buried for a reason that matches this glob; None for any.
        returns: Decides about the number of times that an item came back; None for any.
    """

    states: frozenset[State] | None = None
    match: Callable[[bytes], object] | None = None
    where: Callable[[bytes], object] | None = None
    id_glob: bytes | None = None
    older_than_s: float | None = None
    holder_glob: bytes | None = None
    reason_glob: bytes | None = None
    returns: Callable[[int], bool] | None = None

    @property
    def is_all(self) -> bool:
        """Whether it selects every item."""
        return self == Selection()

    @property
    def needs_data(self) -> bool:
        """Whether it looks into the data."""
        return self.match is not None or self.where is not None

    @property
    def needs_details(self) -> bool:
        """Whether it looks into the data, or at the idle time."""
        return self.needs_data or self.older_than_s is not None

    @property
    def marked_by(self) -> str:
        """What of an item it looks into, besides its state, age and data: see `mark_of`."""
        by_lease = self.holder_glob is not None or self.reason_glob is not None
        return " ".join(["lease"] * by_lease + ["returns"] * (self.returns is not None))

    def facts_filter(self) -> Callable[[Item], bool]:
        """Decides about an item by its state, its lease, its reason and its returns."""
        holder, reason = (
            None if glob is None else glob_pattern(glob)
            for glob in (self.holder_glob, self.reason_glob)
        )

        def accepts(item: Item) -> bool:
            if self.states is not None and item.state not in self.states:
                return False
            # A guard has no holder.
            holders = item.lease.holder if item.lease else GUARDS[0]
            if holder and (holders.startswith(GUARDS) or not holder.match(holders)):
                return False
            if reason and (item.reason is None or not reason.match(item.reason)):
                return False
            return self.returns is None or self.returns(item.returns or 0)

        return accepts

    def accepts_details(self, item: Item) -> bool:
        """Decide about an item by its idle time and its data, which were read."""
        if self.older_than_s is not None and (
            item.idle_s is None or item.idle_s < self.older_than_s
        ):
            return False
        tests = [holds for holds in (self.match, self.where) if holds is not None]
        return not tests or (item.data is not None and all(holds(item.data) for holds in tests))


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


def source_of(states: Set[State]) -> Source:
    """The structures that items in these states are in."""
    return Source(
        main=bool(states & _MAIN),
        processing=bool(states & _PROCESSING),
        delayed=bool(states & SCHEDULED_STATES["delayed"]),
        buried=bool(states & SCHEDULED_STATES["buried"]),
        deep=bool(states & FOUND_DEEP),
    )
