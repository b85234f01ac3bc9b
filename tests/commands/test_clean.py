"""`rwq clean light` and `deep`: what was broken works again, live work is left alone."""

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

NOW = ("--grace", "0")


@pytest.fixture
def broken(foreign: Foreign) -> Foreign:
    """Of each kind of damage one, beside healthy items."""
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l1", ttl_ms=None)
    foreign.delayed(b"d1", 9_999_999_999_999)
    foreign.buried(b"b1")
    foreign.abandoned(b"a1")
    foreign.data(b"o1")
    foreign.raw.lpush(foreign.keys.processing, b"g1")
    foreign.raw.rpush(foreign.keys.main, b"g2")
    foreign.raw.lpush(foreign.keys.main, b"w1")
    foreign.raw.hset(foreign.keys.returns, mapping={"a1": 2, "gone": 1})
    return foreign


def test_the_summary_counts_what_was_done(rwq: Rwq, broken: Foreign) -> None:
    result = rwq("clean", "light", *NOW)
    assert result.as_tuple() == (0, "", "returned 1, dropped 1, pruned 1\n")
    assert broken.raw.lrange("jobs:queue", 0, -1) == [b"a1", b"w1", b"w2", b"w1", b"g2"]
    assert rwq("clean", "deep", *NOW).notes == "returned 1, dropped 2\n"
    assert rwq("clean", "deep", *NOW).notes == "nothing to clean\n"


def test_each_id_is_printed_with_the_action_and_its_reason(rwq: Rwq, broken: Foreign) -> None:
    result = rwq("clean", "deep", *NOW, "-o", "jsonl")
    outputs = [
        (record["id"], record["action"], record["state"], record["where"])
        for record in result.jsonl
    ]
    assert sorted(outputs) == sorted(
        [
            ("a1", "returned", "abandoned", "processing"),
            ("g1", "dropped", "ghost", "processing"),
            ("o1", "returned", "orphaned", None),
            ("g2", "dropped", "ghost", "main"),
            ("w1", "dropped", "duplicated", "main"),
            ("gone", "pruned", "ghost", "returns"),
        ]
    )
    assert broken.raw.exists("jobs:item:a1")


class TestGrace:
    def test_it_is_waited_only_if_something_looks_broken(
        self, rwq: Rwq, foreign: Foreign, slept_s: list[float]
    ) -> None:
        foreign.waiting(b"w1")
        foreign.leased(b"l1")
        assert rwq("clean", "light").code == 0
        assert rwq("clean", "deep").code == 0
        assert slept_s == []

    def test_it_is_a_second_by_default(
        self, rwq: Rwq, foreign: Foreign, slept_s: list[float]
    ) -> None:
        foreign.abandoned(b"a1")
        assert rwq("clean", "light").notes == "returned 1\n"
        assert slept_s == [1.0]


def test_a_dry_run_names_the_first_items_for_people(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(*(b"%d" % number for number in range(7)), b"\x1b[2J")
    foreign.raw.hset(foreign.keys.returns, "1", 3)
    words = ("clean", "light", *NOW, "--dry-run", "--bury-after", "3")
    shown = (
        "would return 0: abandoned\nwould bury 1: abandoned\nwould return 2: abandoned\n"
        "would return 3: abandoned\nwould return 4: abandoned\nand 3 more; -o ids lists all\n"
    )
    summary = "dry run: would return 7, bury 1\n"
    for output in ("table", "plain"):
        assert rwq(*words, "-o", output).as_tuple() == (0, "", shown + summary)
    assert rwq(*words, "-o", "ids").notes.endswith(summary)
    assert rwq(*words, "-o", "jsonl").notes == summary
    assert rwq(*words, "-Q").notes == summary
    assert rwq("clean", "light", *NOW).notes == "returned 8\n"
