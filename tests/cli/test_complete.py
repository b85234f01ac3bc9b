"""`rwq complete`: the item is gone from everywhere, one call wins, and its report says which."""

import os

import pytest
import redis

from tests.cli.driver import Rwq
from tests.conftest import Foreign, contents

OWN = f"rwq:tester@{os.uname().nodename}:s1"


def test_wherever_it_is_nothing_is_left(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    foreign.leased(b"l")
    foreign.abandoned(b"a")
    foreign.data(b"o")
    foreign.delayed(b"d", 9_999_999_999_999)
    foreign.buried(b"b")
    result = rwq("complete", "w", "l", "a", "o", "d", "b")
    assert result.as_tuple() == (0, "", "completed 6, missing 0, not owner 0\n")
    assert foreign.raw.keys() == []


def test_what_is_not_there(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    assert rwq("complete", "x").as_tuple() == (1, "", "completed 0, missing 1, not owner 0\n")
    assert rwq("complete", "x", "a").as_tuple() == (3, "", "completed 1, missing 1, not owner 0\n")


def test_one_of_two_wins(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    assert rwq("complete", "a").code == 0
    assert rwq("complete", "a").code == 1


def test_an_id_that_is_given_twice_is_one(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    assert rwq("complete", "a", "a").as_tuple() == (
        0,
        "",
        "completed 1, missing 0, not owner 0\n",
    )


def test_the_outcome_of_each_in_jsonl(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    foreign.leased(b"l", holder=b"worker-7")
    result = rwq("complete", "a", "l", "gone", "--owner", "me", "-o", "jsonl")
    assert [(record["id"], record["status"], record["holder"]) for record in result.jsonl] == [
        ("a", "not-owner", None),
        ("l", "not-owner", "worker-7"),
        ("gone", "missing", None),
    ]
    assert result.notes == "completed 0, missing 1, not owner 2\n"
    assert result.code == 1


class TestOwner:
    def test_completes_only_what_it_holds(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"mine", holder=b"me")
        foreign.leased(b"theirs", holder=b"them")
        result = rwq("complete", "mine", "theirs", "--owner", "me", "-o", "ids")
        assert result.as_tuple() == (3, "mine\n", "completed 1, missing 0, not owner 1\n")
        assert foreign.raw.lrange("jobs:processing", 0, -1) == [b"theirs"]

    def test_a_lease_that_ended_is_held_by_nobody(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.abandoned(b"a")
        assert rwq("complete", "a", "--owner", "me").code == 1
        assert foreign.raw.exists("jobs:item:a") == 1

    @pytest.mark.parametrize("generation", ["old", "new"])
    def test_workers_of_both_generations(self, rwq: Rwq, foreign: Foreign, generation: str) -> None:
        foreign.abandoned(b"a")
        foreign.lease(b"a", holder=b"me", generations=generation)
        assert rwq("complete", "a", "--owner", "me").code == 0
        assert foreign.raw.keys() == []

    def test_what_was_leased_by_hand(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        rwq("lease")
        assert rwq("complete", "a", "--owner", OWN).code == 0


class TestDryRun:
    def test_changes_nothing_and_reports_the_same(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        foreign.leased(b"l", ttl_ms=None)
        before = contents(foreign.raw)
        for words in (("a", "l", "gone"), ("gone",), ("a", "l", "--owner", "them")):
            dry = rwq("complete", *words, "--dry-run", "-o", "jsonl")
            assert contents(foreign.raw) == before
            assert dry.notes.startswith("dry run, nothing changed: completed ")
        dry = rwq("complete", "a", "l", "gone", "--dry-run", "-o", "json")
        real = rwq("complete", "a", "l", "gone", "-o", "json")
        assert dry.code == real.code == 3
        assert dry.json == {**real.json, "dry_run": True}


class TestStdin:
    def test_many_in_batches(self, rwq: Rwq, raw: redis.Redis) -> None:
        ids = [b"%05d" % number for number in range(5000)]
        rwq("add", "--id-from", "line", stdin=b"\n".join(ids))
        rwq("lease", "-n", "5000", "-o", "ids")
        result = rwq("complete", "-", stdin=b"\n".join(ids))
        assert result.as_tuple() == (0, "", "completed 5,000, missing 0, not owner 0\n")
        assert raw.keys() == []

    def test_beside_others_it_stands_not(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        assert rwq("complete", "a", "-", stdin=b"a\n").as_tuple() == (
            2,
            "",
            "rwq: error: - reads the IDs from stdin and stands alone; drop the other IDs\n",
        )
        assert foreign.raw.llen("jobs:queue") == 1

    def test_none_given(self, rwq: Rwq) -> None:
        assert rwq("complete", stdin=b"a\n").as_tuple() == (
            2,
            "",
            "rwq: error: no items chosen; name IDs, give - to read them from stdin, choose by "
            "--state, --match, --id-glob, --older-than or -n, or say --all\n",
        )

    def test_an_empty_argument(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        assert rwq("complete", "a", "").as_tuple() == (
            2,
            "",
            "rwq: error: an ID is empty; an unset variable in the script?\n",
        )
        assert foreign.raw.llen("jobs:queue") == 1
