"""Every state that an ID can be in, made with raw keys, and what the doctor finds in each."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import redis

from rwq_cli.core import Code, State
from rwq_cli.core.keys import pattern_of
from tests.conftest import Foreign

FAR_MS = 9_999_999_999_999
Make = Callable[[Foreign, bytes], object]
FIXED, LEFT = False, True


@dataclass(frozen=True)
class ItemCase:
    """One way for an ID to be: its state, what the doctor finds, and whether it leaves that."""

    make: Make
    state: State
    findings: Mapping[Code, bool] = field(default_factory=dict)
    after: State | None = None

    @property
    def state_after(self) -> State:
        return self.after or self.state


def _delayed(due_ms: float) -> Make:
    def make(there: Foreign, item_id: bytes) -> None:
        there.delayed(item_id, FAR_MS if abs(due_ms) == math.inf else int(due_ms))
        there.raw.zadd(there.keys.delayed, {item_id: due_ms})

    return make


def _and(*makes: Make) -> Make:
    """One after the other."""
    return lambda there, item_id: [make(there, item_id) for make in makes]


def _listed(name: str, times: int = 1) -> Make:
    return lambda there, i: there.raw.lpush(getattr(there.keys, name), *[i] * times)


def _gone(*names: str) -> Make:
    """Without these keys of the item: `item`, `lease`, `old_lease`."""
    return lambda there, i: there.raw.delete(*(getattr(there.keys, name)(i) for name in names))


def _lease(ttl_ms: int | None = 60_000, generations: str = "both", holder: bytes = b"them") -> Make:
    return lambda there, i: there.lease(i, ttl_ms=ttl_ms, generations=generations, holder=holder)


def _counted(returns: int) -> Make:
    return lambda there, i: there.raw.hset(there.keys.returns, i, returns)


def _ends_early(there: Foreign, item_id: bytes) -> None:
    there.raw.delete(there.keys.lease(item_id))
    there.raw.pexpire(there.keys.old_lease(item_id), 500_000)


def _noted(there: Foreign, item_id: bytes) -> None:
    """An entry among the delayed, without a guard."""
    there.raw.zadd(there.keys.delayed, {item_id: FAR_MS})


_DATA: Make = lambda there, i: there.data(i)  # noqa: E731
_WAITING: Make = lambda there, i: there.waiting(i)  # noqa: E731
_LEASED: Make = lambda there, i: there.leased(i)  # noqa: E731
_ABANDONED: Make = lambda there, i: there.abandoned(i)  # noqa: E731
_BURIED: Make = lambda there, i: there.buried(i)  # noqa: E731
_UNGUARDED = _gone("lease", "old_lease")
# A worker has it under the new name; the guard of the old one is left.
_TAKEN = _and(_listed("processing"), _lease(generations="new", holder=b"worker-7"))
_HELD_BY_TWO = (
    _lease(generations="new", holder=b"new one"),
    _lease(generations="old", holder=b"old one"),
)
_BY_OLD = _and(_ABANDONED, _lease(generations="old"))


def _ended(generations: str, ttl_ms: int | None = 3_600_000) -> Make:
    """What is left of a lease of rwq under one name, after a client has ended it by the other."""
    return _lease(ttl_ms, generations, b"rwq:me@here:1")


HEALTHY = {
    "waiting": ItemCase(_WAITING, State.WAITING),
    "leased": ItemCase(_LEASED, State.LEASED),
    "leased by 0.1": ItemCase(_BY_OLD, State.LEASED),
    "leased by 0.3": ItemCase(_and(_ABANDONED, _lease(generations="new")), State.LEASED),
    "leased by rwq, then by 0.3": ItemCase(
        _and(_ABANDONED, _ended("old"), _lease(generations="new")), State.LEASED
    ),
    "leased by rwq, then by 0.1": ItemCase(
        _and(_ABANDONED, _ended("new"), _lease(generations="old")), State.LEASED
    ),
    "waiting, its lease ended": ItemCase(_and(_WAITING, _ended("old")), State.WAITING),
    "gone, its lease ended": ItemCase(_ended("old"), State.GONE),
    "delayed": ItemCase(_delayed(FAR_MS), State.DELAYED),
    "buried": ItemCase(_BURIED, State.BURIED),
    "gone": ItemCase(lambda _there, _i: None, State.GONE),
    "returned not often": ItemCase(_and(_WAITING, _counted(4)), State.WAITING),
    "set aside after many returns": ItemCase(_and(_BURIED, _counted(9)), State.BURIED),
    "waits with a lease of a day": ItemCase(_and(_WAITING, _lease(86_400_000)), State.WAITING),
    "leased for hours": ItemCase(_and(_ABANDONED, _lease(21_600_000)), State.LEASED),
}


def _returned(make: Make, state: State, *codes: Code) -> ItemCase:
    """What waits once the doctor is through."""
    return ItemCase(make, state, dict.fromkeys(codes or (Code(state.value),), FIXED), State.WAITING)


def _left(make: Make, state: State, code: Code) -> ItemCase:
    return ItemCase(make, state, {code: LEFT})


def _fixed(make: Make, state: State, code: Code, after: State | None = None) -> ItemCase:
    return ItemCase(make, state, {code: FIXED}, after)


def _ghost(make: Make) -> ItemCase:
    return _fixed(make, State.GHOST, Code.GHOST, State.GONE)


BROKEN = {
    "being moved": _left(
        lambda there, i: there.buried(i, b"being moved to b on c; the same rwq mv finishes it"),
        *(State.BURIED, Code.MOVING),
    ),
    "held": _left(_and(_ABANDONED, _lease(None)), State.HELD, Code.HELD),
    "held by 0.1": _left(_and(_ABANDONED, _lease(None, "old")), State.HELD, Code.HELD),
    "held in no list": _left(_and(_DATA, _lease(None)), State.HELD, Code.HELD),
    "abandoned": _returned(_ABANDONED, State.ABANDONED),
    "abandoned twice": _returned(_and(_ABANDONED, _listed("processing")), State.ABANDONED),
    "leased by rwq, ended by 0.3": _returned(_and(_ABANDONED, _ended("old")), State.ABANDONED),
    "leased by rwq, ended by 0.1": _returned(_and(_ABANDONED, _ended("new")), State.ABANDONED),
    "held by rwq, ended by 0.3": _returned(_and(_ABANDONED, _ended("old", None)), State.ABANDONED),
    "in no list, its lease ended": _returned(_and(_DATA, _ended("old")), State.ORPHANED),
    "orphaned": _returned(_DATA, State.ORPHANED),
    "orphaned in a cleaner's hand": _returned(_and(_DATA, _listed("cleaning")), State.ORPHANED),
    "unlisted": _left(_and(_DATA, _lease()), State.UNLISTED, Code.UNLISTED),
    "due": _returned(_delayed(1), State.DUE),
    "due without a guard": _returned(_and(_delayed(1), _UNGUARDED), State.DUE),
    "delayed without a guard": _fixed(
        _and(_delayed(FAR_MS), _UNGUARDED), State.DELAYED, Code.UNGUARDED
    ),
    "buried without a guard": _fixed(_and(_BURIED, _UNGUARDED), State.BURIED, Code.UNGUARDED),
    "delayed behind a guard that ends too early": _fixed(
        _and(_delayed(FAR_MS), _ends_early), State.DELAYED, Code.UNGUARDED
    ),
    "buried behind a guard that ends": _fixed(
        _and(_BURIED, _ends_early), State.BURIED, Code.UNGUARDED
    ),
    "waiting and delayed": _fixed(_and(_noted, _WAITING), State.WAITING, Code.STALE_SCHEDULE),
    "leased and delayed by one name": _fixed(
        _and(_delayed(FAR_MS), _TAKEN), State.LEASED, Code.STALE_SCHEDULE
    ),
    "leased and buried by one name": _fixed(
        _and(_BURIED, _TAKEN), State.LEASED, Code.STALE_SCHEDULE
    ),
    "waiting and buried": _fixed(
        _and(_BURIED, _listed("main")), State.WAITING, Code.STALE_SCHEDULE
    ),
    "leased and delayed": _fixed(_and(_noted, _LEASED), State.LEASED, Code.STALE_SCHEDULE),
    "abandoned and delayed": _returned(
        _and(_noted, _ABANDONED), State.ABANDONED, Code.ABANDONED, Code.STALE_SCHEDULE
    ),
    "thrice in main": _returned(_and(_WAITING, _listed("main", 2)), State.DUPLICATED),
    "in main and leased": _fixed(
        _and(_WAITING, _LEASED), State.DUPLICATED, Code.DUPLICATED, State.LEASED
    ),
    "in main and abandoned": _returned(_and(_WAITING, _ABANDONED), State.DUPLICATED),
    "abandoned behind half a guard": _returned(
        _and(_BURIED, _gone("lease"), _ABANDONED),
        *(State.ABANDONED, Code.ABANDONED, Code.STALE_SCHEDULE),
    ),
    "delayed until a time that is none": _left(
        _delayed(math.inf), State.DELAYED, Code.INVALID_SCORE
    ),
    "due since a time that is none": _returned(_delayed(-math.inf), State.DUE),
    "returned no number of times": _left(
        _and(_WAITING, lambda there, i: there.raw.hset(there.keys.returns, i, "x")),
        *(State.WAITING, Code.INVALID_RETURNS),
    ),
    "held by two": _left(
        _and(_ABANDONED, *_HELD_BY_TWO),
        *(State.LEASED, Code.TWO_HOLDERS),
    ),
    "ghost in main": _ghost(_listed("main")),
    "ghost in processing": _ghost(_listed("processing")),
    "ghost under a lease": ItemCase(
        _and(_listed("processing"), _lease()),
        *(State.GHOST, {Code.GHOST: FIXED, Code.STRAY_LEASE: LEFT}, State.STRAY_LEASE),
    ),
    "ghost everywhere": _ghost(_and(_listed("main", 2), _listed("processing", 2), _noted)),
    "buried ghost": _ghost(_and(_BURIED, _gone("item"))),
    "stray lease": _left(_lease(), State.STRAY_LEASE, Code.STRAY_LEASE),
    "endless stray lease": _fixed(_lease(None), State.STRAY_LEASE, Code.ENDLESS_LEASE, State.GONE),
    "endless lease of 0.1": _fixed(
        _lease(None, "old"), State.STRAY_LEASE, Code.ENDLESS_LEASE, State.GONE
    ),
    "waiting and in a cleaner's hand": _fixed(
        _and(_WAITING, _listed("cleaning", 2)), State.WAITING, Code.STALE_CLEANING
    ),
    "gone and in a cleaner's hand": _fixed(_listed("cleaning"), State.GONE, Code.STALE_CLEANING),
    "returned often": _left(_and(_WAITING, _counted(5)), State.WAITING, Code.OFTEN_RETURNED),
    "leased for a day": _left(_and(_ABANDONED, _lease(86_400_000)), State.LEASED, Code.LONG_LEASE),
    "gone and counted": _fixed(_counted(3), State.GONE, Code.STALE_RETURNS),
    "a hash for its data": _left(
        _and(lambda there, i: there.raw.hset(there.keys.item(i), "field", "x"), _listed("main")),
        *(State.WRONG_TYPE, Code.WRONG_TYPE),
    ),
    "a list for its lease": _left(
        _and(_ABANDONED, lambda there, i: there.raw.lpush(there.keys.old_lease(i), "x")),
        *(State.WRONG_TYPE, Code.WRONG_TYPE),
    ),
}
ITEM_CASES = {**HEALTHY, **BROKEN}
STRANGE_IDS = (
    *(b"plain", b"it's $(x) `y`\n\x1b[2J \xc3\xa9", b"-", b"\x00*?[a]\\{}:items:", b"\xff"),
)


def real_items(raw: redis.Redis, there: Foreign) -> dict[bytes, bytes]:
    """ID to data of every item there is."""
    keys = raw.keys(pattern_of(there.keys.item_prefix))
    values = raw.mget(keys) if keys else []
    prefix = there.keys.item_prefix
    # MGET says nothing of a key of another type.
    return {
        key[len(prefix) :]: value
        for key, value in zip(keys, values, strict=True)
        if value is not None
    }
