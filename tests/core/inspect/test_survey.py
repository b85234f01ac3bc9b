"""The walk over a whole queue: exact findings, also while work goes on."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.keyspace import Totals, survey_facts
from rwq_cli.core.repair.findings import findings_about
from tests.conftest import QUEUE, Backend, Foreign, Interleaved

FAR_MS = 10**13


def arrange_all(foreign: Foreign) -> None:
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


def found(queue: WorkQueue) -> dict[str, list[bytes]]:
    """By finding, the IDs of the survey."""
    ids: dict[str, list[bytes]] = {}
    for facts in survey_facts(queue):
        for code in findings_about(facts):
            ids.setdefault(code.value, []).append(facts.item_id)
    return {code: sorted(each) for code, each in ids.items()}


def test_each_problem_that_no_single_structure_shows_is_found(
    queue: WorkQueue, foreign: Foreign
) -> None:
    assert found(queue) == {}
    arrange_all(foreign)
    totals = Totals()
    list(survey_facts(queue, totals=totals))
    assert totals == Totals(items=24, returned=1, returns=1)
    assert found(queue) == {
        "orphaned": [b"o in hand", b"o1", b"o2"],
        "unlisted": [b"u new", b"u old"],
        "held": [b"u held"],
        "ghost": [
            *(b"g buried", b"g delayed", b"g leased", b"g main", b"g processing"),
        ],
        "duplicated": [b"both, abandoned", b"both, leased", b"w2", b"w3"],
        "stale-cleaning": [b"gone", b"w1"],
        "stale-schedule": [b"s1", b"s2", b"s3"],
        "stale-returns": [b"gone"],
        "abandoned": [b"a2"],
        "stray-lease": [b"g leased"],
    }


@pytest.mark.parametrize("name", [b"*", b"[j]obs", b"job?", b"\x00\xff\\"])
def test_strange_names_beside_others(backend: Backend, raw: Redis, name: bytes) -> None:
    arrange_all(Foreign(raw))
    arrange_all(Foreign(raw, name))
    expected = found(WorkQueue(backend.connect(), b"jobs"))
    assert found(WorkQueue(backend.connect(), name)) == expected
    raw.flushall()
    arrange_all(Foreign(raw))
    assert found(WorkQueue(backend.connect(), name)) == {}


def test_only_an_item_that_is_called_like_a_list_is_not_mistaken_for_one(
    queue: WorkQueue, foreign: Foreign
) -> None:
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
    assert calls > 2
