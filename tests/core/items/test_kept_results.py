"""Outcomes that are kept: in the step that completes, of what it completes, and of nothing else."""

from time import time

import pytest
from redis import Redis

from rwq_cli.core import Status, WorkQueue
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.results import ResultOptions
from tests.conftest import (
    HOLDER,
    QUEUE,
    AsUser,
    Foreign,
    Interleaved,
    contents,
    lasts,
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
