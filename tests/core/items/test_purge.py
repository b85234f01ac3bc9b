"""A whole queue: every key of it goes, and none of anybody else's."""

from collections.abc import Sequence

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Status, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.purge import count_items, purge as purge_queue
from tests.conftest import Backend, FakeClock, Foreign, Interleaved, contents, no_call_is_long
from tests.core.inspect.test_results import keep
from tests.core.items.test_remove import Journal, many


def broken(raw: Redis, foreign: Foreign) -> list[bytes]:
    """One item in each state, and everything that is no item; returns the items."""
    foreign.waiting(b"w1", b"\xff", b"twice")
    raw.rpush("jobs:queue", b"twice", b"ghost")
    foreign.leased(b"l")
    foreign.abandoned(b"a")
    raw.lpush("jobs:processing", b"ghost2")
    foreign.delayed(b"d", 4_000_000_000_000)
    foreign.buried(b"b")
    raw.zadd("jobs:delayed", {b"ghost3": 1})
    raw.zadd("jobs:buried", {b"ghost4": 1})
    foreign.lease(b"ghost4", holder=b"rwq-buried:x", ttl_ms=None)
    foreign.data(b"o", b"u", b"h")
    foreign.lease(b"u")
    foreign.lease(b"h", ttl_ms=None)
    foreign.lease(b"stray", ttl_ms=None)
    raw.hset("jobs:returns", mapping={b"b": 1, b"ghost5": 2})
    raw.lpush("jobs:cleaning", b"a", b"ghost6")
    raw.hset(
        "jobs:result:done",
        mapping={"status": "completed", "completed_ms": 1_700_000_000_000, "result": b"\xff"},
    )
    return [b"w1", b"\xff", b"twice", b"l", b"a", b"d", b"b", b"o", b"u", b"h"]


def test_every_key_is_removed(
    queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
) -> None:
    items = broken(raw, foreign)
    journal = Journal()
    assert count_items(queue) == len(items)
    outcomes = list(purge_queue(queue, journal))
    assert sorted(outcomes, key=str) == sorted((Outcome(i, Status.REMOVED) for i in items), key=str)
    assert raw.keys() == []
    assert {p.item_id: p.data for p in journal.written} == {i: b"data of " + i for i in items}
    assert journal.results == [
        Result(b"done", ResultStatus.COMPLETED, 1_700_000_000_000, None, b"\xff", 1)
    ]
    # Items in no list are looked at twice.
    assert clock.slept_s == [1.0]


def test_queues_with_similar_names_stay(
    backend: Backend, queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    for name in (b"jobs:mail", b"jobs2", b"job"):
        other = WorkQueue(backend.connect(), name)
        for item_id in (b"1", b"2"):
            other.add(b"data", item_id)
        other.lease(for_s=1000)
    before = contents(raw)
    foreign.waiting(b"a", b"mail")
    foreign.data(b"o")
    journal = Journal()
    list(purge_queue(queue, journal))
    assert contents(raw) == before
    assert sorted(journal.ids) == [b"a", b"mail", b"o"]


def test_an_id_with_a_key_of_another_type_is_reported_once(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """In whatever structures it is besides."""
    raw.hset("jobs:item:a", "field", "value")
    raw.lpush("jobs:processing", "a")
    raw.zadd("jobs:delayed", {"a": 1, "b": 1})
    raw.zadd("jobs:buried", {"a": 1, "b": 1})
    foreign.waiting(b"b")
    raw.hset("jobs:lease:b", "field", "value")
    before = contents(raw)
    outcomes = [Outcome(b"b", Status.WRONG_TYPE), Outcome(b"a", Status.WRONG_TYPE)]
    assert list(purge_queue(queue, NoJournal(), dry_run=True)) == outcomes
    assert list(purge_queue(queue, NoJournal())) == outcomes
    assert contents(raw) == before


def test_items_added_during_a_purge_stay(interleaved: Interleaved, raw: Redis) -> None:
    """Also the upstream producer, which sets the data and then pushes."""
    ids = many(raw, 3000)
    foreign = Foreign(raw)
    added: list[bytes] = []

    def produce(_: str) -> None:
        # It begins once the purge has looked at the newest entry that waits.
        if "LINDEX" not in interleaved.calls[:-1] or len(added) > 40:
            return
        # The last one's push comes with the next call of ours.
        if added:
            raw.lpush("jobs:queue", added[-1])
        added.append(b"new%d" % len(added))
        foreign.data(added[-1])

    interleaved.before = produce
    clock = FakeClock()
    clock.during_sleep = lambda: produce("")
    journal = Journal()
    outcomes = list(purge_queue(WorkQueue(interleaved, b"jobs", clock=clock), journal))
    interleaved.before = None
    raw.lpush("jobs:queue", added[-1])
    assert {o.item_id for o in outcomes} == set(ids) == set(journal.ids)
    assert raw.lrange("jobs:queue", 0, -1) == added[::-1]
    assert raw.dbsize() == len(added) + 1
    assert len(added) > 10


def test_a_purge_beside_live_workers_saves_only_what_it_removes(
    backend: Backend, interleaved: Interleaved, raw: Redis
) -> None:
    """What they complete is not in the undo file; what they hold goes with its lease."""
    ids = many(raw, 3000)
    worker = WorkQueue(backend.connect(), b"jobs", holder=b"worker")
    completed: set[bytes] = set()

    def work(_: str) -> None:
        held = [item.item_id for item in worker.lease_many(3, for_s=60)]
        done = worker.complete_many(held[:1])
        completed.update(o.item_id for o in done if o.status is Status.COMPLETED)

    interleaved.before = work
    journal = Journal()
    list(purge_queue(WorkQueue(interleaved, b"jobs"), journal))
    assert raw.keys() == []
    assert set(journal.ids) == set(ids) - completed
    assert completed


@pytest.mark.parametrize("at", [1, 5, 9, 20])
def test_two_purges_at_once_remove_each_item_once(
    backend: Backend, interleaved: Interleaved, raw: Redis, at: int
) -> None:
    """A second one runs while the first is between two calls: each item is in one journal."""
    ids = many(raw, 3000)
    first, second = Journal(), Journal()
    calls = 0

    def other(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            list(purge_queue(WorkQueue(backend.connect(), b"jobs"), second))

    interleaved.before = other
    list(purge_queue(WorkQueue(interleaved, b"jobs"), first))
    assert raw.keys() == []
    assert sorted(first.ids + second.ids) == ids


def test_it_goes_no_further_than_the_newest_of_its_start(
    interleaved: Interleaved, raw: Redis
) -> None:
    """Workers took some in front of it, and as many were added behind."""
    ids = many(raw, 500)
    foreign = Foreign(raw)

    def others(_: str) -> None:
        if interleaved.calls[-2:-1] == ["LINDEX"]:
            for item_id in raw.rpop("jobs:queue", 100):
                raw.delete(b"jobs:item:" + item_id)
            foreign.waiting(*(b"new%d" % number for number in range(100)))

    interleaved.before = others
    journal = Journal()
    list(purge_queue(WorkQueue(interleaved, b"jobs"), journal))
    assert journal.ids == ids[100:]
    assert raw.llen("jobs:queue") == 100
    assert raw.dbsize() == 101


def test_the_list_of_a_dead_cleaner_of_01_is_removed(interleaved: Interleaved, raw: Redis) -> None:
    """However much it is, no call is long, and the key goes."""
    ids = many(raw, 1000)
    raw.lpush("jobs:cleaning", *ids, *(b"gone %d" % number for number in range(100_000)))
    with no_call_is_long(interleaved, raw, 101_000):
        outcomes = list(purge_queue(WorkQueue(interleaved, b"jobs"), Journal()))
    assert [outcome.item_id for outcome in outcomes] == ids
    assert raw.keys() == []


def test_items_in_the_cleaning_list_of_a_live_cleaner_stay(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    raw.lpush("jobs:cleaning", *(b"gone %d" % number for number in range(2500)))

    def clean(call: str) -> None:
        if call == "LTRIM" and not raw.exists("jobs:item:new"):
            foreign.data(b"new")
            raw.lpush("jobs:cleaning", b"new")

    interleaved.before = clean
    assert list(purge_queue(WorkQueue(interleaved, b"jobs"), Journal())) == []
    assert contents(raw) == {b"jobs:item:new": b"data of new", b"jobs:cleaning": [b"new"]}


@pytest.mark.parametrize(
    "inner", [b"jobs:item", b"jobs:lease:x", b"jobs:leased_by_session:x", b"jobs:result:x"]
)
def test_a_queue_among_the_keys_of_another_prevents_its_purge(
    queue: WorkQueue, raw: Redis, foreign: Foreign, inner: bytes
) -> None:
    Foreign(raw, inner).leased(b"1")
    foreign.waiting(b"a")
    before = contents(raw)
    with pytest.raises(InvalidArgument, match=f"{inner.decode()} look like items of jobs"):
        list(purge_queue(queue, Journal()))
    assert contents(raw) == before


class TestResults:
    def test_a_result_that_cannot_be_saved_stays(self, queue: WorkQueue, raw: Redis) -> None:
        class Full(Journal):
            def write_results(self, results: Sequence[Result]) -> None:
                raise OSError(f"disk full: {len(results)}")

        keep(raw, b"a", None)
        with pytest.raises(OSError, match="disk full: 1"):
            list(purge_queue(queue, Full()))
        assert raw.exists("jobs:result:a") == 1

    def test_the_result_of_an_item_added_meanwhile_stays(
        self, interleaved: Interleaved, raw: Redis
    ) -> None:
        """Its result goes when that item is completed; here it is not touched."""
        keep(raw, b"a", None)

        def add(call: str) -> None:
            if call == "delete_results":
                Foreign(raw).waiting(b"a")

        interleaved.before = add
        list(purge_queue(WorkQueue(interleaved, b"jobs", clock=FakeClock()), Journal()))
        assert sorted(raw.keys()) == [b"jobs:item:a", b"jobs:queue", b"jobs:result:a"]
