"""A server at its `maxmemory` that evicts nothing refuses what adds anything; nothing changes."""

from collections.abc import Iterator

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import OutOfMemory
from rwq_cli.core.items.add import NewItems, add_batches
from rwq_cli.core.items.complete import remove
from tests.conftest import Foreign, contents
from tests.support import numbered
from tests.verbs import OPERATIONS, VERBS

IDS = numbered(100)
STATES = [b"leased", b"buried", b"orphaned", b"due", b"abandoned"]
GHOSTS = numbered(200, b"ghost %d")
# These free memory, or find nothing to do.
FREE = {name for row in VERBS.values() if row.frees for name in row.operations or ()}
NEED_MEMORY = OPERATIONS.keys() - FREE - {"release one's own"}
COMPARE_DATA = {n for n in NEED_MEMORY if n.startswith(("set ", "undo ", "restore"))}


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
    for key in (b"jobs:item:" + item_id for item_id in (*IDS, *STATES)):
        raw.restore(key, 0, raw.dump(key) or b"", replace=True, idletime=1000)
    raw.config_set("maxmemory", 1)
    yield raw
    raw.config_set("maxmemory", 0)


@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize("name", sorted(NEED_MEMORY))
def test_what_needs_memory_changes_nothing(
    queue: WorkQueue, full: Redis, name: str, count: int
) -> None:
    before = contents(full)
    ids = [*STATES, b"new", *IDS[:count]]
    with pytest.raises(OutOfMemory) as caught:
        OPERATIONS[name].run(queue, ids, False)
    assert not caught.value.acknowledged
    assert caught.value.hint == "raise its maxmemory, or remove what can be spared"
    assert contents(full) == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_adding_is_refused_as_is_its_dry_run(queue: WorkQueue, full: Redis, dry_run: bool) -> None:
    before, items = contents(full), NewItems([b"new"], [b"data"])
    assert list(add_batches(queue, [], dry_run=dry_run)) == []
    with pytest.raises(OutOfMemory):
        list(add_batches(queue, [items], dry_run=dry_run))
    assert contents(full) == before


# A server counts an item as used when its data is compared.
@pytest.mark.parametrize("name", sorted(NEED_MEMORY - COMPARE_DATA))
def test_items_that_were_refused_look_no_younger(queue: WorkQueue, full: Redis, name: str) -> None:
    with pytest.raises(OutOfMemory):
        OPERATIONS[name].run(queue, [*STATES, b"new", *IDS[:3]], False)
    ages_s = {i: full.object("idletime", b"jobs:item:" + i) for i in (*IDS, *STATES)}
    assert [item_id for item_id, age_s in ages_s.items() if age_s < 1000] == []


@pytest.mark.parametrize("verb", ["remove", "complete"])
def test_what_frees_memory_goes_on(queue: WorkQueue, full: Redis, verb: str) -> None:
    before = contents(full)
    ids = [*IDS[:50], *GHOSTS]
    outcomes = remove(queue, ids, None) if verb == "remove" else queue.complete_many(ids)
    assert sorted(outcome.item_id for outcome in outcomes) == sorted(ids)
    for item_id in IDS[:50]:
        del before[b"jobs:item:" + item_id]
    before[b"jobs:queue"] = [i for i in before[b"jobs:queue"] if i not in ids]
    assert contents(full) == before
