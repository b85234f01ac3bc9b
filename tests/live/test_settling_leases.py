"""What we push beside cleaners that walk a snapshot of the lists is in the queue once."""

import time
from collections import Counter
from collections.abc import Callable

import pytest
import redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.inspect.listing import leases
from rwq_cli.core.items.complete import remove as remove_items
from rwq_cli.core.items.move import move as move_items, move_back
from rwq_cli.core.items.restore import restore as restore_items
from rwq_cli.core.items.schedule import promote as promote_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.snapshots import ItemSnapshot, Place
from tests.conftest import Backend, FakeClock, Foreign, lasts
from tests.live.foreign import Books, Upstream
from tests.support import lines_of

IDS = [b"id-%d" % number for number in range(200)]

Act = Callable[[WorkQueue], object]


def _buried(foreign: Foreign) -> None:
    for item_id in IDS:
        foreign.buried(item_id)


def _due(foreign: Foreign) -> None:
    for item_id in IDS:
        foreign.delayed(item_id, 1000)


def _remove_and_restore(queue: WorkQueue) -> None:
    list(remove_items(queue, IDS, None))
    items = [ItemSnapshot(i, b"data of " + i, State.WAITING, Place.MAIN) for i in IDS]
    list(restore_items(queue, lines_of(items)))


def _move_there_and_back(queue: WorkQueue) -> None:
    list(move_items(queue, IDS, b"other", None))
    items = [ItemSnapshot(i, b"data of " + i, State.WAITING, Place.MAIN) for i in IDS]
    list(move_back(queue, lines_of(items), b"other"))


ARRANGED: dict[str, Callable[[Foreign], object]] = {
    "abandoned": lambda foreign: foreign.abandoned(*IDS),
    "orphaned": lambda foreign: foreign.data(*IDS),
    "ours": lambda foreign: foreign.leased(*IDS, holder=b"me"),
    "buried": _buried,
    "due": _due,
}
# What is there, what of ours pushes it, and the clean of upstream's that may push it again.
CASES: dict[str, tuple[str, Act, str]] = {
    "light clean": ("abandoned", lambda queue: list(queue.light_clean()), "light"),
    "deep clean": ("orphaned", lambda queue: list(queue.deep_clean()), "deep"),
    "release": ("ours", lambda queue: list(queue.release_many(IDS)), "light"),
    "release of abandoned items": (
        *("abandoned", lambda queue: list(queue.release_many(IDS)), "light"),
    ),
    "release of a few": ("abandoned", lambda queue: list(queue.release_many(IDS[:5])), "light"),
    "kick": ("buried", lambda queue: list(queue.kick_many(IDS)), "deep"),
    "kick of one": ("buried", lambda queue: list(queue.kick_many(IDS[:1])), "deep"),
    "restoring": ("abandoned", _remove_and_restore, "light"),
    "restoring orphans": ("orphaned", _remove_and_restore, "deep"),
    "moving there and back": ("abandoned", _move_there_and_back, "light"),
    "moving orphans there and back": ("orphaned", _move_there_and_back, "deep"),
    "promotion": ("due", lambda queue: list(promote_items(queue)), "deep"),
    "promotion by a lease": ("due", lambda queue: list(queue.lease_many(1)), "deep"),
}


each_generation = pytest.mark.parametrize("old", [True, False], ids=["0.1", "0.3"])


@pytest.mark.parametrize(("arrange", "act", "clean"), CASES.values(), ids=CASES)
@each_generation
def test_a_push_behind_a_snapshot_is_in_main_once(
    old: bool,
    queue: WorkQueue,
    raw: redis.Redis,
    keys: QueueKeys,
    foreign: Foreign,
    arrange: str,
    act: Act,
    clean: str,
) -> None:
    ARRANGED[arrange](foreign)
    cleaner = Upstream(raw, keys.name, old=old, books=Books())
    steps = cleaner.snapshot_clean(deep=clean == "deep")
    assert next(steps) == "snapshot"
    act(queue)
    for _ in steps:
        pass
    entries = Counter(raw.lrange(keys.main, 0, -1) + raw.lrange(keys.processing, 0, -1))
    assert [item_id for item_id, count in entries.items() if count > 1] == []


@pytest.mark.parametrize("name", ["light clean", "release of abandoned items"])
@each_generation
def test_a_push_during_a_cleaners_walk_is_in_main_once(
    old: bool, queue: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign, name: str
) -> None:
    arrange, act, clean = CASES[name]
    ARRANGED[arrange](foreign)
    cleaner = Upstream(raw, keys.name, old=old, books=Books())
    steps = cleaner.snapshot_clean(deep=clean == "deep")
    for _ in range(101):
        # It has just pushed its fiftieth item; between its EXISTS and its push nobody can help.
        last = next(steps)
    assert last == "push"
    act(queue)
    for _ in steps:
        pass
    assert sorted(raw.lrange(keys.main, 0, -1)) == sorted(IDS)


def test_a_settling_lease_has_no_holder(
    queue: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.abandoned(b"a")
    assert [action.action for action in queue.light_clean()] == ["returned"]
    assert (raw.get(keys.lease(b"a")) or b"").startswith(b"rwq-settling:returned ")
    assert lasts(raw, 30.001, keys.lease(b"a"))
    assert raw.get(keys.old_lease(b"a")) is None
    assert queue.state(b"a") == "waiting"
    assert list(leases(queue)) == []
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


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
@each_generation
@pytest.mark.parametrize("was_pushed", [False, True], ids=["abandoned", "pushed and abandoned"])
def test_what_another_pushed_stays_with_its_worker(
    queue: WorkQueue,
    clock: FakeClock,
    backend: Backend,
    raw: redis.Redis,
    keys: QueueKeys,
    foreign: Foreign,
    old: bool,
    was_pushed: bool,
    take: Callable[[WorkQueue], list[object]],
) -> None:
    """It is released, and a worker pops it, before the clean acts."""
    other = WorkQueue(backend.connect(), queue.name, clock=FakeClock())
    foreign.abandoned(b"a")
    if was_pushed:
        list(queue.light_clean())
        raw.rpoplpush(keys.main, keys.processing)
    books = Books(live={b"a": b"data of a"}, added=1)
    worker = Upstream(raw, keys.name, old=old, books=books).work()

    def return_and_pop() -> None:
        clock.during_sleep = None
        # The grace period takes no time here.
        time.sleep(0.002)
        assert [str(each.status) for each in other.release(b"a", force=True)] == ["released"]
        next(worker)

    clock.during_sleep = return_and_pop
    assert take(queue) == []
    assert (raw.lrange(keys.main, 0, -1), raw.lrange(keys.processing, 0, -1)) == ([], [b"a"])
    for _ in worker:
        pass
    assert (books.completed, raw.exists(keys.main, keys.processing)) == (1, 0)


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("ends", [False, True], ids=["stays", "ends between"])
def test_a_dead_workers_item_is_taken_while_settling(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign, name: str, ends: bool
) -> None:
    """Whether its settling lease ends between the two looks or not."""
    raw, lease = foreign.raw, foreign.keys.lease(b"a")
    foreign.abandoned(b"a")
    raw.set(lease, b"rwq-settling:returned 1763800000000", px=30_000)
    clock.during_sleep = lambda: ends and raw.delete(lease)
    assert len(TAKES[name](queue)) == 1


def test_a_settling_lease_outlives_a_stale_entry(
    queue: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.abandoned(b"a")
    list(queue.light_clean())
    settling = raw.get(keys.lease(b"a"))
    raw.zadd(keys.delayed, {b"a": 1})
    assert [outcome.status for batch in promote_items(queue) for outcome in batch] == ["pruned"]
    assert (raw.get(keys.lease(b"a")), raw.get(keys.old_lease(b"a"))) == (settling, None)
