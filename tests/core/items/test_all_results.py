"""All results of a queue: read once and whole, put in where none is, taken away if unchanged."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.batches import FLUSH
from rwq_cli.core.items.all_results import (
    ResultTally,
    count_all,
    drop_results,
    put_results,
    read_all,
)
from rwq_cli.core.items.result_options import Verdict
from rwq_cli.core.items.results import Result
from tests.conftest import Backend, Foreign, Interleaved, contents, no_call_over
from tests.core.items.test_results import keep

WHEN = 1_700_000_000_000


def a_result(item_id: bytes, result: bytes | None = b"r", ttl_ms: int | None = None) -> Result:
    """One that nobody held."""
    size = None if result is None else len(result)
    return Result(item_id, Verdict.COMPLETED, WHEN, None, result, size, ttl_ms)


def all_of(queue: WorkQueue) -> list[Result]:
    """Every result, in the order of the IDs."""
    batches = read_all(queue)
    return sorted((found for batch in batches for found in batch), key=lambda r: r.item_id)


class TestRead:
    def test_each_once_and_whole(self, queue: WorkQueue, raw: Redis) -> None:
        keep(raw, b"\xff", None, result=b"\x00", holder=b"\xfe", status=b"rejected")
        keep(raw, b"none given", None)
        for number in range(1500):
            keep(raw, b"%04d" % number, None, result=b"%d" % number)
        raw.set("jobs:result:string", "x")
        raw.hset("jobs:result:foreign", "code", "0")
        before = contents(raw)
        found = all_of(queue)
        assert found[:1500] == [a_result(b"%04d" % n, b"%d" % n) for n in range(1500)]
        assert found[1500:] == [
            a_result(b"none given", None),
            Result(b"\xff", Verdict.REJECTED, WHEN, b"\xfe", b"\x00", 1),
        ]
        count = count_all(queue)
        assert (count.results, count.others) == (1502, 2)
        assert contents(raw) == before

    @pytest.mark.parametrize("name", [b"jobs:result", b"jobs:result:mail", b"jobs:x"])
    def test_not_those_of_queues_that_are_named_like_it(
        self, backend: Backend, queue: WorkQueue, raw: Redis, name: bytes
    ) -> None:
        other = WorkQueue(backend.connect(), name)
        other.add(b"data", b"1")
        raw.hset(name + b":result:2", mapping={"status": "completed", "completed_ms": WHEN})
        keep(raw, b"mine", None)
        assert all_of(queue) == [a_result(b"mine", None)]

    def test_large_ones_come_in_small_batches(self, interleaved: Interleaved, raw: Redis) -> None:
        for number in range(6):
            keep(raw, b"%d" % number, None, result=b"x" * 600_000)
        queue = WorkQueue(interleaved, b"jobs")
        assert [len(batch) for batch in read_all(queue)] == [2, 2, 2]

    def test_one_that_ends_meanwhile(self, interleaved: Interleaved, raw: Redis) -> None:
        """It is gone between the look at its size and the reading."""
        keep(raw, b"a", None, result=b"x")
        keep(raw, b"b", None, result=b"x")
        queue = WorkQueue(interleaved, b"jobs")

        def end(_: str) -> None:
            if any("HSTRLEN" in call for call in interleaved.calls[:-1]):
                raw.delete("jobs:result:a")

        interleaved.before = end
        assert all_of(queue) == [a_result(b"b", b"x")]


class TestPut:
    def put(self, queue: WorkQueue, *results: Result, **options: bool) -> str:
        """The letters of all."""
        given = {"replaces": False, **options}
        batches = put_results(queue, results, **given)
        return "".join(batch.letters for batch in batches)

    def test_there_and_back(self, queue: WorkQueue, raw: Redis) -> None:
        keep(raw, b"\xff", None, result=b"\x00", holder=b"", status=b"rejected")
        keep(raw, b"none given", None)
        keep(raw, b"empty", 60_000, result=b"")
        before, results = contents(raw), all_of(queue)
        raw.flushall()
        assert self.put(queue, *results) == "iii"
        assert contents(raw) == before
        assert 59_000 < raw.pttl("jobs:result:empty") <= 60_000
        assert self.put(queue, *results) == "hhh"
        assert contents(raw) == before

    @pytest.mark.parametrize("dry_run", [False, True])
    @pytest.mark.parametrize(("replaces", "letter"), [(False, "h"), (True, "p")])
    def test_what_is_there(
        self, queue: WorkQueue, raw: Redis, replaces: bool, letter: str, dry_run: bool
    ) -> None:
        keep(raw, b"a", result=b"old", holder=b"old")
        raw.set("jobs:result:string", "x")
        raw.hset("jobs:result:hash", "status", "1")
        before = contents(raw)
        given = (a_result(b"a"), a_result(b"b"), a_result(b"b", b"2"), a_result(b"string"))
        given += (a_result(b"hash"),)
        done = self.put(queue, *given, replaces=replaces, dry_run=dry_run)
        assert done == f"{letter}i{letter}yy"
        if dry_run:
            assert contents(raw) == before
            return
        if replaces:
            assert set(raw.hgetall("jobs:result:a")) == {b"status", b"completed_ms", b"result"}
            assert raw.pttl("jobs:result:a") == -1
        else:
            assert contents(raw).items() >= before.items()
        assert raw.hget("jobs:result:b", "result") == (b"2" if replaces else b"r")
        assert raw.get("jobs:result:string") == b"x"
        assert raw.hgetall("jobs:result:hash") == {b"status": b"1"}

    def test_one_that_was_about_to_end_still_ends(self, queue: WorkQueue, raw: Redis) -> None:
        self.put(queue, a_result(b"a", ttl_ms=0))
        assert raw.pttl("jobs:result:a") in (-2, 0, 1)

    def test_in_batches_and_at_a_pause(self, interleaved: Interleaved) -> None:
        queue = WorkQueue(interleaved, b"jobs")
        given = [a_result(b"%d" % n) for n in range(600)]
        large = [a_result(b"large %d" % n, b"x" * 600_000) for n in range(3)]
        batches = put_results(queue, [*given, FLUSH, *large], replaces=False)
        assert [len(batch) for batch in batches] == [250, 250, 100, 2, 1]

    @pytest.mark.real_only("the log of slow calls")
    def test_no_call_is_long(self, queue: WorkQueue, raw: Redis) -> None:
        with no_call_over(raw, 100):
            self.put(queue, *(a_result(b"%d" % n) for n in range(5000)))
            self.put(queue, *(a_result(b"l%d" % n, b"x" * 2_000_000) for n in range(10)))
            list(read_all(queue))
        assert raw.dbsize() == 5010


def test_a_tally() -> None:
    from rwq_cli.core.model import OutcomeBatch

    tally = ResultTally()
    tally.add(OutcomeBatch([b"1", b"2", b"3", b"4"], "iphy"))
    tally.add(OutcomeBatch([b"5"], "h"))
    assert tally == ResultTally(put=2, there=2, refused=1)


def test_only_what_is_as_it_was_read_is_dropped(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    for item_id in (b"same", b"later", b"added again"):
        keep(raw, item_id, None)
    raw.set("jobs:result:string", "x")
    results = [*all_of(queue), a_result(b"string"), a_result(b"gone")]
    raw.hset("jobs:result:later", "completed_ms", WHEN + 1)
    foreign.data(b"added again")
    drop_results(queue, results)
    assert sorted(raw.keys("jobs:result:*")) == [
        b"jobs:result:added again",
        b"jobs:result:later",
        b"jobs:result:string",
    ]
