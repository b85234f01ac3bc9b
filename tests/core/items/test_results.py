"""Results of items: asked for, waited for, restored and deleted."""

from math import inf

import pytest
from redis import Redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.complete import complete
from rwq_cli.core.items.restore import OnConflict, restore
from rwq_cli.core.items.results import ResultLookup, ResultOptions, ResultTally, delete_results
from tests.conftest import FakeClock, Foreign, contents, lasts
from tests.core.inspect.test_results import WHEN, a_result, all_of, keep
from tests.support import lines_of


def test_a_result_is_read_beside_an_item_that_was_added_again(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    keep(raw, b"\xff", None, status=b"rejected", result=b"\x00", holder=b"\xfe")
    foreign.waiting(b"\xff")
    before = contents(raw)
    lookup = queue.result(b"\xff")
    assert lookup.result == Result(
        b"\xff", ResultStatus.REJECTED, 1_700_000_000_000, b"\xfe", b"\x00", 1, None
    )
    assert lookup.state is State.WAITING
    assert contents(raw) == before
    raw.lpush("jobs:result:a", "x")
    with pytest.raises(WrongType, match="jobs:result:a has the wrong type"):
        queue.result(b"a")


class TestWait:
    def test_until_it_is_completed(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
    ) -> None:
        """The result of an earlier item is not what is waited for."""
        keep(raw, b"a", result=b"old")
        foreign.leased(b"a")

        def act() -> None:
            if clock.now_s > 5:
                list(complete(queue, [b"a"], result_options=ResultOptions(b"new")))

        clock.during_sleep = act
        lookup = queue.result(b"a", wait=True, timeout_s=inf)
        assert lookup.result is not None
        assert (lookup.state, lookup.result.result, lookup.timed_out) == (State.GONE, b"new", False)
        assert 5 < clock.now_s < 7

    def test_waiting_ends_at_the_timeout(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
    ) -> None:
        keep(raw, b"a")
        foreign.leased(b"a")
        lookup = queue.result(b"a", wait=True, timeout_s=3)
        assert lookup == ResultLookup(b"jobs", b"a", State.LEASED, None, timed_out=True)
        assert clock.now_s == pytest.approx(3)


def put(
    queue: WorkQueue, *results: Result, replaces: bool = False, dry_run: bool = False
) -> ResultTally:
    tally = ResultTally()
    on_conflict = OnConflict.REPLACE if replaces else OnConflict.FAIL
    outcomes = restore(
        queue, lines_of(results), on_conflict=on_conflict, results=tally, dry_run=dry_run
    )
    assert list(outcomes) == []
    return tally


def test_read_results_are_restored_unchanged(queue: WorkQueue, raw: Redis) -> None:
    keep(raw, b"\xff", None, result=b"\x00", holder=b"", status=b"rejected")
    keep(raw, b"none given", None)
    keep(raw, b"empty", 60_000, result=b"")
    before, results = contents(raw), all_of(queue)
    raw.flushall()
    assert put(queue, *results) == ResultTally(restored=3)
    assert contents(raw) == before
    assert lasts(raw, 60, "jobs:result:empty")
    assert put(queue, *results) == ResultTally(already_there=3)
    assert contents(raw) == before


@pytest.mark.parametrize("replaces", [False, True])
def test_existing_results_and_foreign_keys_are_kept_or_replaced(
    queue: WorkQueue, raw: Redis, replaces: bool
) -> None:
    keep(raw, b"a", result=b"old", holder=b"old")
    raw.set("jobs:result:string", "x")
    raw.hset("jobs:result:hash", "status", "1")
    before = contents(raw)
    given = [a_result(b"a"), a_result(b"b"), a_result(b"b", b"2")]
    given += [a_result(b"string"), a_result(b"hash")]
    for dry_run in (True, False):
        assert contents(raw) == before
        done = put(queue, *given, replaces=replaces, dry_run=dry_run)
        assert done == (ResultTally(3, 0, 2) if replaces else ResultTally(1, 2, 2))
    if replaces:
        assert set(raw.hgetall("jobs:result:a")) == {b"status", b"completed_ms", b"result"}
        assert raw.pttl("jobs:result:a") == -1
    else:
        assert contents(raw).items() >= before.items()
    assert raw.hget("jobs:result:b", "result") == (b"2" if replaces else b"r")
    assert raw.get("jobs:result:string") == b"x"
    assert raw.hgetall("jobs:result:hash") == {b"status": b"1"}


def test_only_results_that_are_as_they_were_read_are_deleted(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    for item_id in (b"same", b"later", b"added again"):
        keep(raw, item_id, None)
    raw.set("jobs:result:string", "x")
    results = [*all_of(queue), a_result(b"string"), a_result(b"gone")]
    raw.hset("jobs:result:later", "completed_ms", WHEN + 1)
    foreign.data(b"added again")
    delete_results(queue, results)
    left = [b"jobs:result:added again", b"jobs:result:later", b"jobs:result:string"]
    assert sorted(raw.keys("jobs:result:*")) == left
