"""`rwq undo`: what was removed comes back as it was, and once."""

import errno
import fcntl
import itertools
import json
import os
import re
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from rwq_cli.core import WorkQueue
from rwq_cli.output.export_lines import UndoOrigin
from rwq_cli.undo import catalog
from rwq_cli.undo.run import UndoReader
from rwq_cli.undo.servers import is_from
from tests.conftest import Foreign, StartServer, contents
from tests.driver import Rwq, complete, configure, undo_files, until

FIRST = "~/.local/state/rwq/undo/1.jsonl"
BACK = ("undo", "--yes")
NOTHING = (
    "rwq: error: there is nothing to undo here; "
    "rwq undo --list lists the undo files, and rwq undo N takes one of them\n"
)


@pytest.fixture
def removed(rwq: Rwq, foreign: Foreign) -> Path:
    """The undo file of two items that are removed."""
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    (file,) = undo_files(rwq)
    return file


def ids(rwq: Rwq, *words: str) -> str:
    return " ".join(rwq(*BACK, *words, "-o", "ids").text.split())


@pytest.mark.usefixtures("slept_s")
def test_a_purge_is_undone(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"\xff", b"", b"c")
    foreign.leased(b"l", ttl_ms=None)
    foreign.buried(b"b")
    foreign.data(b"o")
    foreign.raw.hset("jobs:returns", "b", 2)
    before = contents(foreign.raw)
    rwq("purge", "--yes")
    assert rwq(*BACK).as_tuple() == (0, "", f"restored 7; purge of jobs, from {FIRST}\n")
    assert contents(foreign.raw) == before
    (file,) = undo_files(rwq)
    assert file.name == "1.jsonl.undone"
    assert rwq(*BACK).code == 1
    # What was put back never is a second time, also not by its number.
    complete(rwq, "a", "o")
    again = rwq("undo", "1")
    assert (again.code, again.notes) == (
        0,
        f"restored before 7; purge of jobs, from {FIRST}.undone\n",
    )


class TestWhich:
    def test_the_latest_and_that_of_a_queue(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        Foreign(foreign.raw, b"other").waiting(b"o")
        rwq("rm", "a", "--yes")
        rwq("rm", "b", "--yes")
        rwq("rm", "o", "-q", "other", "--yes")
        assert ids(rwq, "-q", "jobs") == "b"
        assert ids(rwq) == "a", "RWQ_QUEUE names the queue, too"
        assert rwq(*BACK).as_tuple() == (1, "", NOTHING)
        assert rwq(*BACK, "-o", "ids", variables={"RWQ_QUEUE": ""}).text == "o\n"

    def test_a_number_a_name_or_a_path(self, rwq: Rwq, removed: Path, foreign: Foreign) -> None:
        foreign.waiting(b"c")
        rwq("rm", "c", "--yes")
        assert ids(rwq, "1") == "a b"
        assert ids(rwq, "2.jsonl") == "c"
        (removed.parent / "2.jsonl.undone").rename(rwq.home / "elsewhere")
        assert rwq(*BACK, str(rwq.home / "elsewhere")).code == 0
        assert [rwq(*BACK, name).code for name in ("7", "no-such-file")] == [2, 2]

    @pytest.mark.parametrize("number", [["2"], []])
    def test_a_file_in_use_is_refused_not_passed_over(
        self, rwq: Rwq, removed: Path, foreign: Foreign, number: list[str]
    ) -> None:
        foreign.waiting(b"c")
        rwq("rm", "c", "--yes")
        file = removed.with_name("2.jsonl")
        with file.open("rb") as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            assert rwq(*BACK, *number).as_tuple() == (
                1,
                "",
                f"rwq: error: another rwq is writing or restoring {file}; wait until it ends, "
                "or name another file: see rwq undo --list\n",
            )
        assert ids(rwq) == "c"

    def test_a_file_that_was_just_restored_is_passed_over(
        self, rwq: Rwq, removed: Path, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        foreign.waiting(b"c")
        rwq("rm", "c", "--yes")

        def open_late(path: Path) -> UndoReader:
            with suppress(FileNotFoundError):
                removed.with_name("2.jsonl").rename(removed.with_name("2.jsonl.undone"))
            return UndoReader(path)

        monkeypatch.setattr(catalog, "UndoReader", open_late)
        assert ids(rwq) == "a b"

    def test_those_of_other_servers_are_passed_over(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        here = rwq.variables["RWQ_URL"]
        elsewhere = f"{here}?db=1"
        rwq("rm", "a", "--yes", "-u", f"{here}?password=")
        rwq("add", "--id", "x", "data", "-u", elsewhere)
        rwq("rm", "x", "--yes", "-u", elsewhere)
        # Another login is the same server.
        assert ids(rwq) == "a"
        assert rwq(*BACK).as_tuple() == (1, "", NOTHING)
        assert rwq(*BACK, "2").as_tuple() == (
            2,
            "",
            f"rwq: error: the undo file is from {elsewhere}, but this server is {here}; "
            "name that server with -u, or use --anywhere\n",
        )
        assert ids(rwq, "--anywhere") == "x"
        assert rwq("ls", "-o", "ids").text == "x\na\n"


class TestQuestion:
    def test_it_says_what_whence_when_and_by_whom(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b", b"c")
        rwq("mv", "--to", "hooli", "--all", "--yes", variables={"USER": "ann"})
        asked = [(b"[y/N] ", b"n\n")]
        code, seen = rwq.asked("undo", type_in=asked, columns=200)
        host = os.uname().nodename
        words = f"Undo mv of 3 items from jobs to hooli, TIME, by ann@{host}? (on unix://"
        said = re.sub(r"just now|\d[^ ,]*s ago", "TIME", seen.decode())
        assert (code, words in said, "declined" in said) == (1, True, True)
        assert foreign.raw.llen("hooli:queue") == 3
        code, _ = rwq.asked("undo", type_in=[(b"[y/N] ", b"y\n")])
        assert (code, foreign.raw.llen("hooli:queue")) == (0, 0)

    def test_either_server_of_a_move_may_be_protected(
        self, rwq: Rwq, foreign: Foreign, start_server: StartServer
    ) -> None:
        foreign.waiting(b"a")
        url, there = rwq.variables["RWQ_URL"], start_server()
        words = ("mv", "--all", "--to", "jobs", "--to-url", there.url)
        rwq(*words, "--yes")
        prod = f'[contexts.prod]\nurl = "{there.url}"\nprotect = "type"\n'
        configure(rwq.home, f'{prod}[contexts.dev]\nurl = "{url}"\nprotect = "ask"\n')
        for line in (("undo",), words):
            assert "use --yes=prod to confirm" in rwq(*line, "--yes").notes
            assert rwq(*line, "--yes=dev").code == 2
            asks = b"Type the other context's name to continue: "
            code, seen = rwq.asked(*line, columns=300, type_in=[(asks, b"dev\n")])
            label = f"jobs on {there.url} (context prod)" if line == words else "jobs on prod"
            assert (code, label in seen.decode()) == (1, True)
            if line != words:
                assert rwq(*line, "--yes=prod").code == 0
            else:
                foreign.waiting(b"b")
        assert rwq("mv", "--all", "--to", "jobs", "--to-url", there.url, "--yes=other").code == 2


class TestConflicts:
    def test_a_reused_id_is_left_and_none_restored_twice(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"older")
        rwq("rm", "older", "--yes")
        foreign.waiting(b"a", b"b", b"c")
        rwq("rm", "a", "b", "c", "--yes")
        rwq("add", "--id", "a", "anew")
        result = rwq(*BACK)
        assert result.as_tuple() == (
            3,
            "",
            "rwq: a: it exists with other data, and is left as it is\nrestored 2, conflicts 1; "
            "rm of jobs, from ~/.local/state/rwq/undo/2.jsonl; to try the rest again, name this "
            "file\n",
        )
        assert foreign.raw.get("jobs:item:a") == b"anew"
        # What came back is completed meanwhile.
        complete(rwq, "a", "b")
        # Its rest hides nothing that is older.
        assert ids(rwq) == "older"
        assert rwq(*BACK).as_tuple() == (1, "", NOTHING)
        assert ids(rwq, "2") == "a"
        assert [each.name for each in undo_files(rwq)] == ["1.jsonl.undone", "2.jsonl.undone"]
        assert sorted(rwq("ls", "-o", "ids").text.split()) == ["a", "c", "older"]

    def test_a_bad_line_is_rejected(self, rwq: Rwq, removed: Path) -> None:
        with removed.open("ab") as appended:
            appended.write(b"[]\n")
        number = removed.read_bytes().count(b"\n")
        result = rwq(*BACK, "-o", "json")
        assert (result.code, result.json["restored"], result.json["rejected"]) == (3, 2, 1)
        (failure,) = result.json["failures"]
        assert (failure["id"], failure["code"], failure["reason"]) == (
            None,
            "rejected",
            f"line {number}: expected `object`, got `array`",
        )


@pytest.mark.usefixtures("slept_s")
class TestInterrupted:
    """Cuts and kills are among the faults; here is what is said of them."""

    def test_without_marks_items_are_in_doubt(
        self, rwq: Rwq, removed: Path, foreign: Foreign
    ) -> None:
        """A day has passed, or the server has evicted them."""
        with removed.open("ab") as appended:
            appended.write(b'{"begun": true}\n')
        foreign.waiting(b"a")
        assert rwq(*BACK).as_tuple() == (
            0,
            "",
            f"restored 1, already there 1, in doubt 1; rm of jobs, from {FIRST}; in doubt: an "
            "earlier undo was interrupted; the server no longer knows what was restored, so a "
            "worker may have completed them\n",
        )

    def test_one_that_restored_nothing_has_not_begun(
        self, rwq: Rwq, removed: Path, foreign: Foreign, start_server: StartServer
    ) -> None:
        before = removed.read_bytes()
        foreign.raw.set("jobs:queue", "not a list")
        assert rwq(*BACK).code == 69
        assert removed.read_bytes() == before
        server = start_server()
        server.kill()
        assert rwq(*BACK, "--anywhere", "-u", server.url).code == 69
        assert removed.read_bytes() == before
        foreign.raw.delete("jobs:queue")
        result = rwq(*BACK, "-o", "json").json
        assert (result["restored"], result["in_doubt"]) == (2, 0)

    def test_what_a_killed_removal_did_last_is_in_doubt(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(*(b"%d" % number for number in range(300)))
        rwq("rm", "--all", "--yes")
        (file,) = undo_files(rwq)
        lines = file.read_text().splitlines(keepends=True)
        *before, last = (json.loads(line)["taken"] for line in lines if "taken" in line)
        assert last == 300
        known = before[-1] if before else 0
        # Neither the last word nor the trailer was written.
        file.write_text("".join(lines[:-2]))
        foreign.waiting(b"299")
        dry = rwq("undo", "--dry-run", "-o", "json").json
        assert (dry["restored"], dry["in_doubt"]) == (299, 299 - known)
        assert rwq(*BACK).as_tuple() == (
            0,
            "",
            f"restored 299, already there 1, in doubt {299 - known}; rm of jobs, from "
            f"{FIRST}; in doubt: rm was interrupted before it knew whether they were "
            "removed, so a worker may have completed them\n",
        )


class TestEdits:
    def test_data_that_changed_since_is_left(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b", b"c", b"d")
        for item_id in ("a", "b", "c", "d"):
            rwq("edit", item_id, "-f", "-", stdin=b"new")
        foreign.raw.set("jobs:item:a", "newer")
        foreign.raw.delete("jobs:item:b")
        foreign.raw.delete("jobs:item:d")
        foreign.raw.lpush("jobs:item:d", "x")
        results = [rwq(*BACK, str(number)) for number in (1, 2, 3, 4)]
        assert [(each.code, re.split("[;\n]", each.notes)[0]) for each in results] == [
            (1, "rwq: a: it changed meanwhile"),
            (1, "rwq: b: it is not in jobs any more"),
            (0, "restored 1"),
            (1, "rwq: d: one of its keys has the wrong type"),
        ]
        assert foreign.raw.get("jobs:item:a") == b"newer"
        # Named again, it is tried again.
        assert rwq(*BACK).code == 1
        foreign.raw.set("jobs:item:a", "new")
        assert rwq(*BACK, "1").code == 0
        assert foreign.raw.get("jobs:item:a") == b"data of a"


class TestServer:
    """It is known by more than its address."""

    @pytest.fixture
    def port(self) -> int:
        with socket.create_server(("127.0.0.1", 0)) as free:
            return int(free.getsockname()[1])

    @pytest.mark.parametrize(
        ("run_id", "server_key", "is_its"),
        [(None, None, True), ("another", None, False), (None, "another", False)],
    )
    def test_what_said_nothing_is_known_by_its_address(
        self, queue: WorkQueue, run_id: str | None, server_key: str | None, is_its: bool
    ) -> None:
        address = queue.connection.address
        origin = UndoOrigin("rm", address, run_id=run_id, server_key=server_key)
        assert is_from(queue, origin) is is_its

    @pytest.mark.parametrize("kind", ["restarted", "another", "emptied"])
    def test_a_restarted_server_is_known_another_asked(
        self, rwq: Rwq, start_server: StartServer, port: int, kind: str
    ) -> None:
        durable = "--appendonly", "yes", "--appendfsync", "always"
        server = start_server("--port", str(port), *durable)
        there = ("-u", f"redis://127.0.0.1:{port}/0")
        rwq("add", "--id", "a", "data", *there)
        rwq("rm", "a", "--yes", *there)
        (file,) = undo_files(rwq)
        before = file.read_bytes()
        if kind == "restarted":
            server.kill()
            server.start()
            until(lambda: server.call("PING"))
            assert rwq(*BACK, "--dry-run", *there).code == 0
            assert rwq(*BACK, *there).code == 0
            return
        server.kill()
        server = start_server("--port", str(port))
        rwq("add", "--id", "b", "of another", *there)
        said = (
            "the server at this address is not the one that the file is from, or has lost its data"
        )
        lines = (BACK, ("undo", "1", "--yes"), ("undo", "--dry-run"))
        results = [rwq(*line, *there) for line in lines]
        outcomes = [(r.code, said in r.notes, "--anywhere" in r.notes) for r in results]
        assert outcomes == [(2, True, True)] * 3
        code, seen = rwq.asked(*BACK, *there, columns=300, type_in=[(b"[y/N] ", b"n\n")])
        question = f"{said.capitalize()}; undo rm of 1 item from jobs, "
        assert (code, question in seen.decode()) == (1, True)
        assert (file.read_bytes(), undo_files(rwq)) == (before, [file])
        assert rwq("ls", "-o", "ids", *there).text == "b\n"
        assert rwq(*BACK, "--anywhere", *there).code == 0


class TestIdle:
    def test_a_verb_without_a_file_hides_no_older_one(
        self, rwq: Rwq, removed: Path, foreign: Foreign
    ) -> None:
        assert rwq("rm", "gone", "--yes").code == 1
        said = "the last command, rm of jobs, just now, left nothing to undo"
        result = rwq(*BACK)
        assert (result.code, said in result.notes) == (1, True)
        assert "rwq undo 1 undoes the one before it: rm of 2 items from jobs, " in result.notes
        code, seen = rwq.asked("undo", columns=300, type_in=[(b"[y/N] ", b"n\n")])
        assert (code, f"{said.capitalize()}; undo rm of 2 items" in seen.decode()) == (1, True)
        # Another user, and the verb that comes next, are not concerned.
        assert rwq("undo", "--dry-run", variables={"USER": "bob"}).code == 0
        foreign.waiting(b"c")
        rwq("rm", "c", "--yes")
        assert ids(rwq) == "c"
        assert ids(rwq, removed.name) == "a b"


class TestDirectory:
    def test_operators_share_it(self, rwq: Rwq, foreign: Foreign) -> None:
        shared = rwq.home / "shared"
        shared.mkdir()
        shared.chmod(0o2770)
        url = rwq.variables["RWQ_URL"]
        configure(rwq.home, f'[contexts.a]\nurl = "{url}"\nundo_dir = "{shared}"\n')
        foreign.waiting(b"a", b"b")
        ann, bob = {"USER": "ann"}, {"USER": "bob", "RWQ_UNDO_DIR": str(shared)}
        old = os.umask(0o077)
        try:
            rwq("rm", "a", "--yes", variables=ann)
            rwq("rm", "b", "--yes", variables=bob)
        finally:
            os.umask(old)
        files = sorted(shared.glob("*.jsonl"))
        assert [(file.name, stat.S_IMODE(file.stat().st_mode)) for file in files] == [
            ("1.jsonl", 0o660),
            ("2.jsonl", 0o660),
        ]
        listed = rwq("undo", "--list", "--fields", "by", variables=ann).text.split()
        assert [by.partition("@")[0] for by in listed] == ["bob", "ann"]
        code, seen = rwq.asked("undo", "1", columns=300, type_in=[(b"[y/N] ", b"y\n")])
        assert (code, b", by ann@" in seen, foreign.raw.exists("jobs:item:a")) == (0, True, 1)

    @pytest.mark.parametrize("nth", [1, 2, 3, 4])
    def test_what_cannot_be_synced_is_not_removed(
        self, rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, nth: int
    ) -> None:
        """The directory's name in its parent, the file's in it, and the file itself."""
        foreign.waiting(b"a")
        (rwq.home / ".local").mkdir()
        calls, fsync = itertools.count(1), os.fsync

        def fail_at(descriptor: int) -> None:
            if next(calls) == nth:
                raise OSError(errno.EIO, "input/output error")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", fail_at)
        result = rwq("rm", "a", "--yes")
        assert (result.code, "cannot write the undo file" in result.notes) == (70, True)
        assert foreign.raw.exists("jobs:item:a")


def test_what_was_moved_by_force_is_said_to_wait(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"b")
    foreign.waiting(b"w")
    rwq("mv", "--all", "--force", "--to", "other", "--yes")
    assert "restored 2; mv of jobs, from " in (result := rwq(*BACK)).notes
    assert result.notes.endswith("; 1 that were delayed or buried wait now\n")
