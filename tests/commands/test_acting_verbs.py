"""`rwq bury`, `release`, `rm` and `purge`: questions, reasons, summaries and undo files."""

import json
import stat

import pytest

from tests.conftest import Foreign, contents
from tests.driver import UNDO, Rwq, undo_files

pytestmark = pytest.mark.usefixtures("slept_s")


def test_of_a_thousand_that_options_choose_the_queue_has_to_be_named_on_a_terminal(
    rwq: Rwq, foreign: Foreign
) -> None:
    foreign.abandoned(*(b"%d" % number for number in range(1000)))
    before = contents(foreign.raw)
    asked = b"Type the queue's name to continue: "
    code, seen = rwq.asked("release", "--all", type_in=[(asked, b"other\n")])
    said = "rwq will release 1,000 items of jobs "
    assert (code, said in " ".join(seen.decode().split())) == (1, True)
    assert contents(foreign.raw) == before
    # Fewer, or where nobody can be asked, they are not.
    assert rwq.asked("release", "-n", "999", type_in=[])[0] == 0
    assert rwq("release", "--all").code == 0


def test_the_reason_of_a_burial_is_kept(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.abandoned(b"d")
    result = rwq("bury", "d", "b", "--reason", "crashes the parser")
    assert result.as_tuple() == (0, "", "buried 2\n")
    listed = rwq("ls", "buried", "-n", "0", "-o", "json").json
    assert [(each["id"], each["reason"]) for each in listed] == [
        ("b", "crashes the parser"),
        ("d", "crashes the parser"),
    ]
    shown = rwq("show", "b", "-o", "table").lines
    assert "reason  crashes the parser" in [line.lstrip() for line in shown]
    record = rwq("show", "b", "-o", "json").json
    assert record["next"] == "Nothing, until somebody kicks it."
    assert record["commands"] == ["rwq kick -q jobs b", "rwq complete -q jobs b"]


def test_release_without_ids_is_of_all_of_this_session(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"theirs")
    foreign.leased(b"glob", holder=b"rwq:tester@*:s1")
    for later in ((), ("--delay", "1h"), ("--front",)):
        foreign.waiting(b"a", b"b", b"c")
        rwq("lease", "-n", "2")
        before = contents(foreign.raw)
        dry = rwq("release", "--mine", "--dry-run", "-o", "ids", *later)
        assert (sorted(dry.text.split()), contents(foreign.raw)) == (["a", "b"], before)
        result = rwq("release", "--mine", "-o", "ids", *later)
        assert (result.code, sorted(result.text.split())) == (0, ["a", "b"])
        assert sorted(rwq("leases", "-o", "ids").text.split()) == ["glob", "theirs"]
        rwq("rm", "a", "b", "c", "--yes")
    assert rwq("release", "--mine").code == 0


def test_the_undo_command_reaches_the_same_queue_and_server(rwq: Rwq, foreign: Foreign) -> None:
    url = rwq.variables["RWQ_URL"]
    foreign.waiting(b"a")
    removed = rwq("rm", "a", "--yes", "-u", url, "-q", "jobs")
    command = removed.notes.rpartition("; ")[2].removesuffix(" puts it back\n")
    assert command == f"rwq undo -u {url} -q jobs"
    assert rwq(*command.split()[1:], "--yes", variables={"RWQ_URL": "", "RWQ_QUEUE": ""}).code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]


def test_the_summary_has_the_undo_file(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    result = rwq("rm", "a", "gone", "--yes")
    (file,) = undo_files(rwq)
    summary = f"removed 1, missing 1; undo file {UNDO}/{file.name}; rwq undo puts it back\n"
    assert result.as_tuple() == (3, "", f"rwq: gone: no such item\n{summary}")
    assert contents(foreign.raw) == {b"jobs:item:b": b"data of b", b"jobs:queue": [b"b"]}
    header, record, end = map(json.loads, file.read_text().splitlines())
    assert (header["queue"], header["undo"]["verb"], end) == ("jobs", "rm", {"taken": 1})
    assert (record["id"], record["data"], record["place"]) == ("a", "data of a", "main")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_purge_needs_the_name_of_the_queue(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(1000)))
    foreign.data(b"orphan")
    asks = b"rwq will remove all 1,001 items of jobs on"
    before = contents(foreign.raw)
    code, seen = rwq.asked("purge", type_in=[(b"to continue: ", b"y\n")])
    assert (code, asks in seen) == (1, True)
    assert contents(foreign.raw) == before
    code, _ = rwq.asked("purge", type_in=[(b"to continue: ", b"jobs\n")])
    assert (code, foreign.raw.keys()) == (0, [])


def test_other_keys_under_the_prefix_of_results_stay(rwq: Rwq, foreign: Foreign) -> None:
    fields = {"status": "completed", "completed_ms": 1_700_000_000_000, "result": b"\x00\xfe"}
    for item_id in (b"gone", b"\xff"):
        foreign.raw.hset(b"jobs:result:" + item_id, mapping=fields)  # type: ignore[arg-type]
    foreign.raw.hset("jobs:result:odd", "x", "y")
    foreign.raw.set("jobs:result:s", "t")
    said = "rwq: kept 2 of other programs, with names like those of results\n"
    dry = rwq("purge", "--dry-run")
    assert dry.notes == f"{said}dry run: results 2\n"
    result = rwq("purge", "--yes")
    (file,) = undo_files(rwq)
    summary = f"results 2; undo file {UNDO}/{file.name}; rwq undo puts them back\n"
    assert result.as_tuple() == (0, "", said + summary)
    assert sorted(foreign.raw.keys()) == [b"jobs:result:odd", b"jobs:result:s"]
    foreign.raw.delete("jobs:result:s")
    assert rwq("purge", "-o", "json").notes == said.replace("2", "1")
