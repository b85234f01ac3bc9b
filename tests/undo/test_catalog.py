"""`rwq undo --list` and `--prune`: what undo files there are, and deleting old ones."""

import fcntl
import json
import os
import re
from pathlib import Path

import pytest

from tests.conftest import Foreign
from tests.driver import Result, Rwq, undo_files

DAY_MS = 86_400_000
BACK = ("undo", "--yes")


def listed(rwq: Rwq, *words: str) -> list[dict[str, object]]:
    """The undo files as `rwq` lists them."""
    records: list[dict[str, object]] = rwq("undo", "--list", *words, "-o", "json").json
    return records


def states(rwq: Rwq) -> list[tuple[object, ...]]:
    """Of each file, latest first: the command, the number of items, and the state."""
    return [(each["verb"], each["items"], each["state"]) for each in listed(rwq)]


def aged(file: Path, days: int) -> None:
    """Let a file be this much older."""
    first, *rest = file.read_bytes().splitlines(keepends=True)
    header = json.loads(first)
    header["undo"]["written_ms"] -= days * DAY_MS
    # The server's clock does not count.
    header["exported_ms"] += 400 * DAY_MS
    file.write_bytes(b"".join([json.dumps(header).encode() + b"\n", *rest]))


class TestList:
    def test_every_file_is_listed_latest_first(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b", b"c", b"d", b"e")
        foreign.raw.hset("jobs:result:r", mapping={"status": "completed", "completed_ms": 1})
        rwq("edit", "a", "-f", "-", stdin=b"new")
        rwq("rm", "a", "gone", "--yes")
        rwq("mv", "b", "--to", "other", "--yes")
        rwq("complete", "--id-glob", "[cd]", "--yes")
        rwq("purge", "--yes")
        files = undo_files(rwq)[::-1]
        records = listed(rwq)
        assert [(each["number"], each["file"]) for each in records] == [
            (5 - at, str(file)) for at, file in enumerate(files)
        ]
        header = json.loads(files[0].read_text().splitlines()[0])
        assert records[0]["time_ms"] == header["undo"]["written_ms"]
        assert [
            (each["verb"], each["to"], each["items"], each["results"], each["state"])
            for each in records
        ] == [
            ("purge", None, 1, 1, "unused"),
            ("complete", None, 2, 0, "unused"),
            ("mv", "other", 1, 0, "unused"),
            ("rm", None, 1, 0, "unused"),
            ("edit", None, 1, 0, "unused"),
        ]
        assert {(each["queue"], each["server"], each["by"]) for each in records} == {
            ("jobs", rwq.variables["RWQ_URL"], f"tester@{os.uname().nodename}")
        }
        assert records[0]["bytes"] == files[0].stat().st_size

    def test_it_needs_no_server_and_no_queue(self, bare_rwq: Rwq) -> None:
        result = bare_rwq("undo", "--list", "-o", "table", "-u", "redis://127.0.0.1:1")
        assert result.as_tuple() == (0, "No such undo files in ~/.local/state/rwq/undo.\n", "")

    def test_how_far_a_file_is_restored(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b", b"c")
        rwq("rm", "a", "b", "--yes")
        (file,) = undo_files(rwq)
        assert states(rwq) == [("rm", 2, "unused")]
        with file.open("ab") as appended:
            appended.write(b'{"begun": true}\n')
        assert states(rwq) == [("rm", 2, "begun")]
        rwq("add", "--id", "a", "other")
        assert rwq(*BACK).code == 3
        assert states(rwq) == [("rm", 2, "incomplete")]
        assert file.read_bytes().count(b'{"begun"') == 1
        foreign.raw.delete("jobs:item:a")
        assert rwq(*BACK, "1").code == 0
        assert states(rwq) == [("rm", 2, "restored")]

    def test_what_cannot_be_read_is_listed_with_the_reason(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b")
        rwq("rm", "a", "--yes")
        (file,) = undo_files(rwq)
        whole = file.read_bytes()
        files = {
            "2.jsonl": b"",
            "3.jsonl": whole.splitlines()[0][:40],
            "4.jsonl": re.sub(rb'"rwq_export": ?1', b'"rwq_export":9', whole),
            "5.jsonl": rwq("export").out,
            "6.jsonl": b"\x00" * 100_000,
            "other.jsonl": b"{}\n",
        }
        for name, text in files.items():
            (file.parent / name).write_bytes(text)
        (file.parent / "7.jsonl").mkdir()
        with file.open("ab") as locked:
            # Another writer is at work: it has no trailer yet.
            fcntl.flock(locked, fcntl.LOCK_EX)
            locked.truncate(len(whole) - len(whole.splitlines()[-1]) - 1)
            locked.write(b'{"id": "x", "da')
            locked.flush()
            result = rwq("undo", "--list", "--fields", "number,items,state,reason")
        assert (result.code, result.notes) == (0, "")
        assert result.text.splitlines() == [
            "7\t0\tunreadable\tnot a regular file",
            "6\t0\tunreadable\tit has a header that is cut off",
            "5\t0\tunreadable\tit is an export, not an undo file",
            "4\t0\tunreadable\tit is an export of version 9, and this rwq reads up to 2",
            "3\t0\tunreadable\tit has a header that is cut off",
            "2\t0\tunreadable\tit is empty",
            "1\t\tunused\t",
        ]
        # Those of a queue are known to be of it; and an undo says what it passes over.
        assert rwq("undo", "--list", "-q", "jobs", "--fields", "number").text == "1\n"
        undone = rwq(*BACK)
        assert undone.notes.count("; skipped\n") == 6
        assert foreign.raw.exists("jobs:item:a")

    def test_of_a_closed_file_only_the_ends_are_read(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(*(b"%d" % number for number in range(3000)))
        rwq("rm", "--all", "--yes")
        (file,) = undo_files(rwq)
        whole = file.read_bytes()
        first, last = whole.index(b"\n") + 1, whole.rindex(b"{")
        file.write_bytes(whole[:first] + b"\x00" * (last - first - 40) + whole[last - 40 :])
        assert states(rwq) == [("rm", 3000, "unused")]
        with file.open("ab") as appended:
            appended.write(b'{"begun": true}\n')
        assert states(rwq) == [("rm", 3000, "begun")]


class TestPrune:
    @pytest.fixture
    def files(self, rwq: Rwq, foreign: Foreign) -> list[Path]:
        """Files of 40, 20 and 0 days; the first is restored."""
        foreign.waiting(b"a", b"b", b"c")
        rwq("rm", "a", "--yes")
        rwq(*BACK)
        rwq("rm", "b", "--yes")
        rwq("rm", "c", "--yes")
        files = undo_files(rwq)
        aged(files[0], 40)
        aged(files[1], 20)
        return files

    def prune(self, rwq: Rwq, age: str, *words: str) -> Result:
        return rwq("undo", "--prune", "--older-than", age, *words)

    def test_old_files_are_deleted(self, rwq: Rwq, files: list[Path]) -> None:
        size = files[0].stat().st_size
        other = files[0].with_name("other.jsonl")
        other.touch()
        dry = self.prune(rwq, "30d", "--dry-run")
        assert dry.as_tuple() == (0, "", f"dry run: would delete 1; {size} B\n")
        assert undo_files(rwq) == files
        assert self.prune(rwq, "30d", "--yes", "-o", "ids").as_tuple() == (
            0,
            f"{files[0]}\n",
            f"deleted 1; {size} B\n",
        )
        assert undo_files(rwq) == files[1:]
        assert self.prune(rwq, "30d").as_tuple() == (0, "", "nothing deleted\n")
        assert self.prune(rwq, "0", "--yes", "-o", "json").json == {
            "dry_run": False,
            "deleted": 2,
            "in_use": 0,
            "failures": [],
        }
        assert [*files[0].parent.iterdir()] == [other]

    def test_the_question_says_how_many_are_not_restored(self, rwq: Rwq, files: list[Path]) -> None:
        words = ("undo", "--prune", "--older-than", "10d")
        assert rwq(*words).code == 2
        code, screen = rwq.asked(*words, type_in=[(b"[y/N]", b"n\n")])
        assert code == 1
        said = b" ".join(screen.split())
        assert b"rwq will delete 2 undo files, 1 of them not restored (" in said
        assert undo_files(rwq) == files
