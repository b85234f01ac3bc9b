"""`rwq mv`: to the end of another queue, in order; what somebody holds stays."""

import os

import pytest
import redis

from tests.conftest import Foreign, StartServer
from tests.driver import UNDO, Rwq, configure, undo_files


def test_undo_returns_the_items_that_still_wait(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    rwq("mv", "--to", "other", "--all", "--yes")
    rwq("lease", "-q", "other", "-o", "ids")
    (file,) = undo_files(rwq)
    own = f"rwq:tester@{os.uname().nodename}:s1"
    assert rwq("undo", "--yes").as_tuple() == (
        3,
        "",
        f"rwq: a: leased by {own} for 4m59s; try again when it is free\n"
        "restored 2, not owner 1; "
        f"mv of jobs, from {UNDO}/{file.name}; to try the rest again, name this file\n",
    )
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"c", b"b"]
    assert rwq("release", "-q", "other", "a").code == 0
    again = rwq("undo", "--yes", str(file), "-o", "json").json
    assert (again["restored"], again["restored_before"]) == (1, 2)


def test_the_question_counts_what_will_be_moved(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.leased(b"l")
    Foreign(foreign.raw, b"other").waiting(b"c")
    words = ("mv", "--to", "other", "a", "b", "c", "l", "gone")
    code, seen = rwq.asked(*words, type_in=[(b"[y/N] ", b"n\n")])
    assert (code, b"rwq will move 2 items of jobs to other on" in seen) == (1, True)
    code, seen = rwq.asked(*words, "--force", type_in=[(b"[y/N] ", b"y\n")])
    assert b"rwq will move 3 items of jobs (1 of them leased) to other on" in seen
    assert (code, b"moved 3, conflict 1, missing 1" in seen) == (3, True)


class TestElsewhere:
    @pytest.fixture
    def url(self, start_server: StartServer) -> str:
        return start_server().url

    def test_items_go_to_a_server_in_order_and_back(
        self, rwq: Rwq, foreign: Foreign, url: str
    ) -> None:
        foreign.waiting(b"a", b"b", b"c")
        foreign.leased(b"l", ttl_ms=None)
        there = redis.Redis.from_url(url)
        Foreign(there).waiting(b"first", b"c")
        result = rwq("mv", "--all", "--to", "jobs", "--to-url", url, "--yes")
        assert result.as_tuple() == (
            3,
            "",
            f"rwq: c: jobs on {url} has an item or a lease with this ID; complete or move one of "
            f"the two first\nmoved 2, conflict 1 to jobs on {url}; undo file {UNDO}/1.jsonl; "
            "rwq undo puts them back\n",
        )
        assert there.lrange("jobs:queue", 0, -1) == [b"b", b"a", b"c", b"first"]
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"c"]
        assert rwq("undo", "--list", "--fields", "to,to_server").text == f"jobs\t{url}\n"
        code, seen = rwq.asked("undo", columns=300, type_in=[(b"[y/N] ", b"y\n")])
        assert f"Undo mv of 2 items from jobs to jobs on {url}, " in seen.decode()
        assert (code, there.lrange("jobs:queue", 0, -1)) == (0, [b"c", b"first"])
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"b", b"a", b"c"]

    def test_a_context_names_the_server(self, rwq: Rwq, foreign: Foreign, url: str) -> None:
        foreign.waiting(b"a")
        configure(rwq.home, f'[contexts.new]\nurl = "{url}"\nread_only = true\n')
        words = ("mv", "a", "--to", "jobs", "--to-context", "new", "--yes")
        assert "rwq: error: context new is read-only; " in rwq(*words).notes
        assert rwq(*words, "--to-url", url).code == 2
        configure(rwq.home, f'[contexts.new]\nurl = "{url}"\n')
        assert rwq(*words).notes.startswith("moved 1 to jobs on new; undo file ")
        assert rwq("undo", "--yes").code == 0
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]

    def test_no_password_of_this_server_goes_there(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        guarded = ("--requirepass", "secret")
        here, url = (start_server(*guarded, password="secret").url for _ in range(2))
        words = ("mv", "a", "--to", "jobs", "--to-url", url, "--yes")
        result = rwq(*words, variables={"RWQ_PASSWORD": "secret", "RWQ_URL": here})
        assert (result.code, f"{url} rejected the password" in result.notes) == (69, True)
        assert result.notes.endswith(
            "; check the password in --to-url, or use a context that has it\n"
        )

    def test_the_hint_names_what_gives_the_server(self, rwq: Rwq) -> None:
        words = ("mv", "--all", "--to", "jobs", "--yes")
        result = rwq(*words, "--to-url", "redis://127.0.0.1:1")
        assert result.notes.endswith("; check --to-url, and that the server runs\n")
        configure(rwq.home, '[contexts.new]\nurl = "redis://127.0.0.1:1"\n')
        result = rwq(*words, "--to-context", "new", "-o", "json")
        assert "check the url of context new, and" in result.notes
