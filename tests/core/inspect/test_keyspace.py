"""Whose the keys of a server are, which queues there are, and what a walk over a queue finds."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import Connection, WorkQueue, queue_names
from rwq_cli.core.inspect.keyspace import Survey
from rwq_cli.core.inspect.queues import NEXT_ENTRIES, next_ages
from rwq_cli.core.repair.findings import findings_about
from tests.conftest import QUEUE, AsUser, Backend, Foreign, Interleaved, has_aged
from tests.item_cases import ITEM_CASES
from tests.support import numbered

FAR_MS = 10**13


def found(queue: WorkQueue) -> dict[str, list[bytes]]:
    """By finding, the IDs of the survey."""
    ids: dict[str, list[bytes]] = {}
    for facts in Survey(queue).facts():
        for code in findings_about(facts):
            ids.setdefault(code.value, []).append(facts.item_id)
    return {code: sorted(each) for code, each in ids.items()}


@pytest.mark.parametrize("name", [b"*", b"[j]obs", b"job?", b"\x00\xff\\", b"jobs:item:x"])
def test_strange_names_beside_others(backend: Backend, raw: Redis, name: bytes) -> None:
    for item_id, case in ITEM_CASES.items():
        case.make(Foreign(raw, name), item_id.encode())
    assert found(WorkQueue(backend.connect(), b"jobs")) == {}
    assert found(WorkQueue(backend.connect(), name)).keys() > {"orphaned", "ghost", "held"}


def test_an_item_named_like_a_list_is_no_queue(queue: WorkQueue, foreign: Foreign) -> None:
    """IDs are any bytes; the type of the key tells an item from another queue's list."""
    ids = [b"queue", b"x:queue", b"x:item:1", b"item:1", b"x:processing", b":delayed"]
    foreign.data(*ids)
    assert found(queue) == {"orphaned": sorted(ids)}


WORK: dict[str, Callable[[Foreign], object]] = {
    "leased": lambda foreign: (
        foreign.raw.rpoplpush(foreign.keys.main, foreign.keys.processing),
        foreign.lease(b"1"),
    ),
    "completed": lambda foreign: (
        foreign.raw.delete(foreign.keys.item(b"1")),
        foreign.raw.lrem(foreign.keys.main, 0, b"1"),
    ),
    "another added": lambda foreign: foreign.waiting(b"new"),
    "another added and leased": lambda foreign: foreign.leased(b"new"),
    "another delayed": lambda foreign: foreign.delayed(b"new", FAR_MS),
}


@pytest.mark.parametrize("work", WORK)
def test_no_live_item_looks_lost_whenever_it_moves(
    interleaved: Interleaved, raw: Redis, foreign: Foreign, work: str
) -> None:
    calls = 1
    number = 0
    while number < calls:
        number += 1
        raw.flushall()
        foreign.waiting(b"1", b"2")
        foreign.leased(b"3")
        interleaved.calls.clear()

        def act(_: str, number: int = number) -> None:
            if len(interleaved.calls) == number:
                WORK[work](foreign)

        interleaved.before = act
        lost = found(WorkQueue(interleaved, QUEUE)).keys() & {"orphaned", "unlisted"}
        calls = len(interleaved.calls)
        assert not lost
    assert calls > 1


def test_every_list_and_zset_gives_its_queue_away(connection: Connection, raw: Redis) -> None:
    raw.lpush(b"waiting:queue", b"1")
    raw.lpush(b"working:processing", b"1")
    raw.lpush(b"old:cleaning", b"1")
    raw.zadd(b"later:delayed", {b"1": 1})
    raw.zadd(b"dead:buried", {b"1": 1})
    for suffix in (b":queue", b":processing"):
        raw.lpush(b"once" + suffix, b"1")
    raw.zadd(b"once:delayed", {b"1": 1})
    assert queue_names(connection) == [b"dead", b"later", b"old", b"once", b"waiting", b"working"]


def test_queues_of_which_all_keys_have_the_wrong_type(
    connection: Connection, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"queue", b"x:delayed")
    foreign.lease(b"x:buried")
    raw.hset(b"jobs:result:queue", "status", "completed")
    raw.set(b"text:queue", b"")
    raw.sadd(b"set:processing", b"1")
    raw.hset(b"hash:delayed", "field", "value")
    raw.xadd(b"stream:buried", {"field": "value"})
    raw.set(b"x:returns", b"")
    raw.set(b":queue", b"")
    raw.lpush(b"queue", b"1")
    raw.zadd(b"scores", {b"1": 1})
    foreign.data(b"orphan:queue")
    wrong = [b"hash", b"set", b"stream", b"text"]
    assert queue_names(connection, any_type=True) == sorted([b"jobs", *wrong])
    assert queue_names(connection) == [b"jobs"]


def test_hundreds_among_thousands_of_keys(interleaved: Interleaved, raw: Redis) -> None:
    pipeline = raw.pipeline()
    for number in range(300):
        Foreign(pipeline, b"q%d" % number).waiting(b"1")
    pipeline.execute()
    raw.mset({b"jobs:item:%d" % number: b"" for number in range(3000)})
    assert queue_names(interleaved) == sorted(b"q%d" % number for number in range(300))
    # Never KEYS: the server would stand still.
    assert set(interleaved.calls) == {"SCAN"}


def ghosts(count: int) -> list[bytes]:
    return numbered(count, b"ghost %d")


@pytest.mark.usefixtures("up_for_days")
@pytest.mark.parametrize("count", [0, 1, NEXT_ENTRIES - 1])
def test_the_age_is_of_the_first_item_behind_ghosts(
    queue: WorkQueue, foreign: Foreign, raw: Redis, as_user: AsUser, count: int
) -> None:
    raw.lpush("jobs:queue", *ghosts(count), "a", "b")
    for item_id, age_s in ((b"a", 300), (b"b", 100)):
        foreign.data(item_id)
        foreign.unused_for(item_id, age_s)
    assert has_aged(raw, 300, queue.counts().oldest_waiting_s)
    following = [*ghosts(count), b"a", b"b"]
    ages = next_ages({queue: following, queue.sibling("none"): [b"x"]}, None)
    assert list(ages) == [b"jobs"]
    assert has_aged(raw, 300, ages[b"jobs"])
    limited = WorkQueue(as_user("+@all", "-object"), b"jobs")
    assert next_ages({limited: following}, None) == {}
