"""Cleans: every state of the table, live workers between the two looks, and other cleaners."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import CleanAction, Repair, State, WorkQueue
from rwq_cli.core.errors import PermissionDenied, WrongType
from rwq_cli.core.keys import QueueKeys
from tests.conftest import (
    QUEUE,
    SEARCHED_MAX,
    AsUser,
    Backend,
    FakeClock,
    Foreign,
    Interleaved,
    contents,
    no_call_searches_often,
)

FAR_MS = 10**13

RETURNED = CleanAction(b"1", Repair.RETURNED, State.ABANDONED, "processing")
ORPHAN_RETURNED = CleanAction(b"1", Repair.RETURNED, State.ORPHANED)
GHOST_DROPPED = CleanAction(b"1", Repair.DROPPED, State.GHOST, "processing")
MAIN_GHOST_DROPPED = CleanAction(b"1", Repair.DROPPED, State.GHOST, "main")
SECOND_ENTRY_DROPPED = CleanAction(b"1", Repair.DROPPED, State.DUPLICATED, "processing")
DUPLICATE_DROPPED = CleanAction(b"1", Repair.DROPPED, State.DUPLICATED, "main")


def pruned(where: str, state: State = State.GHOST) -> CleanAction:
    return CleanAction(b"1", Repair.PRUNED, state, where)


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@dataclass(frozen=True)
class Case:
    """What a clean does to item 1, between two waiting items and beside two leased ones.

    Attributes:
        arrange: Puts item 1 into its state.
        light: What a light clean does; nothing unless told.
        deep: What a deep clean does.
        light_after: The keys that differ after a light clean; `None` stands for no key.
        deep_after: The same after a deep clean.
    """

    arrange: Callable[[Foreign], object]
    light: list[CleanAction] = field(default_factory=list)
    deep: list[CleanAction] = field(default_factory=list)
    light_after: dict[bytes, Any] = field(default_factory=dict)
    deep_after: dict[bytes, Any] = field(default_factory=dict)


FROM_NOWHERE = {b"jobs:queue": [b"1", b"new", b"old"], b"jobs:returns": {b"1": b"1"}}
TO_MAIN = {**FROM_NOWHERE, b"jobs:processing": [b"l2", b"l1"]}
NO_LEASE = {b"jobs:lease:1": None, b"jobs:leased_by_session:1": None}
IN_MAIN_ONLY_ONCE = {b"jobs:queue": [b"new", b"1", b"old"], b"jobs:processing": [b"l2", b"l1"]}


PROMOTED = CleanAction(b"1", Repair.PROMOTED, State.DUE, "delayed")
PROMOTION = {b"jobs:queue": [b"1", b"new", b"old"], b"jobs:delayed": None, **NO_LEASE}


def unguard(foreign: Foreign, *keys: bytes) -> None:
    """Delete these keys of the guard, or both."""
    foreign.raw.delete(*(keys or NO_LEASE))


def in_main(foreign: Foreign, *entries: bytes) -> None:
    foreign.raw.delete(foreign.keys.main)
    foreign.raw.rpush(foreign.keys.main, *entries)


CASES = {
    "gone": Case(lambda _: None),
    "waiting": Case(lambda foreign: foreign.waiting(b"1")),
    "leased": Case(lambda foreign: foreign.leased(b"1")),
    "leased by an old worker": Case(lambda foreign: foreign.leased(b"1", generations="old")),
    "held": Case(lambda foreign: foreign.leased(b"1", ttl_ms=None)),
    "held in no list": Case(lambda foreign: (foreign.data(b"1"), foreign.lease(b"1", ttl_ms=None))),
    "unlisted": Case(lambda foreign: (foreign.data(b"1"), foreign.lease(b"1"))),
    "delayed": Case(lambda foreign: foreign.delayed(b"1", FAR_MS)),
    "buried": Case(lambda foreign: foreign.buried(b"1")),
    "buried, with an old entry in processing": Case(
        lambda foreign: (foreign.abandoned(b"1"), foreign.buried(b"1"))
    ),
    "stray lease": Case(lambda foreign: foreign.lease(b"1")),
    "abandoned": Case(
        lambda foreign: foreign.abandoned(b"1"), [RETURNED], [RETURNED], TO_MAIN, TO_MAIN
    ),
    "abandoned, twice in processing": Case(
        lambda foreign: (
            foreign.abandoned(b"1"),
            foreign.raw.rpush(foreign.keys.processing, b"1"),
        ),
        [RETURNED],
        [RETURNED],
        TO_MAIN,
        TO_MAIN,
    ),
    "orphaned": Case(
        lambda foreign: foreign.data(b"1"),
        deep=[ORPHAN_RETURNED],
        deep_after=FROM_NOWHERE,
    ),
    "left by an old cleaner": Case(
        lambda foreign: (foreign.data(b"1"), foreign.raw.lpush(foreign.keys.cleaning, b"1")),
        deep=[ORPHAN_RETURNED],
        deep_after=FROM_NOWHERE,
    ),
    "left by an old cleaner, while it waits": Case(
        lambda foreign: (foreign.waiting(b"1"), foreign.raw.lpush(foreign.keys.cleaning, b"1")),
        deep=[pruned("cleaning", State.WAITING)],
        deep_after={b"jobs:cleaning": None},
    ),
    "left by an old cleaner, without data": Case(
        lambda foreign: foreign.raw.lpush(foreign.keys.cleaning, b"1", b"1"),
        deep=[pruned("cleaning")],
        deep_after={b"jobs:cleaning": None},
    ),
    "twice waiting": Case(
        lambda foreign: (foreign.data(b"1"), in_main(foreign, b"1", b"new", b"1", b"old")),
        deep=[DUPLICATE_DROPPED],
        deep_after=IN_MAIN_ONLY_ONCE,
    ),
    "waiting and in work": Case(
        lambda foreign: (foreign.leased(b"1"), in_main(foreign, b"1", b"new", b"1", b"old")),
        deep=[DUPLICATE_DROPPED],
        deep_after={b"jobs:queue": [b"new", b"old"]},
    ),
    "waiting and abandoned": Case(
        lambda foreign: (foreign.abandoned(b"1"), in_main(foreign, b"new", b"1", b"old")),
        [SECOND_ENTRY_DROPPED],
        [SECOND_ENTRY_DROPPED],
        IN_MAIN_ONLY_ONCE,
        IN_MAIN_ONLY_ONCE,
    ),
    "ghost in processing": Case(
        lambda foreign: foreign.raw.lpush(foreign.keys.processing, b"1", b"1"),
        [GHOST_DROPPED],
        [GHOST_DROPPED],
        {b"jobs:processing": [b"l2", b"l1"]},
        {b"jobs:processing": [b"l2", b"l1"]},
    ),
    "ghost in main": Case(
        lambda foreign: in_main(foreign, b"1", b"new", b"1", b"old", b"1"),
        deep=[MAIN_GHOST_DROPPED],
        deep_after={b"jobs:queue": [b"new", b"old"]},
    ),
    "ghost in delayed": Case(
        lambda foreign: (
            foreign.delayed(b"1", FAR_MS),
            foreign.raw.delete(foreign.keys.item(b"1")),
        ),
        deep=[pruned("delayed")],
        deep_after={b"jobs:delayed": None, **NO_LEASE},
    ),
    "ghost in buried": Case(
        lambda foreign: (foreign.buried(b"1"), foreign.raw.delete(foreign.keys.item(b"1"))),
        deep=[pruned("buried")],
        deep_after={b"jobs:buried": None, **NO_LEASE},
    ),
    "a count of returns that is left over": Case(
        lambda foreign: foreign.raw.hset(foreign.keys.returns, b"1", 2),
        [pruned("returns")],
        [pruned("returns")],
        {b"jobs:returns": None},
        {b"jobs:returns": None},
    ),
    "due": Case(
        lambda foreign: foreign.delayed(b"1", 1), [PROMOTED], [PROMOTED], PROMOTION, PROMOTION
    ),
    "due, without a guard": Case(
        lambda foreign: (foreign.delayed(b"1", 1), unguard(foreign)),
        [PROMOTED],
        [PROMOTED],
        PROMOTION,
        PROMOTION,
    ),
    "due, and brought back by another cleaner": Case(
        lambda foreign: (
            foreign.delayed(b"1", 1),
            unguard(foreign, b"jobs:lease:1"),
            in_main(foreign, b"new", b"1", b"old"),
        ),
        [pruned("delayed", State.WAITING)],
        [pruned("delayed", State.WAITING)],
        {b"jobs:delayed": None, **NO_LEASE},
        {b"jobs:delayed": None, **NO_LEASE},
    ),
    # Completed by another while it was put away, and added again.
    "delayed and waiting": Case(
        lambda foreign: (
            foreign.delayed(b"1", FAR_MS),
            unguard(foreign, b"jobs:lease:1"),
            in_main(foreign, b"1", b"new", b"old"),
        ),
        deep=[pruned("delayed", State.WAITING)],
        deep_after={b"jobs:delayed": None, **NO_LEASE},
    ),
    "buried and leased by a worker of one generation": Case(
        lambda foreign: (
            foreign.buried(b"1"),
            foreign.raw.lpush(foreign.keys.processing, b"1"),
            foreign.lease(b"1", generations="new"),
        ),
        deep=[pruned("buried", State.LEASED)],
        deep_after={b"jobs:buried": None, b"jobs:leased_by_session:1": None},
    ),
    "abandoned, and counted before": Case(
        lambda foreign: (foreign.abandoned(b"1"), foreign.raw.hset(foreign.keys.returns, b"1", 7)),
        [RETURNED],
        [RETURNED],
        {**TO_MAIN, b"jobs:returns": {b"1": b"8"}},
        {**TO_MAIN, b"jobs:returns": {b"1": b"8"}},
    ),
    "abandoned, behind a count that is none": Case(
        lambda foreign: (
            foreign.abandoned(b"1"),
            foreign.raw.hset(foreign.keys.returns, b"1", b"-3.5e\xff"),
        ),
        [RETURNED],
        [RETURNED],
        TO_MAIN,
        TO_MAIN,
    ),
}


def arrange(foreign: Foreign, case: Case) -> dict[bytes, Any]:
    foreign.waiting(b"old", b"new")
    foreign.leased(b"l1", b"l2")
    case.arrange(foreign)
    return contents(foreign.raw)


def changed(before: dict[bytes, Any], changes: dict[bytes, Any]) -> dict[bytes, Any]:
    return {key: value for key, value in {**before, **changes}.items() if value is not None}


def lease_keys(raw: Redis) -> list[bytes]:
    """The lease keys of the queue, but for settling leases."""
    return [key for key in contents(raw) if key.startswith(b"jobs:lease")]


def clean(queue: WorkQueue, kind: str, **options: Any) -> list[CleanAction]:
    return list(queue.deep_clean(**options) if kind == "deep" else queue.light_clean(**options))


each_kind = pytest.mark.parametrize("kind", ["light", "deep"])


@each_kind
@pytest.mark.parametrize("name", CASES)
def test_a_dry_run_and_a_clean_of_each_state(
    queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock, kind: str, name: str
) -> None:
    case = CASES[name]
    before = arrange(foreign, case)
    actions, changes = (
        (case.deep, case.deep_after) if kind == "deep" else (case.light, case.light_after)
    )
    assert clean(queue, kind, dry_run=True, grace_s=7) == actions
    assert contents(raw) == before
    # Promotion needs no second look, nor does a light clean for what it prunes.
    seen_at_once = {Repair.PROMOTED} if kind == "deep" else {Repair.PROMOTED, Repair.PRUNED}
    assert clock.slept_s == ([7] if {a.action for a in actions} - seen_at_once else [])
    assert clean(queue, kind) == actions
    assert contents(raw) == changed(before, changes)
    # The item that an old cleaner left is in a list only since this deep clean.
    is_in_hand = (kind, name) == ("deep", "left by an old cleaner")
    assert clean(queue, kind) == ([pruned("cleaning", State.WAITING)] if is_in_hand else [])
    assert clean(queue, kind) == []
    assert kind == "light" or b"jobs:cleaning" not in contents(raw)


@each_kind
def test_the_grace_period_is_a_second_by_default(
    queue: WorkQueue, foreign: Foreign, clock: FakeClock, kind: str
) -> None:
    foreign.abandoned(b"1")
    clean(queue, kind)
    foreign.abandoned(b"2")
    clean(queue, kind, grace_s=2.5)
    assert clock.slept_s == [1.0, 2.5]


@each_kind
@pytest.mark.parametrize("structure", ["queue", "processing", "cleaning", "delayed"])
def test_a_structure_of_another_type_is_an_error(
    queue: WorkQueue, raw: Redis, foreign: Foreign, kind: str, structure: str
) -> None:
    foreign.abandoned(b"1")
    raw.set(f"jobs:{structure}", b"text")
    before = contents(raw)
    with pytest.raises(WrongType):
        clean(queue, kind)
    assert contents(raw) == before


@pytest.mark.parametrize("where", ["processing", "no list"])
def test_data_of_another_type_are_left_alone(queue: WorkQueue, raw: Redis, where: str) -> None:
    raw.hset(b"jobs:item:1", "field", "value")
    if where == "processing":
        raw.lpush(b"jobs:processing", b"1")
    before = contents(raw)
    assert clean(queue, "deep") == []
    assert contents(raw) == before


class TestGrace:
    """What healed between the two looks is not touched."""

    def act(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        kind: str,
        meanwhile: Callable[[], object],
        **options: Any,
    ) -> tuple[list[CleanAction], bool]:
        """The actions, and whether the keys are as they were after what happened meanwhile."""
        after: dict[bytes, Any] = {}

        def sleep() -> None:
            meanwhile()
            after.update(contents(raw))

        clock.during_sleep = sleep
        actions = clean(queue, kind, **options)
        assert len(clock.slept_s) == 1
        return actions, contents(raw) == after

    @each_kind
    @pytest.mark.parametrize("dry_run", [False, True])
    @pytest.mark.parametrize("generations", ["old", "new"])
    def test_a_worker_leases_the_item(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        kind: str,
        dry_run: bool,
        generations: str,
    ) -> None:
        foreign.abandoned(b"1")
        assert self.act(
            *(queue, clock, raw, kind, lambda: foreign.lease(b"1", generations=generations)),
            dry_run=dry_run,
        ) == ([], True)

    def test_a_producer_pushes_and_a_worker_pops_the_item(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.data(b"1")
        for take in (foreign.leased, foreign.abandoned):
            clock.slept_s.clear()
            assert self.act(*(queue, clock, raw, "deep", lambda take=take: take(b"1"))) == (
                [],
                True,
            )
            raw.delete(b"jobs:processing", b"jobs:lease:1", b"jobs:leased_by_session:1")

    @each_kind
    def test_the_items_are_completed(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        kind: str,
    ) -> None:
        foreign.abandoned(b"1")
        foreign.data(b"2")
        assert self.act(
            *(queue, clock, raw, kind, lambda: list(queue.complete_many([b"1", b"2"]))),
        ) == ([], True)

    def test_the_data_of_an_abandoned_item_are_deleted(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        """An old worker's complete is two commands; between them the entry is a ghost."""
        foreign.abandoned(b"1")
        deleted = lambda: raw.delete(b"jobs:item:1")  # noqa: E731
        assert self.act(queue, clock, raw, "light", deleted) == ([], True)
        clock.during_sleep = None
        assert clean(queue, "light") == [GHOST_DROPPED]
        assert contents(raw) == {}

    def test_items_are_added_under_the_ids_of_ghosts(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        raw.lpush(b"jobs:queue", b"1")
        raw.zadd(b"jobs:delayed", {b"2": FAR_MS})
        raw.hset(b"jobs:returns", b"3", 1)
        assert self.act(
            *(queue, clock, raw, "deep", lambda: foreign.data(b"1", b"2", b"3")),
        ) == ([], True)

    def test_a_second_entry_is_leased(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"1")
        before_last = lambda: (raw.rpop(b"jobs:queue"), foreign.lease(b"1"))  # noqa: E731
        assert self.act(queue, clock, raw, "deep", before_last) == ([], True)

    def test_a_cleaner_of_0_1_is_killed(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        """At the first look the item was in processing too; now the note is its only trace."""
        foreign.leased(b"1")
        raw.lpush(b"jobs:cleaning", b"1")

        def killed() -> None:
            raw.lrem(b"jobs:processing", 0, b"1")
            raw.delete(b"jobs:lease:1", b"jobs:leased_by_session:1")

        assert self.act(queue, clock, raw, "deep", killed) == ([], True)

    def test_items_that_break_wait_for_the_next_clean(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"1")
        foreign.leased(b"2")
        foreign.waiting(b"3")

        def meanwhile() -> None:
            raw.delete(b"jobs:lease:2", b"jobs:leased_by_session:2")
            foreign.data(b"4")
            raw.lpush(b"jobs:queue", b"3", b"5")

        clock.during_sleep = meanwhile
        assert clean(queue, "deep") == [RETURNED]
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"1", b"5", b"3", b"3"]
        assert raw.lrange(b"jobs:processing", 0, -1) == [b"2"]


class TestOrphan:
    """What happens to an orphan after the last look at the lists."""

    @pytest.mark.parametrize("generations", ["old", "new", "both"])
    def test_an_orphan_that_a_worker_leases_is_left_alone(
        self,
        interleaved: Interleaved,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        generations: str,
    ) -> None:
        foreign.data(b"1")

        def act(name: str) -> None:
            if name == "repair":
                foreign.lease(b"1", generations=generations)

        interleaved.before = act
        assert clean(WorkQueue(interleaved, QUEUE, clock=clock), "deep") == []
        lease_keys = {"old": [b"jobs:leased_by_session:1"], "new": [b"jobs:lease:1"]}
        lease_keys["both"] = lease_keys["new"] + lease_keys["old"]
        assert contents(raw) == {
            b"jobs:item:1": b"data of 1",
            **dict.fromkeys(lease_keys[generations], ("expires", b"them")),
        }

    def test_a_late_push_is_seen(
        self, interleaved: Interleaved, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        """A producer, or a cleaner past its look at the lease, that was held up for a second."""
        ids = numbered(40)
        foreign.data(*ids)
        interleaved.before = lambda name: (
            name == "repair" and not raw.exists(b"jobs:queue") and raw.lpush(b"jobs:queue", b"1")
        )
        clean(WorkQueue(interleaved, QUEUE, clock=clock), "deep")
        assert "repair" in interleaved.calls
        assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == sorted(ids)


HEALTHY = [b"abandoned", b"both", b"in hand", b"orphaned", b"orphaned 2", b"twice", b"waiting"]


def break_all(foreign: Foreign) -> None:
    foreign.waiting(b"waiting", b"twice", b"twice", b"both")
    foreign.abandoned(b"abandoned", b"both")
    foreign.data(b"orphaned", b"orphaned 2", b"in hand")
    foreign.raw.lpush(foreign.keys.cleaning, b"in hand")
    foreign.raw.lpush(foreign.keys.main, b"ghost")
    foreign.raw.lpush(foreign.keys.processing, b"ghost")
    foreign.leased(b"leased")


def assert_all_repaired(raw: Redis) -> None:
    assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == HEALTHY
    assert raw.lrange(b"jobs:processing", 0, -1) == [b"leased"]
    assert lease_keys(raw) == [b"jobs:lease:leased", b"jobs:leased_by_session:leased"]


def count_calls(backend: Backend, foreign: Foreign) -> int:
    break_all(foreign)
    connection = Interleaved(backend.connect())
    clean(WorkQueue(connection, QUEUE, clock=FakeClock()), "deep")
    assert_all_repaired(foreign.raw)
    foreign.raw.flushall()
    return len(connection.calls)


def at_call(number: int, act: Callable[[], object]) -> Callable[[Interleaved], None]:
    """Make a connection act once, before its call of this number."""

    def arm(connection: Interleaved) -> None:
        def before(_: str) -> None:
            if len(connection.calls) == number:
                act()

        connection.before = before

    return arm


class Upstream:
    """Cleaners as redis-work-queue has them: bare sequences of commands."""

    def __init__(self, foreign: Foreign) -> None:
        self.raw = foreign.raw
        self.keys = foreign.keys

    def deep_clean(self) -> None:
        """By its documentation: exists, not in main, no lease; off processing, then onto main."""
        prefix = self.keys.item_prefix
        for key in self.raw.keys(self.keys.item_pattern):
            item_id = key[len(prefix) :]
            if self.raw.lpos(self.keys.main, item_id) is None and not self.raw.exists(
                self.keys.lease(item_id)
            ):
                self.raw.lrem(self.keys.processing, 0, item_id)
                self.raw.lpush(self.keys.main, item_id)

    def old_light_clean(self) -> Iterable[None]:
        """Version 0.1, step by step."""
        for item_id in self.raw.lrange(self.keys.processing, 0, -1):
            if self.raw.exists(self.keys.old_lease(item_id)):
                continue
            self.raw.lpush(self.keys.cleaning, item_id)
            yield
            removed = self.raw.lrem(self.keys.processing, 0, item_id)
            yield
            if removed:
                self.raw.lpush(self.keys.main, item_id)
            yield
            self.raw.lrem(self.keys.cleaning, 0, item_id)


class TestTwoCleaners:
    def test_upstreams_deep_clean_between_any_two_calls(
        self, backend: Backend, raw: Redis, foreign: Foreign
    ) -> None:
        for number in range(1, count_calls(backend, foreign) + 1):
            raw.flushall()
            break_all(foreign)
            connection = Interleaved(backend.connect())
            at_call(number, Upstream(foreign).deep_clean)(connection)
            queue = WorkQueue(connection, QUEUE, clock=FakeClock())
            clean(queue, "deep")
            connection.before = None
            clean(queue, "deep")
            assert_all_repaired(raw)

    def test_a_light_clean_of_0_1_between_any_two_calls(
        self, backend: Backend, raw: Redis, foreign: Foreign
    ) -> None:
        for number in range(1, count_calls(backend, foreign) + 1):
            raw.flushall()
            break_all(foreign)
            connection = Interleaved(backend.connect())
            steps = Upstream(foreign).old_light_clean
            at_call(number, lambda steps=steps: list(steps()))(connection)
            queue = WorkQueue(connection, QUEUE, clock=FakeClock())
            clean(queue, "deep")
            connection.before = None
            clean(queue, "deep")
            clean(queue, "deep")
            assert_all_repaired(raw)

    def test_a_clean_that_is_killed_at_any_call_loses_nothing(
        self, backend: Backend, raw: Redis, foreign: Foreign
    ) -> None:
        class Killed(Exception):
            pass

        def kill() -> None:
            raise Killed

        for number in range(1, count_calls(backend, foreign) + 1):
            raw.flushall()
            break_all(foreign)
            connection = Interleaved(backend.connect())
            at_call(number, kill)(connection)
            with pytest.raises(Killed):
                clean(WorkQueue(connection, QUEUE, clock=FakeClock()), "deep")
            listed = raw.lrange(b"jobs:queue", 0, -1) + raw.lrange(b"jobs:processing", 0, -1)
            assert {b"waiting", b"twice", b"abandoned", b"both", b"leased"} <= set(listed)
            assert listed.count(b"abandoned") == 1
            assert listed.count(b"orphaned") <= 1
            next_one = WorkQueue(backend.connect(), QUEUE, clock=FakeClock())
            clean(next_one, "deep")
            clean(next_one, "deep")
            assert_all_repaired(raw)

    def test_a_clean_beside_a_worker_that_completes_batches(
        self, interleaved: Interleaved, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        """Whenever our walk is on its second page, what it last read leaves the list."""
        many = [b"live %d" % number for number in range(1900)]
        raw.mset({b"jobs:item:" + item_id: b"" for item_id in many})
        raw.mset({b"jobs:lease:" + item_id: b"them" for item_id in many})
        foreign.abandoned(b"1")
        raw.lpush(b"jobs:processing", *many)

        completed = 0

        def complete(name: str) -> None:
            nonlocal completed
            if name != "LRANGE" or interleaved.words[1] != b"jobs:processing":
                return
            gone = raw.lrange(b"jobs:processing", -1000, -901)
            if not gone:
                return
            completed += 1
            for item_id in gone:
                raw.lrem(b"jobs:processing", 0, item_id)
            raw.delete(*(b"jobs:item:" + item_id for item_id in gone))

        interleaved.before = complete
        clean(WorkQueue(interleaved, QUEUE, clock=clock), "light")
        listed = raw.lrange(b"jobs:queue", 0, -1) + raw.lrange(b"jobs:processing", 0, -1)
        assert listed.count(b"1") == 1
        assert completed


class TestManyItems:
    @pytest.mark.parametrize("count", [30, 31, 1500])
    def test_abandoned_items_beside_leased_ones(
        self, queue: WorkQueue, raw: Redis, count: int
    ) -> None:
        pipeline = raw.pipeline()
        crowd = Foreign(pipeline)
        for number in range(count):
            crowd.abandoned(b"dead %d" % number)
            crowd.leased(b"live %d" % number)
        crowd.waiting(b"old", b"new")
        pipeline.execute()
        dead = [b"dead %d" % number for number in range(count)]
        actions = clean(queue, "light")
        assert sorted(actions, key=lambda action: action.item_id) == [
            CleanAction(item_id, Repair.RETURNED, State.ABANDONED, "processing")
            for item_id in sorted(dead)
        ]
        waiting = raw.lrange(b"jobs:queue", 0, -1)
        # Behind everything that waits already.
        assert waiting[-2:] == [b"new", b"old"]
        assert sorted(waiting[:-2]) == sorted(dead)
        assert sorted(raw.lrange(b"jobs:processing", 0, -1)) == sorted(
            b"live %d" % number for number in range(count)
        )

    def test_orphans_duplicates_and_ghosts(self, queue: WorkQueue, raw: Redis) -> None:
        pipeline = raw.pipeline()
        crowd = Foreign(pipeline)
        crowd.waiting(*numbered(1200))
        crowd.waiting(*numbered(400))
        crowd.data(*(b"orphan %d" % number for number in range(700)))
        pipeline.lpush(b"jobs:queue", *(b"ghost %d" % number for number in range(300)))
        pipeline.execute()
        actions = clean(queue, "deep")
        assert [
            sum(1 for action in actions if action.state is state)
            for state in (State.ORPHANED, State.DUPLICATED, State.GHOST)
        ] == [700, 400, 300]
        waiting = raw.lrange(b"jobs:queue", 0, -1)
        assert waiting[-1200:] == numbered(1200)[::-1]
        assert sorted(waiting[:-1200]) == sorted(b"orphan %d" % number for number in range(700))
        assert lease_keys(raw) == []
        assert clean(queue, "deep") == []

    def test_no_call_searches_a_long_list_many_times(
        self, interleaved: Interleaved, raw: Redis, clock: FakeClock
    ) -> None:
        """A search passes the list: of 500 at once the server would stand still."""
        raw.lpush(b"jobs:queue", *numbered(20_000))
        raw.mset({b"jobs:item:%d" % number: b"" for number in range(20_000)})
        raw.lpush(b"jobs:queue", *(b"%d" % (number * 40) for number in range(500)))
        with no_call_searches_often(interleaved, raw, SEARCHED_MAX // 20_000):
            actions = clean(WorkQueue(interleaved, QUEUE, clock=clock), "deep")
        assert len(actions) == 500
        assert raw.lrange(b"jobs:queue", 0, -1) == numbered(20_000)[::-1]


class TestLongCleaningList:
    """A cleaner of 0.1 can leave very many IDs there: a search for each would take minutes."""

    @pytest.mark.parametrize("stale", [1, 30, 31, 700])
    def test_entries_that_a_cleaner_works_on_stay(
        self, queue: WorkQueue, raw: Redis, clock: FakeClock, stale: int
    ) -> None:
        """It goes on adding and taking meanwhile."""
        in_hand = [b"in hand %d" % number for number in range(2500)]
        raw.mset({b"jobs:item:" + item_id: b"" for item_id in in_hand})
        raw.lpush(b"jobs:queue", *in_hand)
        mixed = in_hand[:1500] + numbered(stale) + in_hand[1500:]
        raw.lpush(b"jobs:cleaning", *mixed[::2], *mixed[1::2])

        def pop_them() -> None:
            # Listed at the first look, in the cleaner's hand alone at the second.
            raw.delete(b"jobs:queue")

        clock.during_sleep = pop_them
        actions = clean(queue, "deep")
        pruned_ids = [action.item_id for action in actions if action.where == "cleaning"]
        assert sorted(pruned_ids) == sorted(numbered(stale))
        assert sorted(raw.lrange(b"jobs:cleaning", 0, -1)) == sorted(in_hand)


NESTED = [b"a:item", b"a:item:x:item:y"]


class TestNestedNames:
    """A queue whose name begins with `a:item` has keys that look like data keys of `a`."""

    def fill(self, foreign: Foreign) -> None:
        break_all(foreign)
        foreign.delayed(b"delayed", FAR_MS)
        foreign.buried(b"buried")
        foreign.raw.hset(foreign.keys.returns, b"waiting", 3)
        foreign.raw.hset(foreign.keys.name + b":result:done", "exit", 0)

    @pytest.mark.parametrize("dry_run", [False, True])
    @pytest.mark.parametrize("other", NESTED)
    def test_a_deep_clean_leaves_keys_of_other_queues_alone(
        self,
        backend: Backend,
        raw: Redis,
        clock: FakeClock,
        other: bytes,
        dry_run: bool,
    ) -> None:
        self.fill(Foreign(raw, other))
        before = contents(raw)
        queue = WorkQueue(backend.connect(), b"a", clock=clock)
        assert clean(queue, "deep", dry_run=dry_run) == []
        assert contents(raw) == before


@pytest.mark.parametrize("name", [b"*", b"[j]obs", b"\x00\xff:\\"])
def test_names_and_ids_can_be_any_bytes(
    backend: Backend, raw: Redis, clock: FakeClock, name: bytes
) -> None:
    bystander = Foreign(raw, b"jobs")
    bystander.data(b"orphan of another queue")
    ids = [b"", b"*", b"a:b:", b"\x00\xff", b"rwq-buried:", b"x" * 1000]
    mine = Foreign(raw, name)
    mine.data(*ids)
    actions = clean(WorkQueue(backend.connect(), name, clock=clock), "deep")
    keys = QueueKeys(name)
    assert {action.item_id for action in actions} == set(ids)
    assert sorted(raw.lrange(keys.main, 0, -1)) == sorted(ids)
    assert set(contents(raw)) == {
        b"jobs:item:orphan of another queue",
        keys.main,
        keys.returns,
        *map(keys.item, ids),
    }
    assert raw.hgetall(keys.returns) == dict.fromkeys(ids, b"1")


def returned_before(foreign: Foreign, count: int, *ids: bytes) -> None:
    foreign.raw.hset(foreign.keys.returns, mapping=dict.fromkeys(ids, count))


class TestReturns:
    """What a clean brings back is counted, and nothing else is."""

    @pytest.mark.parametrize("count", [1, 30, 31, 700])
    def test_each_return_is_counted(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
    ) -> None:
        foreign.abandoned(*numbered(count))
        foreign.raw.lpush(foreign.keys.processing, b"ghost", b"0")
        orphans = [b"orphan %d" % number for number in range(count)]
        foreign.data(*orphans)
        returned_before(foreign, 4, b"0", orphans[-1])
        clean(queue, "deep")
        once = dict.fromkeys([*numbered(count), *orphans], b"1")
        assert raw.hgetall(b"jobs:returns") == {**once, b"0": b"5", orphans[-1]: b"5"}

    def test_thousands_of_stale_counts_are_pruned(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        """A light clean looks at some of them, so that it takes the same time beside any number."""
        returned_before(foreign, 2, *numbered(3000))
        foreign.waiting(b"7", b"2999")
        actions = clean(queue, "light")
        assert len(actions) > 400
        actions += clean(queue, "deep")
        assert {(action.action, action.where) for action in actions} == {(Repair.PRUNED, "returns")}
        assert len(actions) == len({action.item_id for action in actions}) == 2998
        assert raw.hgetall(b"jobs:returns") == {b"7": b"2", b"2999": b"2"}

    def test_an_item_that_is_added_meanwhile_keeps_its_count(
        self, interleaved: Interleaved, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        returned_before(foreign, 2, b"1")
        interleaved.before = lambda name: name == "prune" and foreign.data(b"1")
        assert clean(WorkQueue(interleaved, QUEUE, clock=clock), "light") == []
        assert raw.hgetall(b"jobs:returns") == {b"1": b"2"}

    @pytest.mark.parametrize("denied", ["-hset", "-zadd", "-mset"])
    @each_kind
    def test_a_denied_command_changes_nothing(
        self, as_user: AsUser, raw: Redis, foreign: Foreign, kind: str, denied: str
    ) -> None:
        foreign.abandoned(b"1", b"2")
        returned_before(foreign, 1, b"2")
        before = contents(raw)
        queue = WorkQueue(as_user("+@all", denied), QUEUE)
        with pytest.raises(PermissionDenied):
            clean(queue, kind, grace_s=0, bury_after=1)
        assert contents(raw) == before


class TestBuryAfter:
    """What came back so often already is put away instead of being returned once more."""

    @pytest.mark.parametrize("shape", ["abandoned", "orphaned"])
    @pytest.mark.parametrize("others", [0, 40])
    def test_items_above_the_limit_are_buried(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, shape: str, others: int
    ) -> None:
        """With forty others the processing list is turned round page by page."""
        make = foreign.abandoned if shape == "abandoned" else foreign.data
        rest = [b"other %d" % number for number in range(others)]
        make(b"full", b"below", b"new", b"more", *rest)
        returned_before(foreign, 2, b"below")
        returned_before(foreign, 3, b"full")
        returned_before(foreign, 11, b"more")
        began_ms = queue.now_ms()
        actions = clean(queue, "deep", bury_after=3)
        state, where = (
            (State.ABANDONED, "processing") if shape == "abandoned" else (State.ORPHANED, None)
        )
        assert {action.item_id: action for action in actions} == {
            item_id: CleanAction(item_id, repair, state, where)
            for item_id, repair in {
                **dict.fromkeys([b"below", b"new", *rest], Repair.RETURNED),
                **dict.fromkeys([b"full", b"more"], Repair.BURIED),
            }.items()
        }
        assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == sorted([b"below", b"new", *rest])
        assert raw.exists(b"jobs:processing") == 0
        for item_id, times in ((b"full", 3), (b"more", 11)):
            for key in (queue.keys.lease(item_id), queue.keys.old_lease(item_id)):
                assert raw.get(key) == b"rwq-buried:returned %d times" % times
                assert raw.pttl(key) == -1
        buried = raw.zrange(b"jobs:buried", 0, -1, withscores=True)
        assert {item_id for item_id, _ in buried} == {b"full", b"more"}
        assert all(began_ms <= at_ms < queue.now_ms() + 1 for _, at_ms in buried)
        assert raw.hgetall(b"jobs:returns") == {
            **dict.fromkeys([b"new", *rest], b"1"),
            b"below": b"3",
            b"full": b"3",
            b"more": b"11",
        }
        assert len(lease_keys(raw)) == 4
        assert queue.state(b"full") is State.BURIED
        assert clean(queue, "deep", bury_after=3) == []

    @each_kind
    @pytest.mark.parametrize("count", [9, 40])
    def test_buried_items_keep_their_order(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, kind: str, count: int
    ) -> None:
        """One by one, and forty page by page: the longest leased is kicked first."""
        ids = numbered(count)[::-1]
        foreign.abandoned(*ids)
        clean(queue, kind, bury_after=0)
        buried = raw.zrange(b"jobs:buried", 0, -1, withscores=True)
        assert [item_id for item_id, _ in buried] == ids
        assert len({at_ms for _, at_ms in buried}) == count

    def test_an_item_whose_worker_dies_again_and_again_is_buried(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        done = []
        for _ in range(4):
            raw.rpoplpush(b"jobs:queue", b"jobs:processing")
            done += [action.action for action in clean(queue, "light", bury_after=3)]
        assert done == [Repair.RETURNED] * 3 + [Repair.BURIED]
        assert raw.get(b"jobs:lease:1") == b"rwq-buried:returned 3 times"


class TestPromotion:
    def test_promotions_come_first_and_in_order(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w")
        foreign.abandoned(b"a")
        for at, item_id in enumerate((b"d2", b"d1", b"d3")):
            foreign.delayed(item_id, 5 + at)
        assert [(action.item_id, action.action) for action in clean(queue, "light")] == [
            (b"d2", Repair.PROMOTED),
            (b"d1", Repair.PROMOTED),
            (b"d3", Repair.PROMOTED),
            (b"a", Repair.RETURNED),
        ]
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"a", b"d3", b"d1", b"d2", b"w"]

    @each_kind
    def test_hundreds_of_due_items_some_without_guard_or_data(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, kind: str
    ) -> None:
        for number in range(600):
            item_id = b"%03d" % number
            foreign.delayed(item_id, 1 + number)
            if number % 5 == 0:
                raw.delete(foreign.keys.lease(item_id))
            if number % 10 == 0:
                raw.rpush(foreign.keys.main, item_id)
            if number % 5 == 1:
                raw.delete(foreign.keys.item(item_id))
        foreign.delayed(b"later", FAR_MS)
        actions = clean(queue, kind, grace_s=0)
        promoted = [a.item_id for a in actions if a.action is Repair.PROMOTED]
        guarded = [item_id for item_id in promoted if int(item_id) % 5]
        assert guarded == sorted(guarded)
        assert len(promoted) == 420
        assert sum(a.action is Repair.PRUNED for a in actions) == len(actions) - 420 == 180
        waiting = raw.lrange(b"jobs:queue", 0, -1)
        assert len(waiting) == len(set(waiting)) == 480
        assert raw.zrange(b"jobs:delayed", 0, -1) == [b"later"]
        assert len(lease_keys(raw)) == 2


class TestStaleSchedule:
    """Noted as delayed or buried, and listed all the same."""

    def test_an_item_that_is_scheduled_again_stays(
        self, interleaved: Interleaved, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.buried(b"1")
        raw.lpush(b"jobs:queue", b"1")
        interleaved.before = lambda name: name == "repair" and raw.delete(b"jobs:queue")
        before = contents(raw)
        assert clean(WorkQueue(interleaved, QUEUE, clock=clock), "deep") == []
        del before[b"jobs:queue"]
        assert contents(raw) == before


@pytest.mark.parametrize("where", ["main", "processing"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_ghost_in_a_list_and_in_buried_loses_both_entries(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys, where: str, dry_run: bool
) -> None:
    foreign.buried(b"1")
    raw.delete(keys.item(b"1"))
    raw.lpush({"main": keys.main, "processing": keys.processing}[where], b"1")
    actions = list(queue.deep_clean(dry_run=dry_run))
    assert actions == [CleanAction(b"1", Repair.DROPPED, State.GHOST, where), pruned("buried")]
    if not dry_run:
        assert raw.keys() == []
