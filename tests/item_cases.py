"""Every state that an ID can be in, made with raw keys, and what the doctor finds in each."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import redis

from rwq_cli.core import Code, State
from tests.conftest import Foreign

FAR_MS = 9_999_999_999_999
Make = Callable[[Foreign, bytes], object]


@dataclass(frozen=True)
class ItemCase:
    """One way for an ID to be.

    Attributes:
        make: Makes it, with raw commands.
        state: The state that its facts come to.
        findings: What the doctor finds, and whether it leaves that as it is.
        after: Its state once the doctor is through.
    """

    make: Make
    state: State
    findings: Mapping[Code, bool] = field(default_factory=dict)
    after: State | None = None

    @property
    def state_after(self) -> State:
        """Its state once the doctor is through, which is the same where nothing is fixed."""
        return self.after or self.state


FIXED, LEFT = False, True


def _twice(there: Foreign, item_id: bytes) -> None:
    there.waiting(item_id)
    there.raw.lpush(there.keys.main, item_id, item_id)


def _main_and_leased(there: Foreign, item_id: bytes) -> None:
    there.waiting(item_id)
    there.leased(item_id)


def _main_and_abandoned(there: Foreign, item_id: bytes) -> None:
    there.waiting(item_id)
    there.abandoned(item_id)


def _abandoned_twice(there: Foreign, item_id: bytes) -> None:
    there.abandoned(item_id)
    there.raw.lpush(there.keys.processing, item_id)


def _unlisted(ttl_ms: int | None) -> Make:
    def make(there: Foreign, item_id: bytes) -> None:
        there.data(item_id)
        there.lease(item_id, ttl_ms=ttl_ms)

    return make


def _in_hand(there: Foreign, item_id: bytes) -> None:
    there.data(item_id)
    there.raw.lpush(there.keys.cleaning, item_id)


def _noted_and_waiting(there: Foreign, item_id: bytes) -> None:
    there.waiting(item_id)
    there.raw.lpush(there.keys.cleaning, item_id, item_id)


def _ghost_with_lease(there: Foreign, item_id: bytes) -> None:
    there.raw.lpush(there.keys.processing, item_id)
    there.lease(item_id)


def _ghost_everywhere(there: Foreign, item_id: bytes) -> None:
    there.raw.lpush(there.keys.main, item_id, item_id)
    there.raw.lpush(there.keys.processing, item_id, item_id)
    there.raw.zadd(there.keys.delayed, {item_id: FAR_MS})


def _buried_ghost(there: Foreign, item_id: bytes) -> None:
    there.buried(item_id)
    there.raw.delete(there.keys.item(item_id))


def _two_holders(there: Foreign, item_id: bytes) -> None:
    there.leased(item_id, generations="new", holder=b"new one")
    there.lease(item_id, generations="old", holder=b"old one")


def _leased_beside_a_guard(make: Make) -> Make:
    """A worker has it under the new name; the guard of the old one is left."""

    def made(there: Foreign, item_id: bytes) -> None:
        make(there, item_id)
        there.leased(item_id, generations="new", holder=b"worker-7")

    return made


def _without_guard(make: Make) -> Make:
    def made(there: Foreign, item_id: bytes) -> None:
        make(there, item_id)
        there.raw.delete(there.keys.lease(item_id), there.keys.old_lease(item_id))

    return made


def _weakly_guarded(make: Make) -> Make:
    def made(there: Foreign, item_id: bytes) -> None:
        make(there, item_id)
        there.raw.delete(there.keys.lease(item_id))
        there.raw.pexpire(there.keys.old_lease(item_id), 500_000)

    return made


def _delayed(due_ms: int) -> Make:
    return lambda there, item_id: there.delayed(item_id, due_ms)


def _scheduled_and(make: Make) -> Make:
    def made(there: Foreign, item_id: bytes) -> None:
        there.raw.zadd(there.keys.delayed, {item_id: FAR_MS})
        make(there, item_id)

    return made


def _buried_and_waiting(there: Foreign, item_id: bytes) -> None:
    there.buried(item_id)
    there.raw.lpush(there.keys.main, item_id)


def _half_guarded(there: Foreign, item_id: bytes) -> None:
    there.buried(item_id)
    there.raw.delete(there.keys.lease(item_id))
    there.abandoned(item_id)


def _scored(score: float) -> Make:
    def made(there: Foreign, item_id: bytes) -> None:
        there.delayed(item_id, FAR_MS)
        there.raw.zadd(there.keys.delayed, {item_id: score})

    return made


def _returned_no_number(there: Foreign, item_id: bytes) -> None:
    there.waiting(item_id)
    there.raw.hset(there.keys.returns, item_id, "x")


def _hash_for_data(there: Foreign, item_id: bytes) -> None:
    there.raw.hset(there.keys.item(item_id), "field", "value")
    there.raw.lpush(there.keys.main, item_id)


def _list_for_lease(there: Foreign, item_id: bytes) -> None:
    there.abandoned(item_id)
    there.raw.lpush(there.keys.old_lease(item_id), "x")


HEALTHY = {
    "waiting": ItemCase(lambda there, i: there.waiting(i), State.WAITING),
    "leased": ItemCase(lambda there, i: there.leased(i), State.LEASED),
    "leased by 0.1": ItemCase(lambda there, i: there.leased(i, generations="old"), State.LEASED),
    "leased by 0.2": ItemCase(lambda there, i: there.leased(i, generations="new"), State.LEASED),
    "delayed": ItemCase(_delayed(FAR_MS), State.DELAYED),
    "buried": ItemCase(lambda there, i: there.buried(i), State.BURIED),
    "gone": ItemCase(lambda _there, _i: None, State.GONE),
}
BROKEN = {
    "being moved": ItemCase(
        lambda there, i: there.buried(i, b"being moved to b on c; the same rwq mv finishes it"),
        State.BURIED,
        {Code.MOVING: LEFT},
    ),
    "held": ItemCase(lambda there, i: there.leased(i, ttl_ms=None), State.HELD, {Code.HELD: LEFT}),
    "held by 0.1": ItemCase(
        lambda there, i: there.leased(i, ttl_ms=None, generations="old"),
        State.HELD,
        {Code.HELD: LEFT},
    ),
    "held in no list": ItemCase(_unlisted(None), State.HELD, {Code.HELD: LEFT}),
    "abandoned": ItemCase(
        lambda there, i: there.abandoned(i), State.ABANDONED, {Code.ABANDONED: FIXED}, State.WAITING
    ),
    "abandoned twice": ItemCase(
        _abandoned_twice, State.ABANDONED, {Code.ABANDONED: FIXED}, State.WAITING
    ),
    "orphaned": ItemCase(
        lambda there, i: there.data(i), State.ORPHANED, {Code.ORPHANED: FIXED}, State.WAITING
    ),
    "orphaned in a cleaner's hand": ItemCase(
        _in_hand, State.ORPHANED, {Code.ORPHANED: FIXED}, State.WAITING
    ),
    "unlisted": ItemCase(_unlisted(60_000), State.UNLISTED, {Code.UNLISTED: LEFT}),
    "due": ItemCase(_delayed(1), State.DUE, {Code.DUE: FIXED}, State.WAITING),
    "due without a guard": ItemCase(
        _without_guard(_delayed(1)), State.DUE, {Code.DUE: FIXED}, State.WAITING
    ),
    "delayed without a guard": ItemCase(
        _without_guard(_delayed(FAR_MS)), State.DELAYED, {Code.UNGUARDED: FIXED}
    ),
    "buried without a guard": ItemCase(
        _without_guard(lambda there, i: there.buried(i)), State.BURIED, {Code.UNGUARDED: FIXED}
    ),
    "delayed behind a guard that ends too early": ItemCase(
        _weakly_guarded(_delayed(FAR_MS)), State.DELAYED, {Code.UNGUARDED: FIXED}
    ),
    "buried behind a guard that ends": ItemCase(
        _weakly_guarded(lambda there, i: there.buried(i)), State.BURIED, {Code.UNGUARDED: FIXED}
    ),
    "waiting and delayed": ItemCase(
        _scheduled_and(lambda there, i: there.waiting(i)),
        State.WAITING,
        {Code.STALE_SCHEDULE: FIXED},
    ),
    "leased and delayed by one name": ItemCase(
        _leased_beside_a_guard(_delayed(FAR_MS)), State.LEASED, {Code.STALE_SCHEDULE: FIXED}
    ),
    "leased and buried by one name": ItemCase(
        _leased_beside_a_guard(lambda there, item_id: there.buried(item_id)),
        State.LEASED,
        {Code.STALE_SCHEDULE: FIXED},
    ),
    "waiting and buried": ItemCase(
        _buried_and_waiting, State.WAITING, {Code.STALE_SCHEDULE: FIXED}
    ),
    "leased and delayed": ItemCase(
        _scheduled_and(lambda there, i: there.leased(i)),
        State.LEASED,
        {Code.STALE_SCHEDULE: FIXED},
    ),
    "abandoned and delayed": ItemCase(
        _scheduled_and(lambda there, i: there.abandoned(i)),
        State.ABANDONED,
        {Code.ABANDONED: FIXED, Code.STALE_SCHEDULE: FIXED},
        State.WAITING,
    ),
    "thrice in main": ItemCase(_twice, State.DUPLICATED, {Code.DUPLICATED: FIXED}, State.WAITING),
    "in main and leased": ItemCase(
        _main_and_leased, State.DUPLICATED, {Code.DUPLICATED: FIXED}, State.LEASED
    ),
    "in main and abandoned": ItemCase(
        _main_and_abandoned, State.DUPLICATED, {Code.DUPLICATED: FIXED}, State.WAITING
    ),
    "abandoned behind half a guard": ItemCase(
        _half_guarded,
        State.ABANDONED,
        {Code.ABANDONED: FIXED, Code.STALE_SCHEDULE: FIXED},
        State.WAITING,
    ),
    "delayed until a time that is none": ItemCase(
        _scored(math.inf), State.DELAYED, {Code.INVALID_SCORE: LEFT}
    ),
    "due since a time that is none": ItemCase(
        _scored(-math.inf), State.DUE, {Code.DUE: FIXED}, State.WAITING
    ),
    "returned no number of times": ItemCase(
        _returned_no_number, State.WAITING, {Code.INVALID_RETURNS: LEFT}
    ),
    "held by two": ItemCase(_two_holders, State.LEASED, {Code.TWO_HOLDERS: LEFT}),
    "ghost in main": ItemCase(
        lambda there, i: there.raw.lpush(there.keys.main, i),
        State.GHOST,
        {Code.GHOST: FIXED},
        State.GONE,
    ),
    "ghost in processing": ItemCase(
        lambda there, i: there.raw.lpush(there.keys.processing, i),
        State.GHOST,
        {Code.GHOST: FIXED},
        State.GONE,
    ),
    "ghost under a lease": ItemCase(
        _ghost_with_lease,
        State.GHOST,
        {Code.GHOST: FIXED, Code.STRAY_LEASE: LEFT},
        State.STRAY_LEASE,
    ),
    "ghost everywhere": ItemCase(_ghost_everywhere, State.GHOST, {Code.GHOST: FIXED}, State.GONE),
    "buried ghost": ItemCase(_buried_ghost, State.GHOST, {Code.GHOST: FIXED}, State.GONE),
    "stray lease": ItemCase(
        lambda there, i: there.lease(i), State.STRAY_LEASE, {Code.STRAY_LEASE: LEFT}
    ),
    "endless stray lease": ItemCase(
        lambda there, i: there.lease(i, ttl_ms=None),
        State.STRAY_LEASE,
        {Code.ENDLESS_LEASE: FIXED},
        State.GONE,
    ),
    "endless lease of 0.1": ItemCase(
        lambda there, i: there.lease(i, ttl_ms=None, generations="old"),
        State.STRAY_LEASE,
        {Code.ENDLESS_LEASE: FIXED},
        State.GONE,
    ),
    "waiting and in a cleaner's hand": ItemCase(
        _noted_and_waiting, State.WAITING, {Code.STALE_CLEANING: FIXED}
    ),
    "gone and in a cleaner's hand": ItemCase(
        lambda there, i: there.raw.lpush(there.keys.cleaning, i),
        State.GONE,
        {Code.STALE_CLEANING: FIXED},
    ),
    "gone and counted": ItemCase(
        lambda there, i: there.raw.hset(there.keys.returns, i, 3),
        State.GONE,
        {Code.STALE_RETURNS: FIXED},
    ),
    "a hash for its data": ItemCase(_hash_for_data, State.WRONG_TYPE, {Code.WRONG_TYPE: LEFT}),
    "a list for its lease": ItemCase(_list_for_lease, State.WRONG_TYPE, {Code.WRONG_TYPE: LEFT}),
}
ITEM_CASES = {**HEALTHY, **BROKEN}
STRANGE_IDS = (b"plain", b"it's $(x) `y`\n\x1b[2J \xff", b"-", b"\x00*?[a]\\{}:items:")


def real_items(raw: redis.Redis, there: Foreign) -> dict[bytes, bytes]:
    """ID to data of every item there is."""
    prefix = there.keys.item_prefix
    keys = [key for key in raw.scan_iter(count=10_000) if key.startswith(prefix)]
    pipeline = raw.pipeline(transaction=False)
    for key in keys:
        pipeline.type(key)
    strings = [key for key, kind in zip(keys, pipeline.execute(), strict=True) if kind == b"string"]
    values = raw.mget(strings) if strings else []
    return {key[len(prefix) :]: value for key, value in zip(strings, values, strict=True)}
