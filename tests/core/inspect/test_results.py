"""Reading results: each once and whole, and nothing else for one."""

from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.results import (
    KIND_NONE,
    Result,
    ResultStatus,
    all_results,
    read_result_keys,
)
from tests.conftest import Foreign, Interleaved, contents

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


def results_of(queue: WorkQueue, ids: list[bytes]) -> list[Result | None]:
    """The result of each ID, without its data."""
    return [found.result for batch in read_result_keys(queue, ids) for found in batch]


class TestRead:
    def test_each_once_and_whole(self, queue: WorkQueue, raw: Redis) -> None:
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

    def test_large_ones_come_in_small_batches(self, interleaved: Interleaved, raw: Redis) -> None:
        for number in range(6):
            keep(raw, b"%d" % number, None, result=b"x" * 600_000)
        queue = WorkQueue(interleaved, b"jobs")
        assert [len(batch) for batch in all_results(queue)] == [2, 2, 2]

    def test_a_result_that_expires_meanwhile_is_missing(
        self, interleaved: Interleaved, raw: Redis
    ) -> None:
        """It is gone between the SCAN and the reading."""
        keep(raw, b"a", None, result=b"x")
        keep(raw, b"b", None, result=b"x")
        queue = WorkQueue(interleaved, b"jobs")

        def end(_: str) -> None:
            if "results" in interleaved.calls:
                raw.delete("jobs:result:a")

        interleaved.before = end
        assert all_of(queue) == [a_result(b"b", b"x")]

    def test_results_can_be_read_without_their_bytes(self, queue: WorkQueue, raw: Redis) -> None:
        ids = [b"%d" % number for number in range(1200)]
        for item_id in ids[::2]:
            keep(raw, item_id, None, result=item_id)
        found = results_of(queue, ids)
        assert found[1::2] == [None] * 600
        assert found[::2] == [
            Result(item_id, ResultStatus.COMPLETED, WHEN, result_bytes=len(item_id))
            for item_id in ids[::2]
        ]

    def test_whether_the_item_exists(self, queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
        keep(raw, b"a")
        foreign.waiting(b"a", b"b")
        ((a, b, c),) = read_result_keys(queue, [b"a", b"b", b"c"])
        assert (a.has_item, a.result is not None) == (True, True)
        assert (b.has_item, b.kind, c.has_item, c.kind) == (True, KIND_NONE, False, KIND_NONE)


INVALID_FIELDS: list[dict[str, str | bytes]] = [
    {"code": "0"},
    {"status": "other"},
    {"status": b"\xff"},
    {"completed_ms": "x"},
    {"completed_ms": "-5"},
    {"completed_ms": "\u0665".encode()},
    {"completed_ms": "9" * 16},
]


def test_a_hash_that_is_not_a_result(queue: WorkQueue, raw: Redis) -> None:
    for fields in INVALID_FIELDS:
        raw.flushall()
        if "code" not in fields:
            keep(raw, b"a")
        raw.hset("jobs:result:a", mapping=fields)  # type: ignore[arg-type]
        assert queue.result(b"a").result is None
        ((found,),) = read_result_keys(queue, [b"a"])
        assert (found.result, found.kind) == (None, "hash")
