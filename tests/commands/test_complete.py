"""`rwq complete`: the item is gone from everywhere, one call wins, and its report says which."""

import pytest

from tests.conftest import Foreign, lasts
from tests.driver import Rwq


class TestSession:
    """`--mine`, and `--owner` with the name of a session."""

    def test_the_short_name_is_that_of_a_session_of_this_user_here(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")
        rwq("lease", variables={"RWQ_SESSION": "nightly"})
        foreign.leased(b"whole", holder=b"nightly")
        foreign.leased(b"elsewhere", holder=b"rwq:tester@elsewhere:nightly")
        words = ("complete", "a", "whole", "elsewhere", "--owner", "nightly", "-o", "jsonl")
        statuses = [record["status"] for record in rwq(*words).jsonl]
        assert statuses == ["completed", "completed", "not-owner"]

    def test_an_empty_owner_is_an_unset_variable(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a")
        result = rwq("complete", "a", "--owner", "")
        assert (result.code, foreign.raw.exists("jobs:item:a")) == (2, 1)
        assert rwq("complete", "a", "--owner", "me", "--mine").code == 2


class TestResult:
    def kept(self, foreign: Foreign, item_id: str) -> dict[bytes, bytes]:
        fields: dict[bytes, bytes] = foreign.raw.hgetall(f"jobs:result:{item_id}")
        fields.pop(b"completed_ms", None)
        return fields

    def test_each_item_gets_the_result(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", b"b")
        result = rwq("complete", "a", "b", "gone", "--result", "-", stdin=b"\x00\n")
        assert result.as_tuple() == (
            3,
            "",
            "rwq: gone: no such item\ncompleted 2, missing 1\n",
        )
        wanted = {b"status": b"completed", b"result": b"\x00\n", b"holder": b"them"}
        assert self.kept(foreign, "a") == self.kept(foreign, "b") == wanted
        assert sorted(foreign.raw.keys()) == [b"jobs:result:a", b"jobs:result:b"]
        assert lasts(foreign.raw, 3600, "jobs:result:a")

    @pytest.mark.parametrize(
        ("words", "status"),
        [
            (("--rejected",), b"rejected"),
            (("--result-ttl", "90s"), b"completed"),
            (("--rejected", "--result-ttl", "90s"), b"rejected"),
        ],
    )
    def test_an_outcome_without_a_result_is_kept(
        self, rwq: Rwq, foreign: Foreign, words: tuple[str, ...], status: bytes
    ) -> None:
        foreign.waiting(b"a")
        assert rwq("complete", "a", *words).code == 0
        assert self.kept(foreign, "a") == {b"status": status}
        left_ms = foreign.raw.pttl("jobs:result:a")
        assert round(left_ms / 1000) == (90 if "90s" in words else 3600)
