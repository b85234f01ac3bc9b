"""Results of items: kept, read, asked for, waited for, restored and deleted."""

from collections import Counter
from functools import partial
from math import inf
from time import time

import pytest
from redis import Redis

from rwq_cli.core import State, Status, WorkQueue
from rwq_cli.core.batches import BUDGET
from rwq_cli.core.errors import PermissionDenied, WrongType
from rwq_cli.core.inspect.results import Result, ResultStatus, all_results, read_result_keys
from rwq_cli.core.items.complete import ResultOptions, complete
from rwq_cli.core.items.restore import OnConflict, restore
from rwq_cli.core.items.results import ResultLookup
from tests.conftest import HOLDER, QUEUE, AsUser, FakeClock, Foreign, contents, lasts
from tests.support import Journal, lines_of, many, numbered


def test_a_result_is_read_beside_its_reused_id(
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
) -> Counter[Status]:
    tally: Counter[Status] = Counter()
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
    assert put(queue, *results) == {Status.IMPORTED: 3}
    assert contents(raw) == before
    assert lasts(raw, 60, "jobs:result:empty")
    assert put(queue, *results) == {Status.ALREADY_THERE: 3}
    assert contents(raw) == before


@pytest.mark.parametrize("replaces", [False, True])
def test_existing_results_are_kept_or_replaced(
    queue: WorkQueue, raw: Redis, replaces: bool
) -> None:
    keep(raw, b"a", result=b"old", holder=b"old")
    raw.set("jobs:result:string", "x")
    raw.hset("jobs:result:hash", "status", "1")
    before = contents(raw)
    results = [a_result(b"a"), a_result(b"b"), a_result(b"b", b"2")]
    results += [a_result(b"string"), a_result(b"hash")]
    run = partial(put, queue, *results, replaces=replaces)
    others = Status.REPLACED if replaces else Status.ALREADY_THERE
    # A dry run does not know of the first of two.
    assert run(dry_run=True) == {Status.IMPORTED: 2, others: 1, Status.WRONG_TYPE: 2}
    assert contents(raw) == before
    assert run(dry_run=False) == {Status.IMPORTED: 1, others: 2, Status.WRONG_TYPE: 2}
    if replaces:
        assert set(raw.hgetall("jobs:result:a")) == {b"status", b"completed_ms", b"result"}
        assert raw.pttl("jobs:result:a") == -1
    else:
        assert contents(raw).items() >= before.items()
    assert raw.hget("jobs:result:b", "result") == (b"2" if replaces else b"r")
    assert raw.get("jobs:result:string") == b"x"
    assert raw.hgetall("jobs:result:hash") == {b"status": b"1"}


def test_only_unchanged_results_are_deleted(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    for item_id in (b"same", b"later", b"added again"):
        keep(raw, item_id, None)
    raw.set("jobs:result:string", "x")
    results = [*all_of(queue), a_result(b"string"), a_result(b"gone")]
    raw.hset("jobs:result:later", "completed_ms", WHEN + 1)
    foreign.data(b"added again")
    queue.run("delete_results", *(w for each in results for w in (each.item_id, each.completed_ms)))
    left = [b"jobs:result:added again", b"jobs:result:later", b"jobs:result:string"]
    assert sorted(raw.keys("jobs:result:*")) == left


BEGAN_MS = int(time() * 1000)
HALF_A_MINUTE = ResultOptions(b"\x00\xff", ttl_s=30)
REJECTED = ResultOptions(status=ResultStatus.REJECTED)


def kept(raw: Redis, item_id: bytes) -> dict[bytes, bytes]:
    """The fields of a result, without the time, which is the server's own."""
    fields: dict[bytes, bytes] = raw.hgetall(b"jobs:result:" + item_id)
    if fields:
        assert BEGAN_MS <= int(fields.pop(b"completed_ms")) <= time() * 1000
        assert raw.pttl(b"jobs:result:" + item_id) > 0
    return fields


def statuses(queue: WorkQueue, *ids: bytes, **options: object) -> list[Status]:
    return [outcome.status for outcome in complete(queue, ids, **options)]  # type: ignore[arg-type]


def test_a_result_of_what_this_call_completes(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.leased(b"mine", holder=HOLDER)
    foreign.leased(b"theirs")
    # In the way of nothing that is completed.
    raw.lpush("jobs:result:gone", "x")
    assert statuses(
        queue, b"mine", b"theirs", b"gone", owner=HOLDER, result_options=HALF_A_MINUTE
    ) == [Status.COMPLETED, Status.NOT_OWNER, Status.MISSING]
    assert sorted(raw.keys("jobs:result:*")) == [b"jobs:result:gone", b"jobs:result:mine"]
    assert lasts(raw, 30, "jobs:result:mine")
    assert kept(raw, b"mine") == {
        b"status": b"completed",
        b"result": b"\x00\xff",
        b"holder": HOLDER,
    }


@pytest.mark.parametrize("place", ["queue", "processing"])
@pytest.mark.parametrize("size", [3, 30_000, 200_000])
def test_results_of_many_items_are_kept(
    queue: WorkQueue, raw: Redis, foreign: Foreign, place: str, size: int
) -> None:
    """By pages, by stretches, and one by one where they are large."""
    ids = many(raw, 300 if size < 100_000 else 60, place)
    raw.mset({b"jobs:lease:" + item_id: b"them" for item_id in ids})
    raw.hset("jobs:result:0007", mapping={"status": "rejected", "completed_ms": 5, "holder": "x"})
    options = ResultOptions(b"x" * size)
    foreign.waiting(*numbered(700, b"other %d"))
    assert {*statuses(queue, *ids, result_options=options)} == {Status.COMPLETED}
    wanted = {b"status": b"completed", b"result": b"x" * size, b"holder": b"them"}
    assert [item_id for item_id in ids if kept(raw, item_id) != wanted] == []
    assert raw.llen("jobs:queue") == 700


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(
    "fields", [{"x": "y"}, {"status": "completed"}, {"status": "new", "completed_ms": "5"}]
)
def test_a_hash_that_is_not_a_result(
    queue: WorkQueue, raw: Redis, count: int, fields: dict[str, str]
) -> None:
    """It may be the counts of a queue with such a name."""
    ids = many(raw, count)
    raw.hset(b"jobs:result:" + ids[-1], mapping=fields)  # type: ignore[arg-type]
    ends = {**dict.fromkeys(ids, Status.COMPLETED), ids[-1]: Status.WRONG_TYPE}
    run = partial(complete, queue, ids, result_options=HALF_A_MINUTE)
    assert {outcome.item_id: outcome.status for outcome in run(dry_run=True)} == ends
    assert {outcome.item_id: outcome.status for outcome in run()} == ends
    assert statuses(queue, ids[-1]) == [Status.COMPLETED]
    assert len(raw.hgetall(b"jobs:result:" + ids[-1])) == len(fields)


# All keys of a queue but those of results.
_WITHOUT_RESULTS = [
    *("jobs:queue", "jobs:processing", "jobs:cleaning", "jobs:delayed", "jobs:buried"),
    *("jobs:returns", "jobs:item:*", "jobs:lease:*", "jobs:leased_by_session:*"),
]


@pytest.mark.parametrize("count", [1, 100])
def test_a_user_who_may_not_touch_results(as_user: AsUser, raw: Redis, count: int) -> None:
    """What is asked for without them goes as if there were none."""
    queue = WorkQueue(as_user("+@all", keys=_WITHOUT_RESULTS), QUEUE)
    ids = many(raw, count)
    raw.hset(b"jobs:result:" + ids[0], mapping={"status": "completed", "completed_ms": 5})
    before = contents(raw)
    if raw.eval("return redis.acl_check_cmd and 1 or 0", 0):
        with pytest.raises(PermissionDenied) as caught:
            statuses(queue, *ids, result_options=HALF_A_MINUTE)
        assert "run the 'exists' command on jobs:result:*" in caught.value.message
        assert contents(raw) == before
    assert statuses(queue, *ids) == [Status.COMPLETED] * count
    assert raw.keys() == [b"jobs:result:" + ids[0]]


WHEN = 1_700_000_000_000


def keep(raw: Redis, item_id: bytes, ttl_ms: int | None = 60_000, **fields: bytes | int) -> None:
    """A result as ours leave it."""
    key = b"jobs:result:" + item_id
    raw.hset(key, mapping={"status": "completed", "completed_ms": WHEN, **fields})
    if ttl_ms is not None:
        raw.pexpire(key, ttl_ms)


def a_result(item_id: bytes, result: bytes | None = b"r", ttl_ms: int | None = None) -> Result:
    """A result of an item that nobody held."""
    size = None if result is None else len(result)
    return Result(item_id, ResultStatus.COMPLETED, WHEN, None, result, size, ttl_ms)


def all_of(queue: WorkQueue) -> list[Result]:
    """Every result, in the order of the IDs."""
    batches = all_results(queue)
    return sorted((found for batch in batches for found in batch), key=lambda r: r.item_id)


def test_each_result_is_read_once_and_whole(queue: WorkQueue, raw: Redis) -> None:
    keep(raw, b"\xff", None, result=b"\x00", holder=b"\xfe", status=b"rejected")
    keep(raw, b"none given", None)
    for number in range(1500):
        keep(raw, b"%04d" % number, None, result=b"%d" % number)
    raw.set("jobs:result:string", "x")
    raw.hset("jobs:result:foreign", "code", "0")
    for name in (b"jobs:x", b"jobs2"):
        Foreign(raw, name).waiting(b"1")
        raw.hset(name + b":result:2", mapping={"status": "completed", "completed_ms": WHEN})
    before = contents(raw)
    found = all_of(queue)
    assert found[:1500] == [a_result(b"%04d" % n, b"%d" % n) for n in range(1500)]
    assert found[1500:] == [
        a_result(b"none given", None),
        Result(b"\xff", ResultStatus.REJECTED, WHEN, b"\xfe", b"\x00", 1),
    ]
    assert queue.counts(deep=True).results == 1502
    assert contents(raw) == before


def test_many_results_are_replaced(queue: WorkQueue, raw: Redis) -> None:
    ids = numbered(1000)
    for item_id in ids:
        keep(raw, item_id, result=b"old")
    journal = Journal()
    lines = lines_of(a_result(item_id, b"new") for item_id in ids)
    tally: Counter[Status] = Counter()
    replace = OnConflict.REPLACE
    assert not list(restore(queue, lines, on_conflict=replace, journal=journal, results=tally))
    assert tally == {Status.REPLACED: 1000}
    assert [result.item_id for result in journal.results] == ids
    assert {raw.hget(b"jobs:result:" + item_id, "result") for item_id in ids} == {b"new"}


def test_results_are_read_in_batches_of_bytes(queue: WorkQueue, raw: Redis) -> None:
    ids = numbered(6)
    for item_id in ids:
        keep(raw, item_id, None, result=bytes(BUDGET.bytes // 2))
    assert [len(batch) for batch in read_result_keys(queue, ids, data=True)] == [2, 2, 2]
    assert [len(batch) for batch in read_result_keys(queue, ids, data=False)] == [6]
