"""Comparing two queues, or one with an export, by ID: what only one of them has, and what they have
in another state."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import sha1
from itertools import chain
from typing import NamedTuple

from rwq_cli.core.batches import BUDGET, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, lengths_of
from rwq_cli.core.inspect.keyspace import ids_of
from rwq_cli.core.keys import pattern_of
from rwq_cli.core.lua import TOKEN_BYTES
from rwq_cli.core.model import State
from rwq_cli.core.state.expected import token_of
from rwq_cli.core.state.reads import read_parts, read_states
from rwq_cli.core.state.snapshots import ItemSnapshot


class DifferenceKind(StrEnum):
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
    def kind(self) -> DifferenceKind:
        if self.here is None:
            return DifferenceKind.ONLY_THERE
        return DifferenceKind.ONLY_HERE if self.there is None else DifferenceKind.DIFFERS


def differences(queue: Queue, other: "Queue | ExportedQueue") -> Iterator[Difference]:
    """The items that only one of two queues has, and those whose data or state differ; those that
    only the other has come last.

    The queues may be on two servers. Memory holds the entries of both lists of both, about 110 MB
    for a million. While others change the queues, an item may be compared before and after its
    change, and an ID may come twice.
    """
    side = _Side(queue)
    other_side = _Side(other) if isinstance(other, Queue) else other
    queue.progress.begin("comparing")
    for ids in side.pages():
        queue.progress.advance(len(ids))
        states_here, states_there = side.states(ids), other_side.states(ids)
        both = [i for i in ids if states_here[i] is not None and states_there[i] is not None]
        digests = zip(both, side.digests(both), other_side.digests(both), strict=True)
        other_data = {item_id for item_id, digest, other in digests if digest != other}
        for item_id, state in states_here.items():
            state_there, is_same = states_there[item_id], item_id not in other_data
            if state is not None and (state is not state_there or not is_same):
                yield Difference(item_id, state, state_there, is_same)
    queue.progress.begin("looking for other items")
    for ids in other_side.pages():
        queue.progress.advance(len(ids))
        states_here = side.states(ids)
        missing = [item_id for item_id in ids if states_here[item_id] is None]
        for item_id, state_there in other_side.states(missing).items():
            if state_there is not None:
                yield Difference(item_id, None, state_there)


class ExportedQueue:
    """The items of an export, as a side of a comparison.

    Args:
        items: The items; of their data, only digests are kept.
        now_ms: The time of the other side's server, unix ms, by which delayed items are due.
    """

    def __init__(self, items: Iterable[ItemSnapshot], now_ms: int) -> None:
        self._items = {
            item.item_id: (_state_at(item, now_ms), _digest_of(item.data)) for item in items
        }

    def __len__(self) -> int:
        return len(self._items)

    def pages(self) -> Iterator[list[bytes]]:
        return in_batches(sorted(self._items))

    def states(self, ids: Sequence[bytes]) -> dict[bytes, State | None]:
        return {i: self._items[i][0] if i in self._items else None for i in ids}

    def digests(self, ids: Sequence[bytes]) -> Iterator[bytes | None]:
        return (self._items[item_id][1] for item_id in ids)


def _digest_of(data: bytes) -> bytes:
    """What tells data from other data: unlike a token, in the middle of large data, too."""
    return (
        token_of(data) if len(data) <= TOKEN_BYTES else sha1(data, usedforsecurity=False).digest()
    )


def _state_at(item: ItemSnapshot, now_ms: int) -> State:
    if item.state is State.DELAYED and item.due_ms is not None and item.due_ms <= now_ms:
        return State.DUE
    return item.state


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
        by_id: dict[bytes, State | None] = dict.fromkeys(ids)
        for (in_main, in_processing), group in groups.items():
            group_states = read_states(
                self._queue, group, in_main=in_main, in_processing=in_processing
            )
            for item_id, state in zip(group, group_states, strict=True):
                by_id[item_id] = state if state.has_data else None
        return by_id

    def digests(self, ids: Sequence[bytes]) -> Iterator[bytes | None]:
        args = {"what": "token", "preview_bytes": 0}
        for read, reply in read_parts(self._queue, "details", ids, 3, **args):
            for item_id, size, token in zip(read, reply[1::3], reply[2::3], strict=True):
                yield self._digest_of_large(item_id, size) if (size or 0) > TOKEN_BYTES else token

    def _digest_of_large(self, item_id: bytes, size: int) -> bytes:
        digest, key = sha1(usedforsecurity=False), self._queue.keys.item(item_id)
        for start in range(0, size, BUDGET.bytes):
            digest.update(self._queue.call("GETRANGE", key, start, start + BUDGET.bytes - 1))
        return digest.digest()
