"""Outcomes that are kept: in the step that completes, of what it completes, and of nothing else."""

from time import time

import pytest
from redis import Redis

from rwq_cli.core import Status, WorkQueue
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.complete import complete
from rwq_cli.core.items.results import ResultOptions
from tests.conftest import HOLDER, QUEUE, AsUser, Foreign, contents, lasts
from tests.support import many, numbered

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
def test_a_hash_that_is_not_a_result(queue: WorkQueue, raw: Redis, count: int) -> None:
    """It may be the counts of a queue with such a name."""
    for fields in ({"x": "y"}, {"status": "completed"}, {"status": "new", "completed_ms": "5"}):
        raw.flushall()
        ids = many(raw, count)
        raw.hset(b"jobs:result:" + ids[-1], mapping=fields)  # type: ignore[arg-type]
        for dry_run in (True, False):
            done = complete(queue, ids, result_options=HALF_A_MINUTE, dry_run=dry_run)
            assert {each.item_id: each.status for each in done} == {
                **dict.fromkeys(ids, Status.COMPLETED),
                ids[-1]: Status.WRONG_TYPE,
            }
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
