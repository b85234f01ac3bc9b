"""The facts about many IDs at once: the same as of each alone, also while items travel."""

from collections.abc import Callable

import pytest
from redis import Redis

from rwq_cli.core import Code, Facts, Lease, WorkQueue, state_of
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.repair.finding_rules import examine, facts_of_many, findings_about
from tests.conftest import QUEUE, Foreign, Interleaved
from tests.zoo import ANIMALS


@pytest.fixture
def zoo(foreign: Foreign) -> list[bytes]:
    """One of each, by its name."""
    for name, animal in ANIMALS.items():
        animal.make(foreign, name.encode())
    return [name.encode() for name in ANIMALS]


def test_of_many_as_of_each_alone(queue: WorkQueue, zoo: list[bytes]) -> None:
    for facts, item_report in zip(facts_of_many(queue, zoo), queue.facts(zoo), strict=True):
        alone = item_report.facts
        # Of a lease key of the wrong type only the one that looks at one ID knows the type.
        if not alone.wrong_types:
            assert state_of(facts) is state_of(alone), facts.item_id
            assert (facts.in_main, facts.in_processing, facts.in_cleaning) == (
                *(alone.in_main, alone.in_processing, alone.in_cleaning),
            )
            assert (facts.due_ms, facts.buried_ms, facts.returns, facts.has_data) == (
                *(alone.due_ms, alone.buried_ms, alone.returns, alone.has_data),
            )


def test_of_one_as_the_doctor_finds_them(queue: WorkQueue, zoo: list[bytes]) -> None:
    for name, item_report in zip(zoo, queue.facts(zoo), strict=True):
        holders = [lease.holder for _, lease in item_report.leases]
        found = findings_about(item_report.facts, holders)
        assert sorted(found) == sorted(ANIMALS[name.decode()].findings), name


def test_letters(queue: WorkQueue, zoo: list[bytes]) -> None:
    letters = dict(zip(zoo, examine(queue, zoo), strict=True))
    assert letters == {
        name.encode(): letter
        for letter, names in {
            "+": [
                *("leased", "leased by 0.1", "leased by 0.2", "unlisted", "in main and leased"),
                *("leased and delayed by one name", "leased and buried by one name"),
            ],
            "a": [
                *("waiting", "abandoned", "abandoned twice", "orphaned"),
                *("orphaned in a cleaner's hand", "due without a guard"),
                *("delayed without a guard", "buried without a guard", "waiting and delayed"),
                *("abandoned and delayed", "thrice in main", "in main and abandoned"),
                *("waiting and in a cleaner's hand", "a hash for its data"),
            ],
            "g": ["delayed", "buried", "due", "waiting and buried"],
            "w": [
                "delayed behind a guard that ends too early",
                "buried behind a guard that ends",
            ],
            "h": ["held", "held by 0.1", "held in no list"],
            "2": ["held by two"],
            "-": [
                *("gone", "ghost in main", "ghost in processing", "ghost everywhere"),
                *("gone and in a cleaner's hand", "gone and counted"),
            ],
            "s": ["ghost under a lease", "stray lease"],
            "e": ["endless stray lease", "endless lease of 0.1", "buried ghost"],
            "t": ["a list for its lease"],
        }.items()
        for name in names
    } | {b"leased and delayed": "+"}


def test_no_ids(queue: WorkQueue) -> None:
    assert list(facts_of_many(queue, [])) == []


def test_more_than_one_batch(queue: WorkQueue, foreign: Foreign) -> None:
    ids = [b"%d" % number for number in range(1100)]
    foreign.abandoned(*ids)
    assert "".join(examine(queue, ids)) == "a" * 1100
    assert [facts.in_processing for facts in facts_of_many(queue, ids)] == [1] * 1100


class TestTravellers:
    """Between the looks at the lists an item moves; it is seen where it is for good."""

    @pytest.fixture
    def seen_while(
        self, interleaved: Interleaved, keys: QueueKeys
    ) -> Callable[[str, Callable[[], object]], tuple[int, int]]:
        """In main and in processing, when something happens before a list is read."""

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
            (facts,) = facts_of_many(WorkQueue(interleaved, QUEUE), [b"x"])
            return facts.in_main, facts.in_processing

        return look

    @pytest.mark.parametrize("before", ["processing", "main again"])
    def test_that_is_leased(
        self, foreign: Foreign, raw: Redis, seen_while: Callable[..., tuple[int, int]], before: str
    ) -> None:
        foreign.waiting(b"x")
        seen = seen_while(before, lambda: raw.rpoplpush("jobs:queue", "jobs:processing"))
        # Seen either where it was or where it is, and never in both.
        assert seen == {"processing": (0, 1), "main again": (1, 0)}[before]

    @pytest.mark.parametrize("before", ["processing", "main again"])
    def test_that_is_returned(
        self, foreign: Foreign, raw: Redis, seen_while: Callable[..., tuple[int, int]], before: str
    ) -> None:
        foreign.abandoned(b"x")
        seen = seen_while(before, lambda: raw.rpoplpush("jobs:processing", "jobs:queue"))
        assert seen == (1, 0)

    def test_that_is_added(
        self, foreign: Foreign, raw: Redis, seen_while: Callable[..., tuple[int, int]]
    ) -> None:
        foreign.data(b"x")
        assert seen_while("processing", lambda: raw.lpush("jobs:queue", "x")) == (1, 0)


@pytest.mark.parametrize(("age_ms", "late"), [(59_000, False), (61_000, True)])
def test_an_item_is_late_a_minute_after_it_is_due(age_ms: int, late: bool) -> None:
    guard = Lease(b"rwq-delayed:", 1000)
    facts = Facts(b"x", True, 0, 0, 0, guard, 1_000_000, None, 1_000_000 + age_ms)
    assert findings_about(facts, [guard.holder]) == ([Code.DUE] if late else [])
