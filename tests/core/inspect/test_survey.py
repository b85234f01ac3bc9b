"""The walk over a whole queue: exact findings, also while work goes on."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.inspect.survey import Survey, listed_ids, scan_ids, survey
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, Backend, Foreign, Interleaved

FAR_MS = 10**13


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def zoo(foreign: Foreign) -> None:
    """One of each kind, two of some."""
    foreign.waiting(b"w1", b"w2", b"w2", b"w3", b"w3", b"w3")
    foreign.leased(b"l1", b"l2")
    foreign.leased(b"l old", generations="old")
    foreign.leased(b"held", ttl_ms=None)
    foreign.abandoned(b"a1", b"a2", b"a2")
    foreign.waiting(b"both, leased", b"both, abandoned")
    foreign.leased(b"both, leased")
    foreign.abandoned(b"both, abandoned")
    foreign.data(b"o1", b"o2", b"o in hand")
    foreign.raw.rpush(foreign.keys.cleaning, b"o in hand", b"w1", b"gone")
    foreign.data(b"u new", b"u old", b"u held")
    foreign.lease(b"u held", ttl_ms=None)
    foreign.lease(b"u new", generations="new")
    foreign.lease(b"u old", generations="old")
    foreign.delayed(b"d1", FAR_MS)
    foreign.delayed(b"due", 1)
    foreign.buried(b"b1")
    # Noted, but listed all the same; the last is behind a whole guard.
    foreign.waiting(b"s1")
    foreign.delayed(b"s1", FAR_MS)
    foreign.buried(b"s2")
    foreign.leased(b"s2", generations="new")
    foreign.buried(b"s3")
    foreign.leased(b"s3")
    foreign.abandoned(b"b2")
    foreign.buried(b"b2")
    foreign.raw.lpush(foreign.keys.main, b"g main")
    foreign.raw.lpush(foreign.keys.processing, b"g processing", b"g leased")
    foreign.lease(b"g leased", b"stray")
    foreign.raw.zadd(foreign.keys.delayed, {b"g delayed": 1})
    foreign.raw.zadd(foreign.keys.buried, {b"g buried": 1})
    foreign.raw.hset(foreign.keys.returns, mapping={b"w1": 1, b"gone": 2})


def found(queue: WorkQueue) -> dict[str, Any]:
    """The survey, with what has no order of its own sorted."""
    report = asdict(survey(queue))
    report["processing_ghosts"].sort()
    report["stale_schedule"].sort()
    for name in ("orphaned", "unlisted", "duplicated", "stale_cleaning", "stale_returns"):
        report[name].sort()
    return report


NOTHING = asdict(Survey())


def test_an_empty_queue(queue: WorkQueue) -> None:
    assert survey(queue) == Survey()


def test_the_zoo(queue: WorkQueue, foreign: Foreign) -> None:
    zoo(foreign)
    assert found(queue) == {
        "orphaned": [b"o in hand", b"o1", b"o2"],
        "unlisted": [b"u new", b"u old"],
        "held": [b"u held"],
        "main_ghosts": [b"g main"],
        "processing_ghosts": [b"g leased", b"g processing"],
        "scheduled_ghosts": [(b"g delayed", "delayed"), (b"g buried", "buried")],
        "duplicated": [b"both, abandoned", b"both, leased", b"w2", b"w3"],
        "stale_cleaning": [b"gone", b"w1"],
        "stale_schedule": [(b"s1", "delayed"), (b"s2", "buried"), (b"s3", "buried")],
        "stale_returns": [b"gone"],
        "returned": 1,
        "returns": 1,
        "items": 24,
    }


@pytest.mark.parametrize("name", [b"*", b"[j]obs", b"job?", b"\x00\xff\\"])
def test_strange_names_beside_others(backend: Backend, raw: Redis, name: bytes) -> None:
    zoo(Foreign(raw))
    zoo(Foreign(raw, name))
    expected = found(WorkQueue(backend.connect(), b"jobs"))
    assert found(WorkQueue(backend.connect(), name)) == expected
    raw.flushall()
    zoo(Foreign(raw))
    assert found(WorkQueue(backend.connect(), name)) == NOTHING


@pytest.mark.parametrize("other", [b"jobs:item", b"jobs:item:x", b"jobs:item:queue"])
def test_a_queue_whose_name_begins_like_our_data_keys(
    queue: WorkQueue, raw: Redis, other: bytes
) -> None:
    zoo(Foreign(raw, other))
    report = found(queue)
    assert {**report, "items": 0} == NOTHING


def test_only_an_item_that_is_called_like_a_list_is_not_mistaken_for_one(
    queue: WorkQueue, foreign: Foreign
) -> None:
    """IDs are any bytes; the type of the key tells an item from another queue's list."""
    ids = [b"queue", b"x:queue", b"x:item:1", b"item:1", b"x:processing", b":delayed"]
    foreign.data(*ids)
    assert found(queue) == {**NOTHING, "orphaned": sorted(ids), "items": len(ids)}


def test_data_of_the_wrong_type_is_no_orphan(queue: WorkQueue, raw: Redis) -> None:
    """Nothing is guessed about it, and no clean would return it."""
    raw.hset(b"jobs:item:1", "field", "value")
    assert found(queue)["orphaned"] == []


@pytest.mark.parametrize("structure", ["queue", "processing", "cleaning", "delayed", "returns"])
def test_a_structure_of_the_wrong_type(queue: WorkQueue, raw: Redis, structure: str) -> None:
    raw.set(f"jobs:{structure}", b"text")
    with pytest.raises(WrongType):
        survey(queue)


def test_thousands(queue: WorkQueue, raw: Redis) -> None:
    pipeline = raw.pipeline()
    crowd = Foreign(pipeline)
    crowd.waiting(*(b"w%d" % number for number in range(2500)))
    crowd.leased(*(b"l%d" % number for number in range(1200)))
    crowd.data(*(b"o%d" % number for number in range(1100)))
    pipeline.execute()
    assert found(queue) == {
        **NOTHING,
        "orphaned": sorted(b"o%d" % number for number in range(1100)),
        "items": 4800,
    }


def test_the_ids_of_all_data_keys(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    ids = [b"", b"\x00", b"a:item:b", *numbered(1500)]
    foreign.data(*ids)
    foreign.lease(b"stray")
    Foreign(raw, b"job").data(b"s:item:1")
    raw.set(b"xjobs:item:1", b"")
    met = [item_id for page in scan_ids(queue) for item_id in page]
    assert sorted(set(met)) == sorted(ids)
    others: set[bytes] = set()
    met = [item_id for page in scan_ids(queue, others.update) for item_id in page]
    assert sorted(set(met)) == sorted(ids)
    assert others == {b"jobs:lease:stray", b"jobs:leased_by_session:stray"}


def test_what_is_listed(queue: WorkQueue, foreign: Foreign) -> None:
    zoo(foreign)
    candidates = [b"w1", b"l1", b"g main", b"d1", b"b1", b"o1", b"o in hand", b"u new", b"none"]
    assert listed_ids(queue, candidates) == {b"w1", b"l1", b"g main", b"d1", b"b1"}
    assert listed_ids(queue, []) == frozenset()


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
        report = survey(WorkQueue(interleaved, QUEUE))
        calls = len(interleaved.calls)
        assert report.orphaned == []
        assert report.unlisted == []
    assert calls > 5


def test_listed_at_every_moment_while_it_is_leased(
    interleaved: Interleaved, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    for number in range(1, 8):
        raw.flushall()
        foreign.waiting(b"1")
        interleaved.calls.clear()

        def act(_: str, number: int = number) -> None:
            if len(interleaved.calls) == number:
                raw.rpoplpush(keys.main, keys.processing)

        interleaved.before = act
        assert listed_ids(WorkQueue(interleaved, QUEUE), [b"1"]) == {b"1"}


@pytest.mark.parametrize("at_read", [1, 2, 3])
def test_listed_while_another_turns_the_processing_list_round(
    interleaved: Interleaved, raw: Redis, at_read: int
) -> None:
    """A batch of completes moves the oldest page to the new end; all of it is still listed."""
    raw.rpush(b"jobs:processing", *numbered(2500))
    reads = 0

    def turn(name: str) -> None:
        nonlocal reads
        if name == "LRANGE" and interleaved.words[1] == b"jobs:processing":
            reads += 1
            if reads == at_read:
                raw.lpush(b"jobs:processing", *raw.rpop(b"jobs:processing", 1000))

    interleaved.before = turn
    assert listed_ids(WorkQueue(interleaved, QUEUE), numbered(2500)) == set(numbered(2500))
    assert reads >= at_read
