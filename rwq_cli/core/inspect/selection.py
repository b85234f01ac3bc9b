"""Which items to list: the structures that they are in, and what else selects them."""

import re
from collections.abc import Callable, Set
from functools import cache
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Item, State
from rwq_cli.core.state.rules import is_guard

# States that only a walk over the whole queue finds.
FOUND_DEEP = frozenset({State.ORPHANED, State.UNLISTED, State.HELD, State.DUPLICATED})
# The states in which an entry lists its ID: that of a guarded item in processing is stale.
_ANYWHERE = frozenset({State.GHOST, State.WRONG_TYPE})
LISTED_IN = {
    "main": _ANYWHERE | {State.WAITING},
    "processing": _ANYWHERE | {State.LEASED, State.HELD, State.ABANDONED},
    "delayed": _ANYWHERE | {State.DELAYED, State.DUE},
    "buried": _ANYWHERE | {State.BURIED},
}
ITEMS = frozenset(state for state in State if state.is_item)

_COMPARISON = re.compile(r"\s*(<=|>=|!=|<|>|=)?\s*(.*?)\s*", re.DOTALL)
_COUNT = re.compile("[0-9]{1,15}")
_COMPARE = {"<=": le, ">=": ge, "!=": ne, "<": lt, ">": gt, "=": eq, None: eq}


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise InvalidArgument(f"{text!r} is not a number", "give a number such as 2, or '>=2'")
    return int(text)


def comparison(text: str, parse: Callable[[str], float] = _count) -> Callable[[float], bool]:
    """A comparison with a number, such as `>=2`; a number alone means that number."""
    match = _COMPARISON.fullmatch(text)
    assert match is not None
    compare, number = _COMPARE[match[1]], parse(match[2])
    return lambda value: bool(compare(value, number))


_pattern = cache(glob_pattern)


def _matches(glob: bytes | None, text: bytes | None) -> bool:
    return glob is None or (text is not None and _pattern(glob).match(text) is not None)


class Selection(NamedTuple):
    """Which items of a listing to select.

    Attributes:
        states: Only items in one of these; None for any.
        match: Decides whether an item with this data is selected, such as the `search` of a
            compiled regular expression; None for any.
        id_glob: A glob that the whole ID must match; None for any.
        older_than_s: Only items of at least this age, seconds; None for any. See `ages`.
        on_unknown_age: Called with each item that is not selected because its age is unknown.
        holder_glob: Only items that a holder has leased who matches this glob; None for any.
        reason_glob: Only items that are buried for a reason that matches this glob; None for any.
        returns: Decides about the number of times that an item came back; None for any.
        ttl: Decides about the time left of a lease, seconds, infinite without expiry; None for any.
    """

    states: frozenset[State] | None = None
    match: Callable[[bytes], object] | None = None
    id_glob: bytes | None = None
    older_than_s: float | None = None
    on_unknown_age: Callable[[Item], object] = lambda _item: None
    holder_glob: bytes | None = None
    reason_glob: bytes | None = None
    returns: Callable[[float], bool] | None = None
    ttl: Callable[[float], bool] | None = None

    @property
    def is_all(self) -> bool:
        return self == Selection()

    @property
    def by_state_and_id(self) -> bool:
        """Whether nothing else selects, so that the server can tell by states."""
        return self == Selection(self.states, id_glob=self.id_glob)

    @property
    def needs_data(self) -> bool:
        return self.match is not None

    @property
    def needs_details(self) -> bool:
        return self.needs_data or self.older_than_s is not None

    @property
    def by_lease(self) -> bool:
        """Whether it looks at the lease, which may be the guard of a buried item."""
        return any(option is not None for option in (self.holder_glob, self.reason_glob, self.ttl))

    @property
    def needs_token(self) -> bool:
        """Whether it looks at what a script compares by a token."""
        return self.needs_data or self.by_lease or self.returns is not None

    def accepts_facts(self, item: Item) -> bool:
        # A guard has no holder.
        lease = None if item.lease is None or is_guard(item.lease) else item.lease
        holder = None if lease is None else lease.holder
        left_ms = inf if lease is None or lease.ttl_ms is None else lease.ttl_ms
        return (
            (self.states is None or item.state in self.states)
            and _matches(self.holder_glob, holder)
            and _matches(self.reason_glob, item.reason)
            and (self.returns is None or self.returns(item.returns or 0))
            and (self.ttl is None or (lease is not None and self.ttl(left_ms / 1000)))
        )

    def accepts_details(self, item: Item) -> bool:
        """Decide about an item by its age and its data, which were read."""
        if self.older_than_s is not None:
            if item.idle_s is None:
                if item.state in ITEMS:
                    self.on_unknown_age(item)
                return False
            if item.idle_s < self.older_than_s:
                return False
        return self.match is None or (item.data is not None and bool(self.match(item.data)))


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


def source_of(states: Set[State]) -> Source:
    """The structures that items in these states are in."""
    is_walked = {where: bool(states & listed) for where, listed in LISTED_IN.items()}
    return Source(**is_walked, deep=bool(states & FOUND_DEEP))
