"""Items behind ghosts: the age of the next item, and what tells a queue from other programs."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.queues import LOOK_ENTRIES, has_items, next_ages
from tests.conftest import AsUser, Foreign, has_aged

GHOSTS = [0, 1, LOOK_ENTRIES - 1]


def ghosts(count: int) -> list[bytes]:
    return [b"ghost %d" % number for number in range(count)]


@pytest.mark.parametrize("count", GHOSTS)
def test_the_age_is_that_of_the_first_item_behind_ghosts(
    queue: WorkQueue, foreign: Foreign, raw: Redis, count: int
) -> None:
    raw.lpush("jobs:queue", *ghosts(count), "a", "b")
    for item_id, age_s in ((b"a", 300), (b"b", 100)):
        foreign.data(item_id)
        foreign.unused_for(item_id, age_s)
    assert has_aged(raw, 300, queue.counts().oldest_waiting_s)
    empty = queue.sibling("none")
    next_ids = {queue: b"ghost 0" if count else b"a", empty: b"x"}
    ages = next_ages(next_ids)
    assert list(ages) == [b"jobs"]
    assert has_aged(raw, 300, ages[b"jobs"])


def test_age_is_unknown_behind_too_many_ghosts(
    queue: WorkQueue, foreign: Foreign, raw: Redis
) -> None:
    raw.lpush("jobs:queue", *ghosts(LOOK_ENTRIES))
    assert queue.counts().oldest_waiting_s is None
    foreign.waiting(b"a")
    assert queue.counts().oldest_waiting_s is None


def test_an_age_that_the_user_may_not_see_is_unknown(
    as_user: AsUser, foreign: Foreign, raw: Redis
) -> None:
    raw.lpush("jobs:queue", *ghosts(60), "a")
    foreign.data(b"a")
    queue = WorkQueue(as_user("+@all", "-object"), b"jobs")
    assert next_ages({queue: b"ghost 0"}) == {}


@pytest.mark.parametrize("count", GHOSTS)
@pytest.mark.parametrize("key", ["queue", "processing", "cleaning", "delayed", "buried"])
def test_an_item_behind_ghosts_makes_a_queue(
    queue: WorkQueue, foreign: Foreign, raw: Redis, key: str, count: int
) -> None:
    ids = [*ghosts(count), b"a"]
    if key in ("delayed", "buried"):
        raw.zadd(f"jobs:{key}", {item_id: place for place, item_id in enumerate(ids)})
    else:
        raw.lpush(f"jobs:{key}", *ids)
    assert not has_items(queue)
    foreign.data(b"a")
    assert has_items(queue)


def test_a_key_of_the_wrong_type_is_no_item(queue: WorkQueue, foreign: Foreign, raw: Redis) -> None:
    raw.set("jobs:delayed", "x")
    raw.lpush("jobs:queue", *ghosts(60))
    assert not has_items(queue)
    foreign.waiting(b"a")
    raw.lmove("jobs:queue", "jobs:queue", "LEFT", "RIGHT")
    assert has_items(queue)
