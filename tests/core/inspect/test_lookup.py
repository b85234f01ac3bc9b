"""Looking up IDs: the same facts by name and by a walk over the lists, also while items move."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.lookup import ItemReport, facts_of, look_up
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, Foreign, Interleaved
from tests.core.inspect.ways import WAYS, force
from tests.item_cases import ITEM_CASES


@pytest.fixture
def every_case(foreign: Foreign) -> list[bytes]:
    """One of each, by its name."""
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    return [name.encode() for name in ITEM_CASES]


def comparable(found: ItemReport) -> ItemReport:
    """Without what time changes."""

    def lasting(lease):
        return lease and lease._replace(ttl_ms=lease.ttl_ms and round(lease.ttl_ms, -4))

    facts = found.facts._replace(
        now_ms=0,
        new_lease=lasting(found.facts.new_lease),
        old_lease=lasting(found.facts.old_lease),
    )
    return ItemReport(facts, list(found.main_places), list(found.processing_places))


@pytest.mark.parametrize("way", WAYS[1:])
def test_each_way_finds_the_same(
    queue: WorkQueue, every_case: list[bytes], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    by_script = list(map(comparable, look_up(queue, every_case)))
    force(way, monkeypatch)
    assert list(map(comparable, look_up(queue, every_case))) == by_script


@pytest.mark.parametrize("way", WAYS)
def test_positions_are_counted_from_the_right(
    queue: WorkQueue, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    force(way, monkeypatch)
    foreign.waiting(b"0", b"1", b"2", b"1")
    foreign.leased(b"first", b"both", b"last", b"both")
    found = {each.facts.item_id: each for each in look_up(queue, [b"1", b"2", b"both", b"none"])}
    places = {
        i: (list(each.main_places), list(each.processing_places)) for i, each in found.items()
    }
    assert places == {
        b"1": ([1, 3], []),
        b"2": ([2], []),
        b"both": ([], [1, 3]),
        b"none": ([], []),
    }


class TestMovingItems:
    """It is found where it is or where it was, and never in both or in neither."""

    @pytest.fixture
    def found_while(
        self, interleaved: Interleaved, keys: QueueKeys, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[str, Callable[[], object]], tuple[int, int]]:
        """How often it is in main and in processing, if something happens before a read."""
        force("by walk", monkeypatch)

        def look(before: str, happens: Callable[[], object]) -> tuple[int, int]:
            read: list[bytes] = []

            def act(command: str) -> None:
                key = interleaved.words[1] if command == "LRANGE" else None
                if key is None or key == (read[-1] if read else None):
                    return
                read.append(key)
                lists = [keys.main, keys.processing, *([keys.main] * (before == "main again"))]
                if read == lists:
                    happens()

            interleaved.before = act
            (facts,) = facts_of(WorkQueue(interleaved, QUEUE), [b"x"])
            return facts.in_main, facts.in_processing

        return look

    @pytest.mark.parametrize("before", ["processing", "main again"])
    def test_an_item_leased_or_returned_between_the_reads_is_found_once(
        self, foreign: Foreign, raw: Redis, found_while: Callable[..., tuple[int, int]], before: str
    ) -> None:
        foreign.waiting(b"x")
        found = found_while(before, lambda: raw.rpoplpush("jobs:queue", "jobs:processing"))
        assert found == {"processing": (0, 1), "main again": (1, 0)}[before]
        raw.flushall()
        foreign.abandoned(b"x")
        found = found_while(before, lambda: raw.rpoplpush("jobs:processing", "jobs:queue"))
        assert found == (1, 0)
