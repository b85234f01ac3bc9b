"""`rwq rm`: items and every trace of them go, after a question, and into an undo file."""

import json
import os
import stat

import pytest

from tests.conftest import Foreign, contents
from tests.driver import UNDO, Rwq, undo_files


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
    assert end == {"taken": 1}
    assert (header["rwq_export"], header["queue"]) == (1, "jobs")
    assert header["undo"] == {
        "verb": "rm",
        "server": rwq.variables["RWQ_URL"],
        "context": None,
        "to": None,
        "to_b64": None,
        "to_server": None,
        "to_context": None,
        "by": f"tester@{os.uname().nodename}",
    }
    assert record == {
        "id": "a",
        "id_b64": None,
        "data": "data of a",
        "data_b64": None,
        "state": "waiting",
        "place": "main",
        "lease": None,
        "due_ms": None,
        "buried_ms": None,
        "reason": None,
        "returns": None,
        "nearer": "next",
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_no_undo_file_is_left_if_nothing_is_removed(rwq: Rwq) -> None:
    assert rwq("rm", "gone", "--yes").as_tuple() == (
        1,
        "",
        "rwq: gone: no such item\nmissing 1\n",
    )
    assert rwq("rm", "gone", "--yes", "-o", "json").json["undo_file"] is None
    assert undo_files(rwq) == []


def test_ids_from_stdin_can_be_any_bytes(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"\xff\n", b"b")
    assert rwq("rm", "-", "-0", "--yes", stdin=b"\xff\n\0b\0").code == 0
    assert foreign.raw.keys() == []
    assert rwq("undo", "--yes").code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"b", b"\xff\n"]


class TestConfirmation:
    def test_the_question_has_the_number_of_leased_items(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"w")
        foreign.leased(b"l1", b"l2")
        code, seen = rwq.asked("rm", "w", "l1", "l2", type_in=[(b"[y/N] ", b"y\n")])
        assert code == 0
        assert b"rwq will remove 3 items of jobs (2 of them leased) on" in seen
        assert foreign.raw.keys() == []

    def test_the_default_is_no(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"w")
        before = contents(foreign.raw)
        code, seen = rwq.asked("rm", "w", type_in=[(b"[y/N] ", b"\n")])
        assert (code, b"declined" in seen) == (1, True)
        assert contents(foreign.raw) == before

    @pytest.mark.parametrize("line", ["rm a", "rm --all", "mv --to other a", "purge"])
    def test_without_a_terminal_it_needs_yes(self, rwq: Rwq, foreign: Foreign, line: str) -> None:
        foreign.waiting(b"a")
        before = contents(foreign.raw)
        result = rwq(*line.split())
        said = "rwq: error: this needs confirmation, and there is no terminal to ask on: rwq will "
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith(said)
        assert result.notes.endswith(f" on {rwq.variables['RWQ_URL']}; use --yes\n")
        assert contents(foreign.raw) == before
        assert undo_files(rwq) == []


@pytest.mark.parametrize(("kib", "code"), [(20, 1), (1900, 3)])
def test_nothing_is_removed_that_does_not_fit_on_the_disk(
    rwq: Rwq, foreign: Foreign, kib: int, code: int
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(15_000)))
    before = contents(foreign.raw)
    result = rwq.shell(f"ulimit -f {kib}; PYTHONDONTWRITEBYTECODE=1 rwq rm --all --yes")
    *done, error = result.notes.splitlines()
    assert (result.code, error.startswith("rwq: error: cannot write the undo file")) == (code, True)
    assert "file too large" in error
    # What was written down before is removed, the rest is as it was.
    listed = foreign.raw.lrange("jobs:queue", 0, -1)
    assert before[b"jobs:queue"][: len(listed)] == listed
    assert foreign.raw.dbsize() == len(listed) + 1
    removed = 15_000 - len(listed)
    assert [line.partition("; ")[0] for line in done] == [f"removed {removed:,}"] * bool(removed)
    assert bool(removed) == (code == 3)
    assert rwq("undo", "--yes").code == code // 3 ^ 1
    assert contents(foreign.raw) == before


def test_nothing_is_removed_without_a_state_directory(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    (rwq.home / "file").touch()
    result = rwq("rm", "a", "--yes", variables={"XDG_STATE_HOME": str(rwq.home / "file")})
    assert result.code == 1
    assert result.notes.startswith("rwq: error: cannot write the undo file ")
    assert result.notes.count("\n") == 1
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]
