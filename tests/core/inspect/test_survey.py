"""The walk over a whole queue: exact findings, also while work goes on."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.keyspace import survey_facts
from rwq_cli.core.repair.findings import findings_about
from tests.conftest import QUEUE, Backend, Foreign, Interleaved
from tests.item_cases import ITEM_CASES

FAR_MS = 10**13


def found(queue: WorkQueue) -> dict[str, list[bytes]]:
    """By finding, the IDs of the survey."""
    ids: dict[str, list[bytes]] = {}
    for facts in survey_facts(queue):
        for code in findings_about(facts):
            ids.setdefault(code.value, []).append(facts.item_id)
    return {code: sorted(each) for code, each in ids.items()}


def test_strange_names_beside_others(backend: Backend, raw: Redis) -> None:
    for name in (b"*", b"[j]obs", b"job?", b"\x00\xff\\", b"jobs:item:x"):
        raw.flushall()
        for item_id, case in ITEM_CASES.items():
            case.make(Foreign(raw, name), item_id.encode())
        assert found(WorkQueue(backend.connect(), b"jobs")) == {}
        assert found(WorkQueue(backend.connect(), name)).keys() > {"orphaned", "ghost", "held"}


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
