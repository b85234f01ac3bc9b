"""What we push beside cleaners that walk a snapshot of the lists is in the queue once."""

import time
from collections import Counter
from collections.abc import Callable
from time import sleep

import pytest
import redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.move import move as move_items, move_back
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.items.restore import restore as restore_items
from rwq_cli.core.items.schedule import promote as promote_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from tests.conftest import Backend, FakeClock, Foreign, lasts
from tests.live.foreign import Books, Upstream
from tests.live.snapshot_cleaner import SnapshotCleaner
from tests.support import lines_of

IDS = [b"id-%d" % number for number in range(200)]

Act = Callable[[WorkQueue], object]


def _abandoned(foreign: Foreign) -> None:
    foreign.abandoned(*IDS)


def _orphaned(foreign: Foreign) -> None:
    foreign.data(*IDS)


def _own_leases(foreign: Foreign) -> None:
    foreign.abandoned(*IDS)
    foreign.lease(*IDS, holder=b"me")


def _buried(foreign: Foreign) -> None:
    for item_id in IDS:
        foreign.buried(item_id)


def _due(foreign: Foreign) -> None:
    for item_id in IDS:
        foreign.delayed(item_id, 1000)


def _remove_and_restore(queue: WorkQueue) -> None:
    list(remove_items(queue, IDS, NoJournal()))
    items = [ItemSnapshot(i, b"data of " + i, State.WAITING, Place.MAIN) for i in IDS]
    list(restore_items(queue, lines_of(items)))


def _move_there_and_back(queue: WorkQueue) -> None:
    list(move_items(queue, IDS, b"other", NoJournal()))
    items = [ItemSnapshot(i, b"data of " + i, State.WAITING, Place.MAIN) for i in IDS]
    list(move_back(queue, lambda: lines_of(items), b"other"))


# What is there, what of ours pushes it, and the clean of upstream's that may push it again.
CASES: dict[str, tuple[Callable[[Foreign], None], Act, str]] = {
    "light clean": (_abandoned, lambda queue: list(queue.light_clean()), "light"),
    "deep clean": (_orphaned, lambda queue: list(queue.deep_clean()), "deep"),
    "release": (_own_leases, lambda queue: list(queue.release_many(IDS)), "light"),
    "release of abandoned items": (
        _abandoned,
        lambda queue: list(queue.release_many(IDS)),
        "light",
    ),
    "release of a few": (_abandoned, lambda queue: list(queue.release_many(IDS[:5])), "light"),
    "kick": (_buried, lambda queue: list(queue.kick_many(IDS)), "deep"),
    "kick of one": (_buried, lambda queue: list(queue.kick_many(IDS[:1])), "deep"),
    "restoring": (_abandoned, _remove_and_restore, "light"),
    "restoring orphans": (_orphaned, _remove_and_restore, "deep"),
    "moving there and back": (_abandoned, _move_there_and_back, "light"),
    "moving orphans there and back": (_orphaned, _move_there_and_back, "deep"),
    "promotion": (_due, lambda queue: list(promote_items(queue)), "deep"),
    "promotion by a lease": (_due, lambda queue: list(queue.lease_many(1)), "deep"),
}


@pytest.fixture
def cleaner(request: pytest.FixtureRequest, raw: redis.Redis, keys: QueueKeys) -> SnapshotCleaner:
    return SnapshotCleaner(raw, keys, old=request.param == "0.1")


@pytest.mark.parametrize("cleaner", ["0.1", "0.3"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_an_item_that_we_push_behind_a_cleaners_snapshot_is_in_main_once(
    name: str,
    cleaner: SnapshotCleaner,
    queue: WorkQueue,
    raw: redis.Redis,
    keys: QueueKeys,
    foreign: Foreign,
) -> None:
    arrange, act, clean = CASES[name]
    arrange(foreign)
    steps = getattr(cleaner, clean)()
    assert next(steps) == "snapshot"
    act(queue)
    for _ in steps:
        pass
    entries = Counter(raw.lrange(keys.main, 0, -1) + raw.lrange(keys.processing, 0, -1))
    assert [item_id for item_id, count in entries.items() if count > 1] == []


@pytest.mark.parametrize("name", ["light clean", "release of abandoned items"])
@pytest.mark.parametrize("cleaner", ["0.1", "0.3"], indirect=True)
def test_an_item_that_we_push_in_the_middle_of_a_cleaners_walk_is_in_main_once(
    name: str,
    cleaner: SnapshotCleaner,
    queue: WorkQueue,
    raw: redis.Redis,
    keys: QueueKeys,
    foreign: Foreign,
) -> None:
    arrange, act, clean = CASES[name]
    arrange(foreign)
    steps = getattr(cleaner, clean)()
    for _ in range(101):
        # It has just pushed its fiftieth item; between its EXISTS and its push nobody can help.
        last = next(steps)
    assert last == "push"
    act(queue)
    for _ in steps:
        pass
    entries = Counter(raw.lrange(keys.main, 0, -1))
    assert sorted(entries) == sorted(IDS)
    assert set(entries.values()) == {1}


def test_a_settling_lease_has_no_holder(
    queue: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.abandoned(b"a")
    assert [action.action for action in queue.light_clean()] == ["returned"]
    for key in (keys.lease(b"a"), keys.old_lease(b"a")):
        assert (raw.get(key) or b"").startswith(b"rwq-settling:returned ")
        assert lasts(raw, 30.001, key)
    assert queue.state(b"a") == "waiting"
    assert list(queue.leases()) == []
    assert [outcome.status for outcome in queue.touch_many([b"a"])] == ["not-leased"]
    # A worker that pops it and dies before its lease leaves it abandoned, not leased.
    raw.rpoplpush(keys.main, keys.processing)
    assert queue.state(b"a") == "abandoned"
    assert [action.action for action in queue.light_clean()] == ["returned"]
    # A lease takes its place, and completing deletes it.
    item = queue.lease()
    assert item is not None
    assert raw.get(keys.lease(b"a")) == raw.get(keys.old_lease(b"a")) == queue.holder
    assert [outcome.status for outcome in queue.complete_many([b"a"])] == ["completed"]
    assert raw.keys() == [keys.returns] or raw.keys() == []


def _fix_all(queue: WorkQueue) -> list[object]:
    return [finding.code for finding in queue.diagnose(fix=True).findings if finding.fixed]


# What takes an abandoned item from its worker after two looks.
TAKES: dict[str, Callable[[WorkQueue], list[object]]] = {
    "light clean": lambda queue: list(queue.light_clean()),
    "deep clean": lambda queue: list(queue.deep_clean()),
    "doctor": _fix_all,
    "release": lambda queue: [o for o in queue.release_many([b"a"]) if o.status == "released"],
    "bury": lambda queue: [o for o in queue.bury_many([b"a"]) if o.status == "buried"],
}


@pytest.mark.parametrize("was_pushed", [False, True], ids=["abandoned", "pushed and abandoned"])
@pytest.mark.parametrize("old", [True, False], ids=["0.1", "0.3"])
@pytest.mark.parametrize("name", TAKES)
def test_what_another_pushed_between_two_looks_stays_with_the_worker_that_popped_it(
    queue: WorkQueue,
    clock: FakeClock,
    backend: Backend,
    raw: redis.Redis,
    keys: QueueKeys,
    foreign: Foreign,
    name: str,
    old: bool,
    was_pushed: bool,
) -> None:
    """It is released, and a worker pops it, before the clean acts."""
    foreign.abandoned(b"a")
    if was_pushed:
        list(queue.light_clean())
        raw.rpoplpush(keys.main, keys.processing)
    books = Books(live={b"a": b"data of a"}, added=1)
    worker = Upstream(raw, keys.name, old=old, books=books).work()
    other = WorkQueue(backend.connect(), queue.name, clock=FakeClock())

    def return_and_pop() -> None:
        clock.during_sleep = None
        # The grace period takes no time here.
        time.sleep(0.002)
        assert [str(each.status) for each in other.release(b"a", force=True)] == ["released"]
        next(worker)

    clock.during_sleep = return_and_pop
    assert TAKES[name](queue) == []
    assert (raw.lrange(keys.main, 0, -1), raw.lrange(keys.processing, 0, -1)) == ([], [b"a"])
    for _ in worker:
        pass
    assert (books.completed, raw.exists(keys.main, keys.processing)) == (1, 0)


@pytest.mark.parametrize("name", TAKES)
def test_a_pushed_item_whose_worker_died_is_taken_though_its_settling_lease_lasts(
    queue: WorkQueue,
    clock: FakeClock,
    raw: redis.Redis,
    keys: QueueKeys,
    foreign: Foreign,
    name: str,
) -> None:
    """Whether its settling lease ends between the two looks or not."""
    foreign.abandoned(b"a")
    list(queue.light_clean())
    for ending in ((), (keys.lease(b"a"),), (keys.lease(b"a"), keys.old_lease(b"a"))):
        raw.delete(keys.buried, keys.main, keys.processing)
        raw.lpush(keys.processing, b"a")
        for key in (keys.lease(b"a"), keys.old_lease(b"a")):
            raw.set(key, b"rwq-settling:returned 1763800000000", px=30_000)
        clock.during_sleep = lambda ending=ending: ending and raw.delete(*ending)
        assert len(TAKES[name](queue)) == 1


def test_a_settling_lease_outlives_the_stale_entry_of_a_waiting_item(
    queue: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.abandoned(b"a")
    list(queue.light_clean())
    settling = raw.get(keys.lease(b"a"))
    raw.zadd(keys.delayed, {b"a": 1})
    assert [outcome.status for batch in promote_items(queue) for outcome in batch] == ["pruned"]
    assert raw.get(keys.lease(b"a")) == raw.get(keys.old_lease(b"a")) == settling


def test_a_settling_lease_ends_by_itself_and_leaves_a_waiting_item(
    queue: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.buried(b"a")
    list(queue.kick_many([b"a"]))
    for key in (keys.lease(b"a"), keys.old_lease(b"a")):
        raw.pexpire(key, 1)
    sleep(0.01)
    assert raw.exists(keys.lease(b"a"), keys.old_lease(b"a")) == 0
    assert queue.state(b"a") == "waiting"


@pytest.mark.parametrize("old", [True, False])
def test_without_rwq_two_cleaners_push_an_item_twice(
    raw: redis.Redis, keys: QueueKeys, foreign: Foreign, old: bool
) -> None:
    foreign.abandoned(b"a")
    both = [SnapshotCleaner(raw, keys, old=old).light() for _ in range(2)]
    for steps in both:
        assert [next(steps), next(steps)] == ["snapshot", "exists"]
    for steps in both:
        assert list(steps) == ["push"]
    assert raw.lrange(keys.main, 0, -1) == [b"a", b"a"]


@pytest.mark.parametrize("old", [True, False])
def test_without_rwq_a_cleaner_pushes_a_reused_id_twice(
    raw: redis.Redis, keys: QueueKeys, foreign: Foreign, old: bool
) -> None:
    foreign.leased(b"a")
    steps = SnapshotCleaner(raw, keys, old=old).light()
    assert next(steps) == "snapshot"
    raw.delete(keys.item(b"a"), keys.processing, keys.lease(b"a"), keys.old_lease(b"a"))
    foreign.waiting(b"a")
    assert list(steps) == ["exists", "push"]
    assert raw.lrange(keys.main, 0, -1) == [b"a", b"a"]


@pytest.mark.parametrize(("old", "worker"), [(True, "new"), (False, "old")])
def test_without_rwq_a_cleaner_takes_an_item_from_a_worker_of_the_other_generation(
    raw: redis.Redis, keys: QueueKeys, foreign: Foreign, old: bool, worker: str
) -> None:
    foreign.leased(b"a", generations=worker)
    assert list(SnapshotCleaner(raw, keys, old=old).light()) == ["snapshot", "exists", "push"]
    assert raw.lrange(keys.main, 0, -1) == [b"a"]
    assert raw.llen(keys.processing) == 0


def test_without_rwq_workers_of_both_generations_complete_an_item_twice(
    raw: redis.Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    """One goes by its LREM and the other by its DEL, so each believes that it won."""
    foreign.waiting(b"a")
    books = Books(live={b"a": b"data of a"}, added=1)
    old, later = (Upstream(raw, keys.name, old=old, books=books).work() for old in (True, False))
    for _ in range(3):
        next(old)
    # Its lease ends, and a cleaner returns the item.
    raw.delete(keys.old_lease(b"a"))
    assert list(SnapshotCleaner(raw, keys, old=True).light()) == ["snapshot", "exists", "push"]
    for _ in range(4):
        next(later)
    assert books.completed == 1
    # The entry that this one removes is the other's.
    next(old)
    assert raw.llen(keys.processing) == 0
