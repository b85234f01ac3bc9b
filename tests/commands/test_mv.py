"""`rwq mv`: to the end of another queue, in order; what somebody holds stays."""

import os

from tests.conftest import Foreign, contents
from tests.driver import UNDO, Rwq, undo_files


def test_all_items_that_nobody_holds_are_moved(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.leased(b"l", ttl_ms=None)
    result = rwq("mv", "--to", "other", "--all", "--yes")
    (file,) = undo_files(rwq)
    assert result.as_tuple() == (
        0,
        "",
        f"moved 3 to other; undo file {UNDO}/{file.name}; rwq undo puts them back\n",
    )
    assert foreign.raw.lrange("other:queue", 0, -1) == [b"c", b"b", b"a"]
    assert foreign.raw.exists("jobs:queue") == 0
    assert foreign.raw.lrange("jobs:processing", 0, -1) == [b"l"]


def test_force_chooses_also_what_is_leased_delayed_or_buried(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    foreign.leased(b"l")
    foreign.leased(b"h", ttl_ms=None)
    foreign.delayed(b"d", 9_999_999_999_999)
    foreign.buried(b"b")
    for words in (["--all"], ["--id-glob", "*"], ["-n", "9"]):
        result = rwq("mv", "--to", "other", *words, "--force", "--dry-run", "-o", "jsonl")
        assert sorted(r["id"] for r in result.jsonl) == ["b", "d", "h", "l", "w"], words
    result = rwq("mv", "--to", "other", "--state", "leased", "--force", "--dry-run", "-o", "ids")
    assert result.text == "l\n"
    result = rwq("mv", "--to", "other", "--all", "--force", "--yes")
    assert (result.code, result.notes.partition(";")[0]) == (
        0,
        "moved 5 to other",
    )
    assert sorted(foreign.raw.lrange("other:queue", 0, -1)) == [b"b", b"d", b"h", b"l", b"w"]
    assert foreign.raw.keys("jobs:*") == []


def test_held_and_existing_items_are_not_moved(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    foreign.leased(b"l", ttl_ms=None)
    foreign.raw.set("other:item:b", "another")
    result = rwq("mv", "--to", "other", "--yes", "a", "b", "l", "-o", "jsonl")
    assert result.code == 3
    assert {r["id"]: (r["status"], r["holder"]) for r in result.jsonl} == {
        "a": ("moved", None),
        "b": ("conflict", None),
        "l": ("not-owner", "them"),
    }
    assert foreign.raw.get("other:item:b") == b"another"


def test_the_same_queue_is_an_error(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    result = rwq("mv", "--to", "jobs", "--yes", "a")
    assert (result.code, result.text) == (2, "")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]


def test_undo_returns_the_items_that_still_wait(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    before = contents(foreign.raw)
    rwq("mv", "--to", "other", "--all", "--yes")
    assert rwq("undo", "--yes").code == 0
    assert contents(foreign.raw) == before
    rwq("mv", "--to", "other", "--all", "--yes")
    rwq("lease", "-q", "other", "-o", "ids")
    (file,) = (file for file in undo_files(rwq) if file.suffix == ".jsonl")
    result = rwq("undo", "--yes")
    own = f"rwq:tester@{os.uname().nodename}:s1"
    assert result.as_tuple() == (
        3,
        "",
        f"rwq: a: leased by {own} for 4m59s; try again when it is free\n"
        "restored 2, not owner 1; "
        f"mv of jobs, from {UNDO}/{file.name}; to try the rest again, name this file\n",
    )
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"c", b"b"]
    # It is kept, to be tried again.
    assert file in undo_files(rwq)
    assert rwq("release", "-q", "other", "a").code == 0
    again = rwq("undo", "--yes", str(file), "-o", "json").json
    assert (again["restored"], again["restored_before"]) == (1, 2)


def test_the_question_counts_what_will_be_moved(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.leased(b"l")
    Foreign(foreign.raw, b"other").waiting(b"c")
    words = ("mv", "--to", "other", "a", "b", "c", "l", "gone")
    code, seen = rwq.on_terminal(*words, type_in=[(b"[y/N] ", b"n\n")])
    assert (code, b"rwq will move 2 items of jobs to other on" in seen) == (1, True)
    code, seen = rwq.on_terminal(*words, "--force", type_in=[(b"[y/N] ", b"y\n")])
    assert b"rwq will move 3 items of jobs (1 of them leased) to other on" in seen
    assert (code, b"moved 3, conflict 1, missing 1" in seen) == (3, True)


def test_what_cannot_be_moved_needs_no_question(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"l", ttl_ms=None)
    result = rwq("mv", "--to", "other", "l")
    assert result.as_tuple() == (
        1,
        "",
        "rwq: l: leased by them without expiry; --force moves it anyway\nnot owner 1 to other\n",
    )
