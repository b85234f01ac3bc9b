"""Items behind ghosts: the age of the next item, and what tells a queue from other programs."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.queues import LOOK_ENTRIES, has_items, next_ages
from tests.conftest import AsUser, Foreign, has_aged
from tests.support import numbered


def ghosts(count: int) -> list[bytes]:
    return numbered(count, b"ghost %d")


@pytest.mark.parametrize("count", [0, 1, LOOK_ENTRIES - 1])
def test_the_age_is_that_of_the_first_item_behind_ghosts(
    queue: WorkQueue, foreign: Foreign, raw: Redis, as_user: AsUser, count: int
) -> None:
    raw.lpush("jobs:queue", *ghosts(count), "a", "b")
    for item_id, age_s in ((b"a", 300), (b"b", 100)):
        foreign.data(item_id)
        foreign.unused_for(item_id, age_s)
    assert has_aged(raw, 300, queue.counts().oldest_waiting_s)
    first = b"ghost 0" if count else b"a"
    ages = next_ages({queue: first, queue.sibling("none"): b"x"})
    assert list(ages) == [b"jobs"]
    assert has_aged(raw, 300, ages[b"jobs"])
    limited = WorkQueue(as_user("+@all", "-object"), b"jobs")
    assert next_ages({limited: first}) == {}


def test_age_is_unknown_behind_too_many_ghosts(
    queue: WorkQueue, foreign: Foreign, raw: Redis
) -> None:
    raw.lpush("jobs:queue", *ghosts(LOOK_ENTRIES))
    foreign.waiting(b"a")
    assert queue.counts().oldest_waiting_s is None


@pytest.mark.parametrize("count", [0, LOOK_ENTRIES - 1])
def test_an_item_behind_ghosts_makes_a_queue(
    queue: WorkQueue, foreign: Foreign, raw: Redis, count: int
) -> None:
    ids = [*ghosts(count), b"a"]
    for key in ("queue", "processing", "cleaning", "delayed", "buried"):
        raw.flushall()
        if key in ("delayed", "buried"):
            raw.zadd(f"jobs:{key}", {item_id: place for place, item_id in enumerate(ids)})
        else:
            raw.lpush(f"jobs:{key}", *ids)
        assert not has_items(queue)
        foreign.data(b"a")
        assert has_items(queue)
        # Beside a key of the wrong type, too.
        raw.set("jobs:cleaning" if key == "queue" else "jobs:queue", "x")
        assert has_items(queue)
