"""Two cleans of ours take turns on a queue."""

from collections.abc import Callable
from functools import partial

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import WrongType
from tests.conftest import FakeClock, Foreign, contents

LOCK = "jobs:clean-lock"
CLEANS: dict[str, Callable[..., object]] = {
    "light": WorkQueue.light_clean,
    "deep": WorkQueue.deep_clean,
    "doctor": partial(WorkQueue.diagnose, fix=True),
}
each_clean = pytest.mark.parametrize("how", CLEANS)


@each_clean
def test_one_waits_for_another_and_says_for_whom(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, how: str
) -> None:
    foreign.abandoned(b"1")
    raw.set(LOCK, "ann@ops1:17:ab", px=15_000)
    said: list[str] = []
    queue.connection.on_wait = said.append

    def end() -> None:
        if len(clock.slept_s) == 4:
            assert raw.llen("jobs:queue") == 0
            raw.delete(LOCK)

    clock.during_sleep = end
    CLEANS[how](queue)
    assert said == ["waiting for another clean of jobs, by ann@ops1:17:ab"]
    assert raw.lrange("jobs:queue", 0, -1) == [b"1"]
    assert raw.exists(LOCK) == 0


@pytest.mark.parametrize("how", ["light", "deep"])
def test_it_names_its_holder_and_lasts_as_long(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, how: str
) -> None:
    foreign.abandoned(b"1")
    left_ms: list[int] = []

    def look() -> None:
        left_ms.append(raw.pttl(LOCK))
        assert b"@" in (raw.get(LOCK) or b"")
        raw.pexpire(LOCK, 500)

    clock.during_sleep = look
    CLEANS[how](queue, grace_s=60)
    assert all(14_000 < each <= 15_000 for each in left_ms)
    assert sum(clock.slept_s) == 60
    assert max(clock.slept_s) <= 10
    assert raw.exists(LOCK) == 0


def test_a_dry_run_takes_no_lock_and_waits_for_none(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.abandoned(b"1")
    raw.set(LOCK, "ann@ops1:17:ab", px=15_000)
    before = contents(raw)
    assert [action.item_id for action in queue.light_clean(dry_run=True)] == [b"1"]
    assert contents(raw) == before
    assert raw.get(LOCK) == b"ann@ops1:17:ab"


def test_a_lock_that_was_lost_is_taken_again(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
) -> None:
    """A clean was stopped for longer than its lock lasts, and another has ended since."""
    foreign.abandoned(b"1")
    clock.during_sleep = lambda: raw.delete(LOCK)
    assert len(queue.light_clean(grace_s=20)) == 1


def test_a_lock_of_the_wrong_type_is_named(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.abandoned(b"1")
    raw.lpush(LOCK, "x")
    with pytest.raises(WrongType, match=LOCK):
        queue.light_clean()
