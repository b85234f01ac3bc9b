"""The work queue as its users see it: one life of an item, and its names."""

from redis import Redis

from rwq_cli.core import (
    CleanAction,
    NewItem,
    Repair,
    Source,
    State,
    Status,
    WorkQueue,
)
from rwq_cli.core.inspect.listing import leases
from tests.conftest import QUEUE, Backend, FakeClock, Foreign, contents
from tests.core.test_keys import STRANGE


def test_text_is_taken_as_utf8(backend: Backend, raw: Redis) -> None:
    queue = WorkQueue(backend.connect(), "jöbs", holder="mé")
    assert queue.name == "jöbs".encode()
    assert queue.add("dätä", "ïd") is True
    item = queue.lease()
    assert item is not None
    assert (item.item_id, item.data) == ("ïd".encode(), "dätä".encode())
    assert raw.get("jöbs:lease:ïd") == "mé".encode()


def test_each_session_has_a_holder_of_its_own(backend: Backend) -> None:
    connection = backend.connect()
    holders = {WorkQueue(connection, QUEUE).holder for _ in range(3)}
    assert len(holders) == 3
    assert {len(holder) for holder in holders} == {32}


def test_an_item_is_added_leased_and_completed_under_any_name(
    backend: Backend, raw: Redis, clock: FakeClock
) -> None:
    """Beside queues of all the other names, which must stay as they are."""
    ids = STRANGE
    for name in STRANGE:
        raw.flushall()
        for other in STRANGE:
            if other != name:
                Foreign(raw, other).waiting(b"1")
                Foreign(raw, other).data(b"orphan")
        before = contents(raw)
        queue = WorkQueue(backend.connect(), name, clock=clock)

        def statuses(verb: str, queue: WorkQueue = queue) -> list[Status]:
            return [outcome.status for outcome in getattr(queue, verb)(ids)]

        added = queue.add_many(NewItem(item_id, b"data") for item_id in ids)
        assert {outcome.status for outcome in added} == {Status.ADDED}
        assert [item.item_id for item in queue.items(Source(main=True))] == ids
        assert [item.item_id for item in queue.lease_many(len(ids))] == ids
        assert statuses("touch_many") == [Status.TOUCHED] * len(ids)
        assert sorted(item.item_id for item in leases(queue)) == sorted(ids)
        assert statuses("release_many") == [Status.RELEASED] * len(ids)
        raw.delete(name + b":queue")
        actions = list(queue.deep_clean())
        assert sorted(actions, key=lambda action: action.item_id) == [
            CleanAction(item_id, Repair.RETURNED, State.ORPHANED) for item_id in sorted(ids)
        ]
        assert queue.counts(deep=True).waiting == len(ids)
        assert statuses("complete_many") == [Status.COMPLETED] * len(ids)
        assert contents(raw) == before, name
