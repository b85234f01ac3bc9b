"""A whole queue: every key of it goes, and none of anybody else's."""

from collections.abc import Sequence
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Status, WorkQueue
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.purge import count_items, purge
from tests.conftest import Backend, FakeClock, Foreign, Interleaved, contents, no_call_is_long
from tests.core.items.test_results import keep
from tests.item_cases import ITEM_CASES
from tests.support import Journal, many, numbered


def test_exactly_the_keys_of_the_queue_are_removed(
    queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
) -> None:
    for name in (b"jobs:mail", b"jobs2", b"job"):
        Foreign(raw, name).leased(b"1", ttl_ms=None)
        Foreign(raw, name).waiting(b"2")
    others = contents(raw)
    cases = {name: case for name, case in ITEM_CASES.items() if case.state != "wrong-type"}
    for name, case in cases.items():
        case.make(foreign, name.encode())
    keep(raw, b"done", None, result=b"\xff")
    items = [name.encode() for name, case in cases.items() if case.state.is_item]
    journal = Journal()
    assert count_items(queue) == len(items)
    outcomes = list(purge(queue, journal))
    assert sorted(outcomes) == sorted(Outcome(i, Status.REMOVED) for i in items)
    assert contents(raw) == others
    assert {p.item_id: p.data for p in journal.written} == {i: b"data of " + i for i in items}
    assert journal.results == [
        Result(b"done", ResultStatus.COMPLETED, 1_700_000_000_000, None, b"\xff", 1)
    ]
    # Items in no list are looked at twice.
    assert clock.slept_s == [1.0]


def test_a_key_of_another_type_is_reported_once(
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
    assert list(purge(queue, None)) == outcomes
    assert contents(raw) == before


def test_items_added_during_a_purge_stay(interleaved: Interleaved, raw: Redis) -> None:
    """Also of the upstream producer, which sets the data and then pushes."""
    ids = many(raw, 3000)
    foreign = Foreign(raw)
    added: list[bytes] = []

    def produce(_: str) -> None:
        # It begins once the purge has looked at the newest entry that waits.
        calls = interleaved.calls[:-1]
        if not any("LINDEX+TIME" in call for call in calls) or len(added) > 40:
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
    outcomes = list(purge(WorkQueue(interleaved, b"jobs", clock=clock), journal))
    interleaved.before = None
    raw.lpush("jobs:queue", added[-1])
    assert {o.item_id for o in outcomes} == set(ids) == set(journal.ids)
    assert raw.lrange("jobs:queue", 0, -1) == added[::-1]
    assert raw.dbsize() == len(added) + 1
    assert len(added) > 10


def test_a_purge_beside_workers_saves_what_it_removes(
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
    list(purge(WorkQueue(interleaved, b"jobs"), journal))
    assert raw.keys() == []
    assert set(journal.ids) == set(ids) - completed
    assert completed


def test_the_list_of_a_01_cleaner_goes_but_fresh_items(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    """However much it is, no call is long."""
    ids = many(raw, 1000)
    raw.lpush("jobs:cleaning", *ids, *numbered(30_000, b"gone %d"))
    with no_call_is_long(interleaved, raw, 31_000):
        outcomes = list(purge(WorkQueue(interleaved, b"jobs"), Journal()))
    assert [outcome.item_id for outcome in outcomes] == ids
    assert raw.keys() == []

    def clean(call: str) -> None:
        if call == "LTRIM" and not raw.exists("jobs:item:new"):
            foreign.data(b"new")
            raw.lpush("jobs:cleaning", b"new")

    raw.lpush("jobs:cleaning", *numbered(2500, b"gone %d"))
    interleaved.before = clean
    assert list(purge(WorkQueue(interleaved, b"jobs"), Journal())) == []
    assert contents(raw) == {b"jobs:item:new": b"data of new", b"jobs:cleaning": [b"new"]}


def test_an_unsaved_or_reused_result_stays(interleaved: Interleaved, raw: Redis) -> None:
    class Full(Journal):
        def write(self, entries: Sequence[Any], _by: Sequence[str] = ()) -> None:
            raise OSError(f"disk full: {len(entries)}")

    keep(raw, b"a", None)
    queue = WorkQueue(interleaved, b"jobs", clock=FakeClock())
    with pytest.raises(OSError, match="disk full: 1"):
        list(purge(queue, Full()))
    assert raw.exists("jobs:result:a") == 1
    interleaved.before = lambda call: call == "delete_results" and Foreign(raw).waiting(b"a")
    list(purge(queue, Journal()))
    assert sorted(raw.keys()) == [b"jobs:item:a", b"jobs:queue", b"jobs:result:a"]


def test_items_whose_ids_look_like_keys_are_removed(
    queue: WorkQueue, foreign: Foreign, raw: Redis
) -> None:
    foreign.waiting(b"x:item:1")
    foreign.buried(b"y:item:2")
    assert len(list(purge(queue))) == 2
    assert raw.keys() == []


def test_what_names_the_server_to_undo_stays(queue: WorkQueue, raw: Redis) -> None:
    raw.set("jobs:undo:server", "a name")
    raw.setbit("jobs:undo:a-file", 1, 1)
    list(purge(queue))
    assert raw.keys() == [b"jobs:undo:server"]
