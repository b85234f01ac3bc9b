"""A server at its `maxmemory` that evicts nothing refuses what adds anything; nothing changes."""

from collections.abc import Callable, Iterable, Iterator

import pytest
from redis import Redis

from rwq_cli.core import Due, NewItem, Outcome, State, Status, WorkQueue
from rwq_cli.core.errors import OutOfMemory
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.move import move as move_items
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.items.restore import OnConflict, restore as restore_items
from rwq_cli.core.model import Lease
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from tests.conftest import Foreign, contents
from tests.export_lines import lines_of

LATER = Due(3_600_000, from_now=True)
PROCESSING = b"jobs:processing"


@pytest.fixture
def full(raw: Redis, foreign: Foreign) -> Iterator[Redis]:
    """A full server with some items and traces of items that are gone."""
    foreign.waiting(*(b"%d" % number for number in range(100)))
    foreign.leased(b"leased")
    foreign.buried(b"buried")
    # What a restore would delete first: it needs no memory.
    foreign.lease(b"new")
    raw.lpush("jobs:queue", b"new")
    raw.zadd("jobs:delayed", {b"new": 5})
    raw.hset("jobs:returns", b"new", 1)
    raw.config_set("maxmemory", 1)
    yield raw
    raw.config_set("maxmemory", 0)


def item(item_id: bytes, place: Place | None = Place.MAIN, **more: object) -> ItemSnapshot:
    """An item to restore."""
    return ItemSnapshot(item_id, b"new", State.WAITING, place, **more)  # type: ignore[arg-type]


ADDING: dict[str, Callable[[WorkQueue], object]] = {
    "add": lambda q: list(q.add_many([NewItem(b"new", b"x")])),
    "add without a check": lambda q: list(q.add_many([NewItem(b"new", b"x")], unique=True)),
    "add unique": lambda q: list(q.add_many([NewItem(b"new", b"x")], unique=True)),
    "add twice": lambda q: list(q.add_many([NewItem(b"new", b"x"), NewItem(b"new", b"x")])),
    "add later": lambda q: list(q.add_many([NewItem(b"new", b"x", LATER)])),
    "add now and later": lambda q: list(
        q.add_many([NewItem(b"new", b"x"), NewItem(b"newer", b"x", LATER)])
    ),
    "restore a waiting item": lambda q: list(restore_items(q, lines_of([item(b"new")]))),
    "restore it with marks": lambda q: list(
        restore_items(q, lines_of([item(b"new")]), file_id=b"f")
    ),
    "restore to the front": lambda q: list(restore_items(q, lines_of([item(b"new")]), front=True)),
    "restore a leased item": lambda q: list(
        restore_items(q, lines_of([item(b"new", Place.PROCESSING, lease=Lease(b"me", 5000))]))
    ),
    "restore a delayed item": lambda q: list(
        restore_items(q, lines_of([item(b"new", Place.DELAYED, due_ms=4_000_000_000_000)]))
    ),
    "restore an orphan": lambda q: list(restore_items(q, lines_of([item(b"new", None)]))),
    "replace an item": lambda q: list(
        restore_items(q, lines_of([item(b"5")]), on_conflict=OnConflict.REPLACE)
    ),
    "restore many": lambda q: list(
        restore_items(q, lines_of([item(b"n%d" % n) for n in range(1000)]))
    ),
    "restore results": lambda q: list(
        restore_items(q, lines_of([Result(b"new", ResultStatus.COMPLETED, 5, result=b"r")]))
    ),
    "move": lambda q: list(move_items(q, [b"5"], b"other", NoJournal())),
    "move many": lambda q: list(
        move_items(q, [b"%d" % n for n in range(100)], b"other", NoJournal())
    ),
}


@pytest.mark.parametrize("name", ADDING)
def test_operations_that_add_are_refused_and_change_nothing(
    queue: WorkQueue, full: Redis, name: str
) -> None:
    before = contents(full)
    with pytest.raises(OutOfMemory) as caught:
        ADDING[name](queue)
    assert caught.value.acknowledged == 0
    assert contents(full) == before


# What adds leases or guards, also for a while only.
GUARDING: dict[str, Callable[[WorkQueue], object]] = {
    "lease": lambda q: list(q.lease_many(5)),
    "lease an item that is due": lambda q: list(lease_ids(q, [b"due"])),
    "lease by ID": lambda q: list(lease_ids(q, [b"5"])),
    "touch": lambda q: list(q.touch_many([b"leased"], for_s=5)),
    "release": lambda q: list(q.release_many([b"leased"], force=True)),
    "release to the front": lambda q: list(q.release_many([b"leased"], force=True, front=True)),
    "release later": lambda q: list(q.release_many([b"leased"], force=True, delay_s=5)),
    "release many later": lambda q: list(
        q.release_many([b"%d" % n for n in range(100)], force=True, delay_s=5)
    ),
    "release an orphan": lambda q: list(q.release_many([b"orphaned"])),
    "bury": lambda q: list(q.bury_many([b"5"])),
    "bury many": lambda q: list(q.bury_many([b"%d" % n for n in range(100)])),
    "bury with another reason": lambda q: list(q.bury_many([b"buried"], reason=b"other")),
    "kick": lambda q: list(q.kick_many([b"buried"])),
    "promote": lambda q: list(q.light_clean(grace_s=0)),
}


@pytest.mark.parametrize("name", GUARDING)
def test_operations_that_need_leases_or_guards_are_refused_and_change_nothing(
    queue: WorkQueue, raw: Redis, foreign: Foreign, name: str
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(100)))
    foreign.leased(b"leased")
    foreign.buried(b"buried")
    foreign.data(b"orphaned")
    foreign.delayed(b"due", 5)
    before = contents(raw)
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemory) as caught:
            GUARDING[name](queue)
        assert caught.value.hint == "raise its maxmemory or complete some items"
        assert contents(raw) == before
    finally:
        raw.config_set("maxmemory", 0)


@pytest.mark.parametrize("clean", ["light_clean", "deep_clean"])
@pytest.mark.parametrize("bury_after", [None, 0])
@pytest.mark.parametrize("how_many", [5, 500])
def test_a_clean_that_would_return_or_bury_is_refused_and_changes_nothing(
    queue: WorkQueue,
    raw: Redis,
    foreign: Foreign,
    clean: str,
    bury_after: int | None,
    how_many: int,
) -> None:
    foreign.abandoned(*(b"%d" % number for number in range(how_many)))
    foreign.data(*(b"o%d" % number for number in range(how_many if clean == "deep_clean" else 0)))
    before = {**contents(raw), PROCESSING: None}
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemory):
            list(getattr(queue, clean)(grace_s=0, bury_after=bury_after))
        # Its order means nothing: a call that was sent ahead may have turned a page of it round.
        assert set(raw.lrange(PROCESSING, 0, -1)) == {b"%d" % n for n in range(how_many)}
        assert {**contents(raw), PROCESSING: None} == before
    finally:
        raw.config_set("maxmemory", 0)


@pytest.mark.parametrize("how_many", [5, 200])
@pytest.mark.parametrize("verb", [remove_items, complete_items])
def test_ghosts_can_be_removed(
    queue: WorkQueue,
    raw: Redis,
    foreign: Foreign,
    verb: Callable[..., Iterable[Outcome]],
    how_many: int,
) -> None:
    ghosts = [b"g%03d" % number for number in range(how_many)]
    for ghost in ghosts:
        foreign.waiting(b"before " + ghost)
        raw.lpush("jobs:queue", ghost)
    before = contents(raw)
    raw.config_set("maxmemory", 1)
    try:
        more = (NoJournal(),) if verb is remove_items else ()
        outcomes = list(verb(queue, ghosts, *more))
    finally:
        raw.config_set("maxmemory", 0)
    assert {outcome.status for outcome in outcomes} == {Status.MISSING}
    waiting = [item_id for item_id in before[b"jobs:queue"] if item_id not in ghosts]
    assert contents(raw) == {**before, b"jobs:queue": waiting}
