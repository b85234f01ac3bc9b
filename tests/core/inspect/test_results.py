"""Reading results: each once and whole, and nothing else for one."""

from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.results import (
    Result,
    ResultStatus,
    all_results,
    read_result_keys,
)
from tests.conftest import Foreign, contents

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
