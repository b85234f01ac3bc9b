"""Outcomes that are kept: in the step that completes, of what it completes, and of nothing else."""

from time import time

import pytest
from redis import Redis

from rwq_cli.core import Connection, Status, WorkQueue
from rwq_cli.core.batches import BATCH_BYTES
from rwq_cli.core.errors import InvalidArgument, OutOfMemory, PermissionDenied
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.results import ResultOptions
from tests.conftest import (
    CALLS_AT_ONCE,
    COMMANDS_MAX,
    HOLDER,
    QUEUE,
    AsUser,
    Foreign,
    Interleaved,
    contents,
    lasts,
    work_between_calls,
)
from tests.servers import PrivateServer

BEGAN_MS = int(time() * 1000)
HALF_A_MINUTE = ResultOptions(b"\x00\xff", ttl_s=30)


def kept(raw: Redis, item_id: bytes) -> dict[bytes, bytes]:
    """The fields of a result, without the time, which is the server's own."""
    fields: dict[bytes, bytes] = raw.hgetall(b"jobs:result:" + item_id)
    if fields:
        assert BEGAN_MS <= int(fields.pop(b"completed_ms")) <= time() * 1000
        assert raw.pttl(b"jobs:result:" + item_id) > 0
    return fields


def statuses(queue: WorkQueue, *ids: bytes, **options: object) -> list[Status]:
    """What becomes of each."""
    return [outcome.status for outcome in complete_items(queue, ids, **options)]  # type: ignore[arg-type]


def test_a_ttl_that_rounds_to_zero_is_an_error() -> None:
    for ttl_s in (0, 0.0004, -1):
        with pytest.raises(InvalidArgument):
            ResultOptions(ttl_s=ttl_s)
    assert ResultOptions(ttl_s=0.0006).ttl_ms == 1


@pytest.mark.parametrize(
    ("size", "items"),
    [(None, 250), (0, 250), (16_777, 250), (16_778, 249), (4_000_000, 1), (50_000_000, 1)],
)
def test_how_many_fit_into_a_call(size: int | None, items: int) -> None:
    result = None if size is None else b"x" * size
    assert ResultOptions(result).items_max == items


class TestFew:
    def test_the_fields_of_a_result(self, queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
        foreign.leased(b"a", holder=b"\xffthem")
        assert statuses(queue, b"a", result_options=HALF_A_MINUTE) == [Status.COMPLETED]
        assert raw.keys() == [b"jobs:result:a"]
        assert lasts(raw, 30, "jobs:result:a")
        assert kept(raw, b"a") == {
            b"status": b"completed",
            b"result": b"\x00\xff",
            b"holder": b"\xffthem",
        }

    def test_a_result_is_stored_for_an_item_in_any_state(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w", b"\xff", b"twice")
        raw.lpush(b"jobs:queue", b"twice")
        foreign.abandoned(b"a")
        foreign.data(b"o")
        foreign.delayed(b"d", 4_000_000_000_000)
        foreign.buried(b"b")
        ids = (b"w", b"\xff", b"twice", b"a", b"o", b"d", b"b")
        assert statuses(
            queue, *ids, result_options=ResultOptions(status=ResultStatus.REJECTED)
        ) == [Status.COMPLETED] * len(ids)
        # A guard is nobody's lease.
        assert [kept(raw, item_id) for item_id in ids] == [{b"status": b"rejected"}] * len(ids)
        assert raw.dbsize() == len(ids)

    @pytest.mark.parametrize("count", [1, 40])
    def test_the_holder_whose_lease_ends_later_is_stored(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
    ) -> None:
        ids = [b"%d" % number for number in range(count)]
        foreign.leased(*ids, holder=b"earlier", ttl_ms=30_000, generations="new")
        foreign.lease(*ids, holder=b"later", ttl_ms=60_000, generations="old")
        statuses(queue, *ids, result_options=ResultOptions())
        assert {kept(raw, item_id)[b"holder"] for item_id in ids} == {b"later"}

    def test_an_empty_result_is_one(self, queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        statuses(queue, b"a", result_options=ResultOptions(b""))
        assert kept(raw, b"a") == {b"status": b"completed", b"result": b""}

    def test_only_of_what_this_call_completes(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.leased(b"mine", holder=HOLDER)
        foreign.leased(b"theirs")
        foreign.leased(b"gone", holder=HOLDER)
        raw.delete("jobs:item:gone")
        # In the way of nothing that is completed.
        raw.lpush("jobs:result:gone", "x")
        assert statuses(
            queue, b"mine", b"theirs", b"gone", owner=HOLDER, result_options=HALF_A_MINUTE
        ) == [Status.COMPLETED, Status.NOT_OWNER, Status.MISSING]
        assert sorted(raw.keys("jobs:result:*")) == [b"jobs:result:gone", b"jobs:result:mine"]

    def test_a_second_complete_changes_nothing(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")
        statuses(queue, b"a", result_options=HALF_A_MINUTE)
        before = raw.hgetall("jobs:result:a")
        for result_options in (None, ResultOptions(b"other"), ResultOptions()):
            assert statuses(queue, b"a", result_options=result_options) == [Status.MISSING]
            assert raw.hgetall("jobs:result:a") == before
            assert raw.pttl("jobs:result:a") <= 30_000

    def test_a_later_item_of_the_same_id(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        """Its completion says what is kept; nothing of the earlier one is taken for its own."""
        foreign.waiting(b"a", b"b", b"c")
        statuses(queue, b"a", b"b", b"c", result_options=HALF_A_MINUTE)
        foreign.leased(b"a", b"b")
        statuses(queue, b"a")
        statuses(queue, b"b", result_options=ResultOptions(status=ResultStatus.REJECTED))
        assert kept(raw, b"a") == {}
        assert kept(raw, b"b") == {b"status": b"rejected", b"holder": b"them"}
        assert kept(raw, b"c")[b"result"] == b"\x00\xff"

    def test_an_item_that_is_not_completed_keeps_its_earlier_result(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")
        statuses(queue, b"a", result_options=HALF_A_MINUTE)
        foreign.leased(b"a")
        assert statuses(queue, b"a", owner=HOLDER) == [Status.NOT_OWNER]
        assert kept(raw, b"a")[b"result"] == b"\x00\xff"


@pytest.mark.parametrize("place", [b"queue", b"processing"])
@pytest.mark.parametrize("size", [3, 30_000, 200_000])
def test_results_of_many_items_are_kept(
    raw: Redis, place: bytes, size: int, interleaved: Interleaved
) -> None:
    """By pages, by stretches, and one by one where they are large."""
    count = 300 if size < 100_000 else 60
    ids = [b"%04d" % number for number in range(count)]
    others = [b"other %d" % number for number in range(700)]
    raw.mset({b"jobs:item:" + item_id: b"data" for item_id in (*ids, *others)})
    raw.lpush(b"jobs:" + place, *others, *ids)
    raw.mset({b"jobs:lease:" + item_id: b"them" for item_id in ids})
    old = {"status": "rejected", "completed_ms": 5, "holder": "old", "result": "old"}
    raw.hset("jobs:result:0007", mapping=old)
    raw.hset("jobs:result:other 7", "result", "old")
    queue = WorkQueue(interleaved, QUEUE)
    done = [
        o.status
        for o in complete_items(queue, [*ids, b"gone"], result_options=ResultOptions(b"x" * size))
    ]
    assert sorted(done) == [Status.COMPLETED] * count + [Status.MISSING]
    wanted = {b"status": b"completed", b"result": b"x" * size, b"holder": b"them"}
    assert [item_id for item_id in ids if kept(raw, item_id) != wanted] == []
    assert raw.hgetall("jobs:result:other 7") == {b"result": b"old"}
    assert sorted(raw.lrange(b"jobs:" + place, 0, -1)) == sorted(others)
    assert raw.dbsize() == count + len(others) + 2
    runs = [name for name in interleaved.calls if name.startswith("complete")]
    assert len(runs) >= count // ResultOptions(b"x" * size).items_max


@pytest.mark.parametrize("place", [b"queue", b"processing"])
def test_many_items_without_a_result(connection: Connection, raw: Redis, place: bytes) -> None:
    """What earlier items of these IDs left goes; what is no result of ours stays."""
    ids = [b"%04d" % number for number in range(300)]
    raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
    raw.lpush(b"jobs:" + place, *ids)
    for item_id in ids[::7]:
        raw.hset(b"jobs:result:" + item_id, mapping={"status": "completed", "completed_ms": 5})
    raw.set("jobs:result:0001", "no hash")
    raw.hset("jobs:result:gone", mapping={"status": "completed", "completed_ms": 5})
    done = [
        outcome.status for outcome in WorkQueue(connection, QUEUE).complete_many([*ids, b"gone"])
    ]
    assert sorted(done) == [Status.COMPLETED] * 300 + [Status.MISSING]
    assert sorted(raw.keys()) == [b"jobs:result:0001", b"jobs:result:gone"]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("place", [b"queue", b"processing"])
def test_a_key_of_another_type_in_its_place(
    queue: WorkQueue, raw: Redis, place: bytes, count: int, dry_run: bool
) -> None:
    ids = [b"%03d" % number for number in range(count)]
    raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
    raw.lpush(b"jobs:" + place, *ids)
    raw.lpush(b"jobs:result:" + ids[-1], "x")
    before = contents(raw)
    done = complete_items(queue, ids, result_options=HALF_A_MINUTE, dry_run=dry_run)
    assert {each.item_id: each.status for each in done} == {
        **dict.fromkeys(ids, Status.COMPLETED),
        ids[-1]: Status.WRONG_TYPE,
    }
    if dry_run:
        assert contents(raw) == before
    # Nothing is to be kept, so it is in nobody's way.
    assert statuses(queue, ids[-1]) == [Status.COMPLETED]
    assert raw.lrange(b"jobs:result:" + ids[-1], 0, -1) == [b"x"]


@pytest.mark.parametrize("place", [b"queue", b"processing"])
@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(
    "fields",
    [{"x": "y"}, {"status": "4"}, {"status": "completed"}, {"status": "new", "completed_ms": "5"}],
)
def test_a_hash_that_is_not_a_result(
    queue: WorkQueue, raw: Redis, place: bytes, count: int, fields: dict[str, str]
) -> None:
    """It may be the counts of a queue with such a name."""
    ids = [b"%03d" % number for number in range(count)]
    raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
    raw.lpush(b"jobs:" + place, *ids)
    raw.hset(b"jobs:result:" + ids[-1], mapping=fields)  # type: ignore[arg-type]
    before = contents(raw)
    for dry_run in (True, False):
        done = complete_items(queue, ids, result_options=HALF_A_MINUTE, dry_run=dry_run)
        assert {each.item_id: each.status for each in done} == {
            **dict.fromkeys(ids, Status.COMPLETED),
            ids[-1]: Status.WRONG_TYPE,
        }
    assert statuses(queue, ids[-1]) == [Status.COMPLETED]
    key = b"jobs:result:" + ids[-1]
    assert contents(raw)[key] == before[key]


def test_a_dry_run_keeps_no_result(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.leased(b"a")
    raw.lpush("jobs:result:gone", "in nobody's way")
    before = contents(raw)
    assert statuses(queue, b"a", b"gone", result_options=HALF_A_MINUTE, dry_run=True) == [
        Status.COMPLETED,
        Status.MISSING,
    ]
    assert contents(raw) == before


# All keys of a queue but those of results.
_WITHOUT_RESULTS = [
    *("jobs:queue", "jobs:processing", "jobs:cleaning", "jobs:delayed", "jobs:buried"),
    *("jobs:returns", "jobs:item:*", "jobs:lease:*", "jobs:leased_by_session:*"),
]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("place", [b"queue", b"processing"])
def test_a_user_who_may_not_touch_results(
    as_user: AsUser, server: PrivateServer, place: bytes, count: int
) -> None:
    """What is asked for without them goes as if there were none."""
    queue = WorkQueue(as_user("+@all", keys=_WITHOUT_RESULTS), QUEUE)
    ids = [b"%03d" % number for number in range(count)]
    with server.client() as raw:
        raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
        raw.lpush(b"jobs:" + place, *ids)
        raw.hset(b"jobs:result:" + ids[0], mapping={"status": "completed", "completed_ms": 5})
        before = contents(raw)
        if raw.eval("return redis.acl_check_cmd and 1 or 0", 0):
            with pytest.raises(PermissionDenied) as caught:
                statuses(queue, *ids, result_options=HALF_A_MINUTE)
            assert "run the 'exists' command on jobs:result:*" in caught.value.message
            assert contents(raw) == before
        assert statuses(queue, *ids) == [Status.COMPLETED] * count
        assert raw.keys() == [b"jobs:result:" + ids[0]]


@pytest.mark.parametrize("lacking", ["hset", "pexpire", "del", "exists", "time"])
def test_a_user_who_lacks_one_command_changes_nothing(
    as_user: AsUser, server: PrivateServer, lacking: str
) -> None:
    queue = WorkQueue(as_user("+@all", f"-{lacking}"), QUEUE)
    with server.client() as raw:
        if not raw.eval("return redis.acl_check_cmd and 1 or 0", 0):
            pytest.skip("a script cannot ask this server for permissions (Redis before 7.0)")
        Foreign(raw).leased(b"a")
        before = contents(raw)
        with pytest.raises(PermissionDenied):
            statuses(queue, b"a", result_options=HALF_A_MINUTE)
        assert contents(raw) == before


def test_no_call_is_long(interleaved: Interleaved, raw: Redis) -> None:
    """None keeps more than about a megabyte of results, or one result that is larger."""
    queue = WorkQueue(interleaved, QUEUE)
    for count, size in ((5000, 10), (40, 1_000_000), (3, 10_000_000)):
        raw.flushall()
        ids = [b"%05d" % number for number in range(count)]
        raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
        raw.lpush(b"jobs:processing", *ids)
        with work_between_calls(interleaved, raw) as works:
            list(complete_items(queue, ids, result_options=ResultOptions(b"x" * size)))
        kept = [work.calls.get("pexpire", 0) for work in works]
        assert sum(kept) == count
        assert max(kept) * size <= CALLS_AT_ONCE * max(size, BATCH_BYTES)
        assert max(work.commands for work in works) <= COMMANDS_MAX
        assert raw.dbsize() == count


def test_on_a_server_that_has_no_memory(server: PrivateServer) -> None:
    """Completed with its result or not at all."""
    with server.client() as raw:
        raw.flushall()
        Foreign(raw).leased(b"a")
        raw.config_set("maxmemory", 1)
        try:
            queue = WorkQueue(Connection(raw), QUEUE)
            try:
                done = statuses(queue, b"a", result_options=HALF_A_MINUTE) == [Status.COMPLETED]
            except OutOfMemory:
                done = False
        finally:
            raw.config_set("maxmemory", 0)
        assert done is (not raw.exists("jobs:item:a"))
        assert done is bool(kept(raw, b"a"))


def test_a_dry_run_needs_no_permission_to_write(as_user: AsUser, server: PrivateServer) -> None:
    with server.client() as raw:
        Foreign(raw).waiting(b"a")
        raw.hset("jobs:result:a", mapping={"status": "completed", "completed_ms": "5"})
        before = contents(raw)
        queue = WorkQueue(as_user("+@all", "-@write", "+eval", "+evalsha"), QUEUE)
        dry_run = complete_items(queue, [b"a"], result_options=HALF_A_MINUTE, dry_run=True)
        assert [each.status for each in dry_run] == [Status.COMPLETED]
        assert contents(raw) == before
