"""`rwq clean light` and `deep`: what was broken works again, live work is left alone."""

import pytest

from tests.conftest import Foreign, contents
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


def test_a_light_clean_returns_abandoned_items(rwq: Rwq, broken: Foreign) -> None:
    result = rwq("clean", "light", *NOW)
    assert result.as_tuple() == (0, "", "returned 1, dropped 1, pruned 1\n")
    assert broken.raw.lrange("jobs:processing", 0, -1) == [b"l1"]
    assert broken.raw.lrange("jobs:queue", 0, -1) == [b"a1", b"w1", b"w2", b"w1", b"g2"]


def test_a_deep_clean_returns_orphans_too(rwq: Rwq, broken: Foreign) -> None:
    result = rwq("clean", "deep", *NOW)
    assert (result.code, result.text) == (0, "")
    assert result.notes == "returned 2, dropped 3, pruned 1\n"
    raw = broken.raw
    assert raw.lrange("jobs:processing", 0, -1) == [b"l1"]
    assert sorted(raw.lrange("jobs:queue", 0, -1)) == [b"a1", b"o1", b"w1", b"w2"]
    assert b"jobs:lease:o1" not in contents(raw)
    assert raw.hgetall("jobs:returns") == {b"a1": b"3", b"o1": b"1"}
    deep = rwq("stats", "--deep", "-o", "json").json
    assert [deep[name] for name in ("orphaned", "duplicated", "ghosts", "abandoned")] == [0] * 4
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


@pytest.mark.parametrize("verb", ["light", "deep"])
def test_a_dry_run_reports_the_same_and_changes_nothing(
    rwq: Rwq, broken: Foreign, verb: str
) -> None:
    before = contents(broken.raw)
    dry = rwq("clean", verb, *NOW, "--dry-run", "-o", "jsonl")
    assert contents(broken.raw) == before
    real = rwq("clean", verb, *NOW, "-o", "jsonl")
    assert sorted((record["id"], record["action"]) for record in dry.jsonl) == sorted(
        (record["id"], record["action"]) for record in real.jsonl
    )
    assert {record["dry_run"] for record in dry.jsonl} == {True}
    would = {"light": "return 1, drop 1, prune 1", "deep": "return 2, drop 3, prune 1"}
    assert dry.notes == f"dry run: would {would[verb]}\n"


def test_the_summary_is_json_in_json(rwq: Rwq, broken: Foreign) -> None:
    assert rwq("clean", "light", *NOW, "-o", "json").as_tuple() == (
        0,
        '{"queue": "jobs", "queue_b64": null, "dry_run": false, "returned": 1, "dropped": 1, '
        '"promoted": 0, "pruned": 1, "buried": 0}\n',
        "",
    )
    assert broken.raw.llen("jobs:processing") == 1


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


class TestBuryAfter:
    def test_an_item_is_buried_after_its_last_return(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.abandoned(b"a1", b"a2")
        foreign.raw.hset(foreign.keys.returns, "a1", 3)
        clean = ("clean", "light", *NOW, "--bury-after", "3")
        dry = rwq(*clean, "--dry-run", "-o", "jsonl")
        result = rwq(*clean, "-o", "jsonl")
        assert dry.notes == "dry run: would return 1, bury 1\n"
        assert result.notes == "returned 1, buried 1\n"
        assert sorted((r["id"], r["action"], r["state"], r["where"]) for r in result.jsonl) == [
            ("a1", "buried", "abandoned", "processing"),
            ("a2", "returned", "abandoned", "processing"),
        ]
        assert rwq("ls", "buried", "-o", "json").json[0]["reason"] == "returned 3 times"
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a2"]


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
