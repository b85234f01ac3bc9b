"""Looking at results and waiting for them: what is there, of which item, and what is not."""

import pytest
from redis import Redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.items.result_options import ResultOptions, Verdict
from rwq_cli.core.items.results import Result, ResultLook
from rwq_cli.core.queue import FOREVER
from tests.conftest import FakeClock, Foreign, contents


def keep(raw: Redis, item_id: bytes, ttl_ms: int | None = 60_000, **fields: bytes | int) -> None:
    """A result as ours leave it."""
    key = b"jobs:result:" + item_id
    raw.hset(key, mapping={"status": "completed", "completed_ms": 1_700_000_000_000, **fields})
    if ttl_ms is not None:
        raw.pexpire(key, ttl_ms)


class TestLook:
    def test_nothing(self, queue: WorkQueue) -> None:
        assert queue.result(b"a") == ResultLook(b"jobs", b"a", State.GONE, None)

    def test_all_of_it(self, queue: WorkQueue, raw: Redis) -> None:
        keep(raw, b"\xff", None, status=b"rejected", result=b"\x00", holder=b"\xfe")
        before = contents(raw)
        assert queue.result(b"\xff").result == Result(
            b"\xff", Verdict.REJECTED, 1_700_000_000_000, b"\xfe", b"\x00", 1, None
        )
        assert contents(raw) == before

    def test_the_time_left(self, queue: WorkQueue, raw: Redis) -> None:
        keep(raw, b"a")
        found = queue.result("a").result
        assert found is not None
        assert found.ttl_ms is not None
        assert 59_000 < found.ttl_ms <= 60_000
        assert (found.result, found.result_bytes, found.holder) == (None, None, None)

    def test_as_complete_keeps_it(self, queue: WorkQueue, foreign: Foreign) -> None:
        foreign.leased(b"a", holder=b"them")
        list(queue.complete([b"a"], result_options=ResultOptions(b"", Verdict.REJECTED)))
        found = queue.result(b"a").result
        assert found is not None
        assert (found.verdict, found.result, found.result_bytes, found.holder) == (
            Verdict.REJECTED,
            b"",
            0,
            b"them",
        )

    def test_the_item_was_added_again(self, queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
        keep(raw, b"a")
        foreign.waiting(b"a")
        look = queue.result(b"a")
        assert (look.state, look.result is not None) == (State.WAITING, True)

    @pytest.mark.parametrize(
        "fields", [{"code": "0"}, {"status": "other"}, {"completed_ms": "x"}, {"status": b"\xff"}]
    )
    def test_a_hash_that_is_no_result_of_ours(
        self, queue: WorkQueue, raw: Redis, fields: dict[str, str | bytes]
    ) -> None:
        if "code" not in fields:
            keep(raw, b"a")
        raw.hset("jobs:result:a", mapping=fields)  # type: ignore[arg-type]
        assert queue.result(b"a").result is None
        assert queue.results([b"a"]) == [None]

    @pytest.mark.real_only("it does not name the key")
    def test_another_type(self, queue: WorkQueue, raw: Redis) -> None:
        raw.lpush("jobs:result:a", "x")
        with pytest.raises(WrongType) as caught:
            queue.result(b"a")
        assert caught.value.message == ("jobs:result:a holds another type than the protocol says")
        assert queue.results([b"a"]) == [None]

    def test_a_leftover_lease_is_no_item(self, queue: WorkQueue, foreign: Foreign) -> None:
        foreign.lease(b"a")
        assert queue.result(b"a").state is State.GONE


def test_many_without_their_bytes(queue: WorkQueue, raw: Redis) -> None:
    ids = [b"%d" % number for number in range(1200)]
    for item_id in ids[::2]:
        keep(raw, item_id, None, result=item_id)
    found = queue.results(ids)
    assert found[1::2] == [None] * 600
    assert found[::2] == [
        Result(item_id, Verdict.COMPLETED, 1_700_000_000_000, result_bytes=len(item_id))
        for item_id in ids[::2]
    ]


class TestWait:
    def test_gone_without_one(self, queue: WorkQueue, clock: FakeClock) -> None:
        look = queue.result(b"a", wait=True)
        assert (look, clock.slept_s) == (ResultLook(b"jobs", b"a", State.GONE, None), [])

    def test_there_already(self, queue: WorkQueue, raw: Redis, clock: FakeClock) -> None:
        keep(raw, b"a")
        assert queue.result(b"a", wait=True).result is not None
        assert clock.slept_s == []

    def test_until_it_is_completed(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
    ) -> None:
        """The result of an earlier item is not what is waited for."""
        keep(raw, b"a", result=b"old")
        foreign.leased(b"a")

        def complete() -> None:
            if clock.now_s > 5:
                list(queue.complete([b"a"], result_options=ResultOptions(b"new")))

        clock.during_sleep = complete
        look = queue.result(b"a", wait=True, timeout_s=FOREVER)
        assert look.result is not None
        assert (look.state, look.result.result, look.waited_out) == (State.GONE, b"new", False)
        assert 5 < clock.now_s < 7

    def test_in_vain(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
    ) -> None:
        keep(raw, b"a")
        foreign.leased(b"a")
        look = queue.result(b"a", wait=True, timeout_s=3)
        assert look == ResultLook(b"jobs", b"a", State.LEASED, None, waited_out=True)
        assert clock.now_s == pytest.approx(3)

    def test_added_again_between_two_looks(
        self,
        queue: WorkQueue,
        foreign: Foreign,
        clock: FakeClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It was gone for a moment, and is waited for again."""
        from rwq_cli.core.items import results, waiting

        states = iter([foreign.waiting, lambda _: None])
        true_wait = waiting.wait_until

        def wait_until(*args: object, **options: object) -> object:
            waited = true_wait(*args, **options)  # type: ignore[arg-type]
            next(states)(b"a")
            return waited

        monkeypatch.setattr(waiting, "wait_until", wait_until)
        clock.during_sleep = lambda: list(
            queue.complete([b"a"], result_options=ResultOptions(b"second"))
        )
        look = results.wait_for_result(queue, b"a", timeout_s=10, clock=clock)
        assert look.result is not None
        assert look.result.result == b"second"

    def test_what_is_due_is_promoted_meanwhile(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, clock: FakeClock
    ) -> None:
        foreign.data(b"a")
        raw.zadd("jobs:delayed", {b"a": 1000})
        foreign.lease(b"a", holder=b"rwq-delayed:1000")

        def work() -> None:
            item = queue.lease()
            if item is not None:
                list(queue.complete([item.item_id], result_options=ResultOptions(b"done")))

        clock.during_sleep = work
        look = queue.result(b"a", wait=True, timeout_s=10)
        assert look.result is not None
        assert look.result.result == b"done"
