"""The core on fakeredis: what somebody who uses it may do in unit tests without a server."""

import fakeredis
import pytest

from rwq_cli.core import (
    Connection,
    NewItem,
    Outcome,
    Repair,
    Source,
    Status,
    WorkQueue,
)
from rwq_cli.core.items.export import export as export_items
from rwq_cli.core.items.set_data import edit_items, read_item
from tests.conftest import FakeClock, Foreign, contents


@pytest.fixture
def fake() -> fakeredis.FakeRedis:
    return fakeredis.FakeRedis(server=fakeredis.FakeServer())


@pytest.fixture
def queue(fake: fakeredis.FakeRedis) -> WorkQueue:
    return WorkQueue(Connection(fake, "a fake server"), "jobs", clock=FakeClock())


@pytest.fixture
def foreign(fake: fakeredis.FakeRedis) -> Foreign:
    return Foreign(fake)


def test_an_item_is_added_leased_and_completed(queue: WorkQueue, fake: fakeredis.FakeRedis) -> None:
    assert queue.add("data", "1")
    assert not queue.add("other data", "1")
    item = queue.lease()
    assert item is not None
    assert (item.item_id, item.data) == (b"1", b"data")
    assert queue.lease() is None
    assert list(queue.touch_many([b"1"], for_s=60)) == [Outcome(b"1", Status.TOUCHED)]
    assert list(queue.complete_many([b"1"])) == [Outcome(b"1", Status.COMPLETED)]
    assert contents(fake) == {}


def test_items_are_delayed_buried_and_returned(queue: WorkQueue) -> None:
    list(queue.add_many(NewItem(item_id, b"data") for item_id in (b"a", b"b", b"c")))
    assert queue.add("data", "later", delay_s=3600)
    assert list(queue.bury_many([b"a"], reason=b"broken")) == [Outcome(b"a", Status.BURIED)]
    counts = queue.counts(deep=True)
    assert (counts.waiting, counts.delayed, counts.buried) == (2, 1, 1)
    assert [i.item_id for i in queue.items(Source(main=True))] == [b"b", b"c"]
    assert list(queue.kick_many([b"a"])) == [Outcome(b"a", Status.KICKED)]
    leased = [item.item_id for item in queue.lease_many(4)]
    assert leased == [b"b", b"c", b"a"]
    assert {o.status for o in queue.release_many(leased)} == {Status.RELEASED}


def test_cleans_return_what_dead_workers_left(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.abandoned(b"a")
    foreign.data(b"b")
    assert [(done.item_id, done.action) for done in queue.light_clean()] == [
        (b"a", Repair.RETURNED)
    ]
    assert [(done.item_id, done.action) for done in queue.deep_clean()] == [(b"b", Repair.RETURNED)]
    assert [item.item_id for item in queue.lease_many(2)] == [b"a", b"b"]


def test_a_queue_is_exported_and_purged(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    foreign.leased(b"c")
    snapshots = [snapshot for batch in export_items(queue).batches() for snapshot in batch]
    assert sorted(snapshot.item_id for snapshot in snapshots) == [b"a", b"b", b"c"]


def test_the_data_of_an_item_are_replaced(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.leased(b"a")
    item = read_item(queue, "a")
    assert item is not None
    assert [o.status for o in edit_items(queue, [(item, b"new")])] == [Status.SET]
    assert [o.status for o in edit_items(queue, [(item, b"newer")])] == [Status.CHANGED]
    assert foreign.raw.get("jobs:item:a") == b"new"
    assert read_item(queue, "gone") is None
