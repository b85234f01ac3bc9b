"""A server at its `maxmemory` that evicts nothing refuses what adds anything; nothing changes."""

from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from rwq_cli.core import Due, NewItem, State, WorkQueue
from rwq_cli.core.errors import OutOfMemory
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.bulk import NoJournal
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.move import move
from rwq_cli.core.items.remove import remove
from rwq_cli.core.items.restore import OnConflict, restore
from rwq_cli.core.model import Lease
from rwq_cli.core.state.probe import ItemSnapshot, Place
from tests.conftest import Foreign, contents
from tests.support import lines_of, numbered

LATER = Due(3_600_000, from_now=True)
IDS = numbered(100)
GHOSTS = numbered(200, b"ghost %d")


@pytest.fixture
def full(raw: Redis, foreign: Foreign) -> Iterator[Redis]:
    """A full server with items in some states, and traces of items that are gone."""
    foreign.waiting(*IDS)
    foreign.leased(b"leased")
    foreign.buried(b"buried")
    foreign.data(b"orphaned")
    foreign.delayed(b"due", 5)
    foreign.abandoned(b"abandoned")
    raw.lpush("jobs:queue", *GHOSTS)
    # What a restore would delete first: it needs no memory.
    foreign.lease(b"new")
    raw.lpush("jobs:queue", b"new")
    raw.zadd("jobs:delayed", {b"new": 5})
    raw.hset("jobs:returns", b"new", 1)
    raw.config_set("maxmemory", 1)
    yield raw
    raw.config_set("maxmemory", 0)


def _restore(*entries: ItemSnapshot | Result, **options: object) -> Callable[[WorkQueue], object]:
    return lambda queue: list(restore(queue, lines_of(entries), **options))  # type: ignore[arg-type]


def _item(
    item_id: bytes = b"new", place: Place | None = Place.MAIN, lease: Lease | None = None
) -> ItemSnapshot:
    return ItemSnapshot(item_id, b"new", State.WAITING, place, lease)


REFUSED: dict[str, Callable[[WorkQueue], object]] = {
    "add": lambda q: list(q.add_many([NewItem(b"new", b"x"), NewItem(b"new", b"x")])),
    "add unique": lambda q: list(q.add_many([NewItem(b"new", b"x")], unique=True)),
    "add now and later": lambda q: list(
        q.add_many([NewItem(b"new", b"x"), NewItem(b"newer", b"x", LATER)])
    ),
    "restore": _restore(_item()),
    "restore with marks": _restore(_item(), file_id=b"f"),
    "restore to the front": _restore(_item(), front=True),
    "restore a leased item": _restore(_item(place=Place.PROCESSING, lease=Lease(b"me", 5000))),
    "restore a delayed item": _restore(_item(place=Place.DELAYED)._replace(due_ms=4e12)),
    "restore an orphan": _restore(_item(place=None)),
    "restore and replace": _restore(_item(IDS[5]), on_conflict=OnConflict.REPLACE),
    "restore a result": _restore(Result(b"new", ResultStatus.COMPLETED, 5, result=b"r")),
    "move": lambda q: list(move(q, IDS[:1], b"other", NoJournal())),
    "move many": lambda q: list(move(q, IDS, b"other", NoJournal())),
    "lease": lambda q: list(q.lease_many(5)),
    "lease an item that is due": lambda q: list(lease_ids(q, [b"due"])),
    "lease by ID": lambda q: list(lease_ids(q, IDS[:1])),
    "touch": lambda q: list(q.touch_many([b"leased"], for_s=5)),
    "release": lambda q: list(q.release_many([b"leased"], force=True)),
    "release to the front": lambda q: list(q.release_many([b"leased"], force=True, front=True)),
    "release later": lambda q: list(q.release_many([b"leased"], force=True, delay_s=5)),
    "release many later": lambda q: list(q.release_many(IDS, force=True, delay_s=5)),
    "release an orphan": lambda q: list(q.release_many([b"orphaned"])),
    "bury": lambda q: list(q.bury_many(IDS[:1])),
    "bury many": lambda q: list(q.bury_many(IDS)),
    "bury with another reason": lambda q: list(q.bury_many([b"buried"], reason=b"other")),
    "kick": lambda q: list(q.kick_many([b"buried"])),
    "light clean": lambda q: list(q.light_clean(grace_s=0)),
    "light clean that buries": lambda q: list(q.light_clean(grace_s=0, bury_after=0)),
    "deep clean": lambda q: list(q.deep_clean(grace_s=0)),
}


def test_what_needs_memory_is_refused_and_changes_nothing(queue: WorkQueue, full: Redis) -> None:
    before = contents(full)
    for name, act in REFUSED.items():
        with pytest.raises(OutOfMemory) as caught:
            act(queue)
        assert not caught.value.acknowledged, name
        assert caught.value.hint == "raise its maxmemory or complete some items"
        assert contents(full) == before, name


@pytest.mark.parametrize("verb", ["remove", "complete"])
def test_what_frees_memory_goes_on(queue: WorkQueue, full: Redis, verb: str) -> None:
    before = contents(full)
    ids = [*IDS[:50], *GHOSTS]
    outcomes = remove(queue, ids, NoJournal()) if verb == "remove" else queue.complete_many(ids)
    assert sorted(outcome.item_id for outcome in outcomes) == sorted(ids)
    for item_id in IDS[:50]:
        del before[b"jobs:item:" + item_id]
    before[b"jobs:queue"] = [i for i in before[b"jobs:queue"] if i not in ids]
    assert contents(full) == before
