"""Comparing two queues by ID: what only one of them has, and what they have in another state."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, lengths_of
from rwq_cli.core.inspect.keyspace import ids_of
from rwq_cli.core.keys import pattern_of
from rwq_cli.core.model import State
from rwq_cli.core.state.probe import read_parts, states


class Kind(StrEnum):
    """How two queues differ about an ID."""

    ONLY_HERE = "only-here"
    ONLY_THERE = "only-there"
    DIFFERS = "differs"


class Difference(NamedTuple):
    """An ID that two queues do not have alike, and the states of its items; None for no item."""

    item_id: bytes
    here: State | None
    there: State | None
    # Also true if only one has an item.
    same_data: bool = True

    @property
    def kind(self) -> Kind:
        if self.here is None:
            return Kind.ONLY_THERE
        return Kind.ONLY_HERE if self.there is None else Kind.DIFFERS


def differences(queue: Queue, other: Queue) -> Iterator[Difference]:
    """The items that only one of two queues has, and those whose data or state differ; those that
    only the other has come last.

    The queues may be on two servers. Memory holds the entries of both lists of both, about 110 MB
    for a million. While others change the queues, an item may be compared before and after its
    change, and an ID may come twice.
    """
    here, there = _Side(queue), _Side(other)
    queue.progress.begin("comparing")
    for ids in here.pages():
        queue.progress.advance(len(ids))
        own, theirs = here.states(ids), there.states(ids)
        both = [i for i in ids if own[i] is not None and theirs[i] is not None]
        tokens = zip(here.tokens(both), there.tokens(both), strict=True)
        differing = {i for i, (a, b) in zip(both, tokens, strict=True) if a != b}
        for item_id in ids:
            state, other_state, is_same = own[item_id], theirs[item_id], item_id not in differing
            if state is not None and (state is not other_state or not is_same):
                yield Difference(item_id, state, other_state, is_same)
    queue.progress.begin("looking for other items")
    for ids in there.pages():
        queue.progress.advance(len(ids))
        known = here.states(ids)
        missing = [item_id for item_id in ids if known[item_id] is None]
        for item_id, found in there.states(missing).items():
            if found is not None:
                yield Difference(item_id, None, found)


class _Side:
    def __init__(self, queue: Queue) -> None:
        queue.connection.set_no_touch()
        lists = queue.keys.main, queue.keys.processing
        self._queue = queue
        queue.progress.begin("reading the lists", lengths_of(queue, *lists))
        self._entries = [Counter(chain.from_iterable(ListCursor(queue, key))) for key in lists]

    def pages(self) -> Iterator[list[bytes]]:
        """Pages of the IDs of items, each in order, so that short queues are compared in order."""
        keys = self._queue.keys
        for page in self._queue.connection.scan_keys(pattern_of(keys.item_prefix)):
            yield sorted(set(ids_of(page, keys.item_prefix)))

    def states(self, ids: Sequence[bytes]) -> dict[bytes, State | None]:
        """By ID, in order, the state of its item; None if there is none."""
        groups: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)
        main, processing = self._entries
        for item_id in ids:
            groups[main[item_id], processing[item_id]].append(item_id)
        found: dict[bytes, State | None] = dict.fromkeys(ids)
        for (in_main, in_processing), group in groups.items():
            known = states(self._queue, group, in_main=in_main, in_processing=in_processing)
            for item_id, state in zip(group, known, strict=True):
                found[item_id] = state if state.has_data else None
        return found

    def tokens(self, ids: Sequence[bytes]) -> Iterator[bytes | None]:
        args = {"what": "token", "preview_bytes": 0}
        for _, reply in read_parts(self._queue, "details", ids, 3, **args):
            yield from reply[2::3]
