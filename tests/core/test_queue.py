"""The work queue as its users see it: one life of an item, its names, and lost scripts."""

import pytest
from redis import Redis

from rwq_cli.core import (
    CleanAction,
    NewItem,
    Outcome,
    Repair,
    Source,
    State,
    Status,
    WorkQueue,
)
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


@pytest.mark.parametrize("name", STRANGE)
def test_an_item_is_added_leased_and_completed_under_any_name(
    backend: Backend, raw: Redis, clock: FakeClock, name: bytes
) -> None:
    """Beside queues of all the other names, which must stay as they are."""
    for other in STRANGE:
        if other != name:
            Foreign(raw, other).waiting(b"1")
            Foreign(raw, other).data(b"orphan")
    before = contents(raw)
    queue = WorkQueue(backend.connect(), name, clock=clock)
    ids = STRANGE
    added = queue.add_many(NewItem(item_id, b"data") for item_id in ids)
    assert {outcome.status for outcome in added} == {Status.ADDED}
    assert [item.item_id for item in queue.items(Source(main=True))] == ids
    assert [item.item_id for item in queue.lease_many(len(ids))] == ids
    assert [outcome.status for outcome in queue.touch_many(ids)] == [Status.TOUCHED] * len(ids)
    assert sorted(item.item_id for item in queue.leases()) == sorted(ids)
    assert [outcome.status for outcome in queue.release_many(ids)] == [Status.RELEASED] * len(ids)
    raw.delete(name + b":queue")
    actions = list(queue.deep_clean())
    assert sorted(actions, key=lambda action: action.item_id) == [
        CleanAction(item_id, Repair.RETURNED, State.ORPHANED) for item_id in sorted(ids)
    ]
    assert queue.counts(deep=True).waiting == len(ids)
    assert [outcome.status for outcome in queue.complete_many(ids)] == [Status.COMPLETED] * len(ids)
    assert contents(raw) == before


def test_the_server_forgets_all_scripts_between_two_calls(
    queue: WorkQueue, raw: Redis, clock: FakeClock
) -> None:
    """A restart, a failover or SCRIPT FLUSH; also in the middle of a stream or a clean."""
    added = queue.add_many(NewItem(b"%d" % number, b"data") for number in range(1500))
    for outcome in added:
        if outcome.item_id in (b"0", b"999"):
            raw.script_flush()
    assert raw.llen(b"jobs:queue") == 1500
    raw.script_flush()
    assert len(list(queue.lease_many(3))) == 3
    raw.script_flush()
    assert list(queue.touch_many([b"0"])) == [Outcome(b"0", Status.TOUCHED)]
    raw.script_flush()
    assert list(queue.release_many([b"0"])) == [Outcome(b"0", Status.RELEASED)]
    raw.script_flush()
    raw.delete(b"jobs:lease:1", b"jobs:leased_by_session:1")
    Foreign(raw).data(b"orphan")
    clock.during_sleep = raw.script_flush
    assert {action.item_id for action in queue.deep_clean()} == {b"1", b"orphan"}
    raw.script_flush()
    assert queue.counts().leased == 1
    assert list(queue.complete_many([b"2"])) == [Outcome(b"2", Status.COMPLETED)]
    assert not any(key.startswith(b"jobs:lease") for key in contents(raw))
