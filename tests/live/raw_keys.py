"""One look at every raw key of a queue, and what is broken by the words of the protocol alone.

Nothing here asks the package under test: the sets are computed from the keys.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from tests.everything import LOOK

DELAYED_GUARD = b"rwq-delayed:"
BURIED_GUARD = b"rwq-buried:"
SETTLING_LEASE = b"rwq-settling:"
_GUARDS = (DELAYED_GUARD, BURIED_GUARD)


@dataclass(frozen=True, slots=True)
class RawKeys:
    """All keys of one queue at one instant: lists newest first, times in unix ms."""

    main: tuple[bytes, ...]
    processing: tuple[bytes, ...]
    cleaning: tuple[bytes, ...]
    delayed: dict[bytes, float]
    buried: dict[bytes, float]
    returns: dict[bytes, int]
    results: frozenset[bytes]
    data: dict[bytes, bytes]
    # By ID and kind, `lease` or `leased_by_session`.
    leases: dict[tuple[bytes, str], bytes]
    others: tuple[bytes, ...]

    def values(self, item_id: bytes) -> list[bytes]:
        """What the lease keys of an item hold: the new one, then the old."""
        found = (self.leases.get((item_id, kind)) for kind in ("lease", "leased_by_session"))
        return [value for value in found if value is not None]

    def is_settling(self, item_id: bytes) -> bool:
        """Whether a settling lease, under the new name, keeps later cleaners off it."""
        return self.leases.get((item_id, "lease"), b"").startswith(SETTLING_LEASE)

    def holders(self, item_id: bytes) -> list[bytes]:
        """Who holds a lease on an item; a settling lease is nobody's."""
        return [value for value in self.values(item_id) if not value.startswith(SETTLING_LEASE)]

    def workers(self, item_id: bytes) -> list[bytes]:
        """Who works on an item: its holders without the guards of delayed and buried items."""
        return [holder for holder in self.holders(item_id) if not holder.startswith(_GUARDS)]

    def about(self, item_id: bytes) -> tuple[object, ...]:
        """All that is there of an ID, but for how long its leases last."""
        places = self.main.count(item_id), self.processing.count(item_id)
        scores = self.delayed.get(item_id), self.buried.get(item_id)
        return self.data.get(item_id), *places, *scores, *self.values(item_id)

    def states(self, item_id: bytes) -> set[str]:
        """The states of an item's entries, by the words of the protocol; none without data.

        `leased` also stands for `held`, and `delayed` for `due`.
        """
        if item_id not in self.data:
            return set()
        in_main, in_processing = self.main.count(item_id), self.processing.count(item_id)
        guard, found = self.guard(item_id), set[str]()
        if in_main:
            found.add("waiting")
        if in_main > 1 or (in_main and in_processing):
            found.add("duplicated")
        if in_processing and not guard:
            found.add("leased" if self.workers(item_id) else "abandoned")
        elif in_processing or not in_main:
            if item_id in self.buried:
                found.add("buried")
            elif item_id in self.delayed:
                found.add("delayed")
            else:
                found.add("unlisted" if self.workers(item_id) else "orphaned")
        return found

    def guard(self, item_id: bytes) -> bytes | None:
        """The guard under both generations' names, which with its entry alone proves something."""
        values = self.values(item_id)
        for guard, entries in ((DELAYED_GUARD, self.delayed), (BURIED_GUARD, self.buried)):
            guards = [value for value in values if value.startswith(guard)]
            if len(guards) == 2 and item_id in entries:
                return guards[0]
        return None

    @property
    def scheduled(self) -> frozenset[bytes]:
        """The members of the delayed and buried zsets."""
        return frozenset(self.delayed.keys() | self.buried.keys())

    @property
    def listed(self) -> frozenset[bytes]:
        """The IDs in main and processing."""
        return frozenset((*self.main, *self.processing))

    @property
    def hidden(self) -> frozenset[bytes]:
        """Items in no list or zset that nothing but a guard keeps from the cleaners."""
        unlisted = self.data.keys() - self.listed - self.scheduled
        return frozenset(
            item_id for item_id in unlisted if self.holders(item_id) and not self.workers(item_id)
        )

    @property
    def ghosts(self) -> frozenset[bytes]:
        """IDs in a list or zset that have no data."""
        return frozenset((self.listed | self.scheduled) - self.data.keys())

    @property
    def orphans(self) -> frozenset[bytes]:
        """Items in no list or zset, without a lease."""
        unlisted = self.data.keys() - self.listed - self.scheduled
        return frozenset(item_id for item_id in unlisted if not self.holders(item_id))

    @property
    def duplicates(self) -> frozenset[bytes]:
        """Items that are twice in main, or in main and in processing."""
        working = set(self.processing)
        entries = Counter(self.main)
        return frozenset(
            item_id
            for item_id, count in entries.items()
            if item_id in self.data and (count > 1 or item_id in working)
        )

    @property
    def listed_twice(self) -> frozenset[bytes]:
        """Items that are in the lists more than once: duplicates, and those twice in processing."""
        entries = Counter(self.main + self.processing)
        return frozenset(
            item_id for item_id, count in entries.items() if item_id in self.data and count > 1
        )

    @property
    def abandoned(self) -> frozenset[bytes]:
        """Items in processing that nobody works on, and that no whole guard protects."""
        working = self.data.keys() & set(self.processing)
        return frozenset(i for i in working if not self.workers(i) and not self.guard(i))


def read_raw_keys(client: redis.Redis, queue: bytes) -> RawKeys:
    """Read the whole server, which must hold one small queue; marks of an undo, locks and the
    notes of a move are left out."""
    return raw_keys_of(client.execute_command("EVAL", LOOK, 0), queue)


def raw_keys_of(seen: Sequence[tuple[bytes, bytes, Any, int]], queue: bytes) -> RawKeys:
    """The keys that a look saw."""
    kinds = (b"item", b"lease", b"leased_by_session", b"result", b"undo")
    strings: dict[bytes, dict[bytes, bytes]] = {kind: {} for kind in kinds}
    members: dict[bytes, tuple[bytes, ...]] = {}
    others = []
    for key, _, value, _ in seen:
        kind, has_id, item_id = key[len(queue) + 1 :].partition(b":")
        if not key.startswith(queue + b":"):
            others.append(key)
        elif has_id and kind in strings:
            strings[kind][item_id] = value
        elif not has_id and kind in _STRUCTURES:
            members[kind] = tuple(value)
        elif kind not in (b"clean-lock", b"move-lock", b"moved"):
            others.append(key)
    return RawKeys(
        main=members.get(b"queue", ()),
        processing=members.get(b"processing", ()),
        cleaning=members.get(b"cleaning", ()),
        delayed=_scores(members.get(b"delayed", ())),
        buried=_scores(members.get(b"buried", ())),
        returns={item_id: int(number) for item_id, number in _pairs(members.get(b"returns", ()))},
        results=frozenset(strings[b"result"]),
        data=strings[b"item"],
        leases={
            (item_id, kind): holder
            for kind in ("lease", "leased_by_session")
            for item_id, holder in strings[kind.encode()].items()
        },
        others=tuple(sorted(others)),
    )


def _pairs(flat: tuple[bytes, ...]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _scores(flat: tuple[bytes, ...]) -> dict[bytes, float]:
    return {item_id: float(score) for item_id, score in _pairs(flat)}


_STRUCTURES = (b"queue", b"processing", b"cleaning", b"delayed", b"buried", b"returns")


def end_settling_leases(client: redis.Redis, queue: bytes, *, stray: bool = False) -> None:
    """Let settling leases end, each of which would do so by itself.

    With `stray`, also those that are left of an item, because a worker of the other generation
    completed it.
    """
    for prefix in (queue + b":lease:", queue + b":leased_by_session:"):
        for key in client.scan_iter(b"*:lease*", count=10_000):
            if not key.startswith(prefix):
                continue
            is_settling = (client.get(key) or b"").startswith(SETTLING_LEASE)
            item_id = key.removeprefix(prefix)
            if is_settling or (stray and not client.exists(queue + b":item:" + item_id)):
                assert client.pttl(key) != -1, f"{key!r} would never end"
                client.delete(key)
