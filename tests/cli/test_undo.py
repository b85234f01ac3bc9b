"""`rwq undo`: what was taken away comes back as it was."""

import pytest

from tests.cli.driver import Rwq
from tests.cli.test_rm import undo_files
from tests.conftest import Foreign, contents


def test_a_purge(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"\xff", b"c")
    foreign.leased(b"l", ttl_ms=None)
    foreign.buried(b"b")
    foreign.data(b"o")
    foreign.raw.hset("jobs:returns", "b", 2)
    before = contents(foreign.raw)
    rwq("purge", "--yes")
    (file,) = undo_files(rwq)
    result = rwq("undo")
    assert result.as_tuple() == (
        0,
        "",
        f"restored 6, already there 0, conflicts 0, rejected 0; purge of jobs, from {file}\n",
    )
    assert contents(foreign.raw) == before
    assert [each.name for each in undo_files(rwq)] == [f"{file.name}.undone"]
    assert rwq("undo").code == 1
    # By its name it can be put back again.
    again = rwq("undo", f"{file}.undone")
    assert again.notes.startswith("restored 0, already there 6, ")


def test_before_what_was_added_since(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    rwq("purge", "--yes")
    foreign.waiting(b"new")
    assert rwq("undo").code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"new", b"c", b"b", b"a"]


def test_to_the_end_that_was_nearer(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(10)))
    rwq("rm", "--yes", "1", "3", "6", "8")
    assert rwq("undo").code == 0
    ids = foreign.raw.lrange("jobs:queue", 0, -1)[::-1]
    assert b"".join(ids) == b"1302457968"


def test_the_latest_and_that_of_a_queue(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    Foreign(foreign.raw, b"other").waiting(b"o")
    rwq("rm", "a", "--yes")
    rwq("rm", "b", "--yes")
    rwq("rm", "o", "-q", "other", "--yes")
    assert rwq("undo", "-q", "jobs", "-o", "ids").text == "b\n"
    assert rwq("undo", "-o", "ids").text == "o\n"
    assert rwq("undo", "-o", "json").json["restored"] == 1
    result = rwq("undo")
    assert (result.code, "there is nothing to undo" in result.notes) == (1, True)


def test_an_id_that_was_used_anew_is_left(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    rwq("add", "--id", "a", "anew")
    result = rwq("undo")
    assert result.code == 3
    assert result.notes.startswith("restored 1, already there 0, conflicts 1, rejected 0; ")
    assert foreign.raw.get("jobs:item:a") == b"anew"
    assert [file.suffix for file in undo_files(rwq)] == [".jsonl"]


def test_another_server(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    rwq("rm", "a", "--yes")
    elsewhere = rwq.variables["RWQ_URL"] + "?db=1"
    result = rwq("undo", "-u", elsewhere)
    assert (result.code, result.text) == (2, "")
    assert result.notes == (
        f"rwq: error: these items were taken from {rwq.variables['RWQ_URL']}, and this is "
        f"{elsewhere}; name that server with -u, or say --anywhere\n"
    )
    assert rwq("undo", "-u", elsewhere, "--anywhere").code == 0
    assert rwq("ls", "-u", elsewhere, "-o", "ids").text == "a\n"


def test_what_was_written_down_but_not_taken_is_left(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    (file,) = undo_files(rwq)
    lines = file.read_text().splitlines(keepends=True)
    with file.open("a") as more:
        more.write('{"kept": true, "id": "b", "id_b64": null}\n')
        # It was killed while it wrote this one down.
        more.write(lines[1][: len(lines[1]) // 2])
    assert rwq("undo", "-o", "ids").text == "a\n"


def test_written_down_twice_counts_as_the_last_says(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    rwq("rm", "a", "--yes")
    (file,) = undo_files(rwq)
    line = file.read_text().splitlines(keepends=True)[1]
    with file.open("a") as more:
        more.write('{"kept": true, "id": "a", "id_b64": null}\n' + line)
    assert rwq("undo", "-o", "ids").text == "a\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not begin with the header of an export"),
        ("no json\n", "does not begin with the header of an export"),
        ('{"rwq_export": 2}\n', "is an export of version 2, and this rwq reads up to 1"),
        ('{"rwq_export": 1, "queue": "jobs"}\n', "is an export and no undo file"),
    ],
)
def test_no_undo_file(rwq: Rwq, text: str, said: str) -> None:
    (rwq.home / "file").write_text(text)
    result = rwq("undo", str(rwq.home / "file"))
    assert (result.code, result.text, said in result.notes) == (2, "", True)
