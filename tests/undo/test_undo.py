"""`rwq undo`: what was removed comes back as it was, and once."""

import fcntl
import json
import re
from hashlib import sha256
from itertools import islice

import pytest
from redis import Redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.items.restore import RESTORE_ITEMS, restore as restore_items
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from rwq_cli.output.export_file import Header, UndoOrigin
from rwq_cli.undo.file import UndoFile
from rwq_cli.undo.reader import UndoReader
from rwq_cli.undo.run import UndoRun
from tests.conftest import Foreign, StartServer, contents
from tests.driver import Rwq, undo_files


@pytest.mark.usefixtures("slept_s")
def test_a_purge_is_undone(rwq: Rwq, foreign: Foreign) -> None:
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
        f"restored 6; purge of jobs, from {file}\n",
    )
    assert contents(foreign.raw) == before
    assert [each.name for each in undo_files(rwq)] == [f"{file.name}.undone"]
    assert rwq("undo").code == 1
    # What was put back never is a second time, also not by that name.
    rwq("complete", "a", "o")
    again = rwq("undo", f"{file}.undone")
    assert (again.code, again.notes) == (
        0,
        f"restored before 6; purge of jobs, from {file}.undone\n",
    )
    assert [each.name for each in undo_files(rwq)] == [f"{file.name}.undone"]


def test_restored_items_come_before_later_ones(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    rwq("purge", "--yes")
    foreign.waiting(b"new")
    assert rwq("undo").code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"new", b"c", b"b", b"a"]


def test_waiting_items_return_to_the_nearer_end_of_the_queue(rwq: Rwq, foreign: Foreign) -> None:
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
    assert rwq("undo", "-o", "ids").text == "a\n", "RWQ_QUEUE names the queue, too"
    assert rwq("undo", "-o", "ids", variables={"RWQ_QUEUE": ""}).text == "o\n"
    result = rwq("undo")
    assert (result.code, "there is nothing to undo in jobs; " in result.notes) == (1, True)


def test_a_file_is_found_by_the_name_that_the_list_shows(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    rwq("rm", "a", "--yes")
    (file,) = undo_files(rwq)
    assert rwq("undo", file.name, "-o", "ids").text == "a\n"
    assert rwq("undo", "no-such-file").code == 2


def test_a_reused_id_is_left_alone(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    rwq("add", "--id", "a", "anew")
    result = rwq("undo")
    assert result.code == 3
    failure, summary = result.notes.splitlines()
    assert failure == "rwq: a: it exists with other data, and is left as it is"
    assert summary.startswith("restored 1, conflicts 1; ")
    assert foreign.raw.get("jobs:item:a") == b"anew"
    (file,) = undo_files(rwq)
    assert result.notes.endswith(
        f"; rm of jobs, from {file}; to try the rest again, name this file\n"
    )


def test_restored_items_are_not_restored_again(rwq: Rwq, foreign: Foreign) -> None:
    """A conflict keeps the file; what came back is completed meanwhile."""
    foreign.waiting(b"older")
    rwq("rm", "older", "--yes")
    foreign.waiting(b"a", b"b", b"c")
    rwq("rm", "a", "b", "c", "--yes")
    rwq("add", "--id", "a", "anew")
    assert rwq("undo", "-o", "ids").text == "b\nc\n"
    assert rwq("complete", "a", "b").code == 0
    older, file = undo_files(rwq)
    # Its rest hides nothing that is older.
    assert rwq("undo", "-o", "ids").text == "older\n"
    nothing = rwq("undo")
    assert (nothing.code, nothing.notes) == (
        1,
        "rwq: error: there is nothing to undo in jobs; "
        f"{file} has items that could not be restored; name it to try again\n",
    )
    assert rwq("undo", str(file), "-o", "ids").text == "a\n"
    assert [each.name for each in undo_files(rwq)] == [
        f"{older.name}.undone",
        f"{file.name}.undone",
    ]
    assert sorted(rwq("ls", "-o", "ids").text.split()) == ["a", "c", "older"]


def until_idle(raw: Redis) -> None:
    """Wait until the server has carried out what was sent to it; the next calls are sent ahead."""
    idle = 0
    while idle < 3:
        raw.ping()
        others = (each for each in raw.client_list() if int(each["id"]) != raw.client_id())
        idle = 0 if any(int(each["qbuf"]) for each in others) else idle + 1


def interrupt(rwq: Rwq, queue: WorkQueue, raw: Redis, batches: int) -> UndoReader:
    """Begin to undo the latest file, and die after so many batches were acknowledged."""
    reader = UndoReader(undo_files(rwq)[-1])
    run = UndoRun(reader, queue, dry_run=False)
    each = run.batches()
    for _ in range(batches):
        next(each)
    # As a crash: nothing that comes at the end is done.
    reader.finish = reader.close = lambda *_, **__: None  # type: ignore[method-assign]
    each.close()  # type: ignore[attr-defined]
    reader._file.close()
    until_idle(raw)
    return reader


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("verb", ["purge --yes", "rm --all --yes"])
@pytest.mark.usefixtures("slept_s")
def test_an_interrupted_undo_does_not_restore_items_completed_meanwhile(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign, batches: int, verb: str
) -> None:
    ids = [b"%04d" % number for number in range(5000)]
    foreign.waiting(*ids)
    rwq(*verb.split())
    reader = interrupt(rwq, queue, foreign.raw, batches)
    (key,) = foreign.raw.keys("jobs:undo:*")
    assert key == b"jobs:undo:" + reader.file_id
    assert 86_000 < foreign.raw.ttl(key) <= 86_400
    back = foreign.raw.lrange("jobs:queue", 0, -1)
    assert batches * RESTORE_ITEMS <= len(back) < 5000
    list(queue.complete_many(back))
    dry = rwq("undo", "--dry-run", "-o", "json").json
    result = rwq("undo", "-o", "json")
    assert (result.code, dry) == (0, {**result.json, "dry_run": True})
    assert (result.json["restored"], result.json["restored_before"]) == (
        5000 - len(back),
        len(back),
    )
    left = set(ids).difference(back)
    assert set(foreign.raw.lrange("jobs:queue", 0, -1)) == left
    # The marks go at the end.
    assert foreign.raw.keys("jobs:undo:*") == []
    assert rwq("undo").code == 1


@pytest.mark.usefixtures("slept_s")
def test_an_interrupted_undo_without_marks_counts_items_as_in_doubt(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign
) -> None:
    """A day has passed, or the server has evicted them."""
    foreign.waiting(*(b"%04d" % number for number in range(2000)))
    rwq("rm", "--all", "--yes")
    interrupt(rwq, queue, foreign.raw, 1)
    back = foreign.raw.lrange("jobs:queue", 0, -1)
    list(queue.complete_many(back[:100]))
    foreign.raw.delete(*foreign.raw.keys("jobs:undo:*"))
    dry = rwq("undo", "--dry-run", "-o", "json").json
    (file,) = undo_files(rwq)
    result = rwq("undo")
    restored = 2000 - len(back) + 100
    assert (dry["restored"], dry["in_doubt"]) == (restored, restored)
    assert (result.code, result.notes) == (
        0,
        f"restored {restored:,}, already there {len(back) - 100:,}, "
        f"in doubt {restored:,}; rm of jobs, from {file}; in doubt: an earlier undo of this file "
        "was interrupted, and the server no longer knows what was restored, so a worker "
        "may have completed them\n",
    )


def test_a_file_keeps_its_id_when_an_undo_begins(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    (file,) = undo_files(rwq)
    whole = file.read_bytes()
    # Its writer was killed while it wrote a line.
    for text in (whole, whole + b'{"id": "c", "da'):
        file.write_bytes(text)
        reader = UndoReader(file)
        assert (reader.was_begun, reader.file_id) == (False, sha256(whole).hexdigest().encode())
        reader.begin()
        reader.close()
        again = UndoReader(file)
        assert (again.was_begun, again.file_id) == (True, reader.file_id)
        again.begin()
        again.close()
        assert file.read_bytes() == whole + b'{"begun": true}\n'


def test_an_undo_that_restored_nothing_is_not_recorded_as_begun(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    rwq("rm", "a", "--yes")
    (file,) = undo_files(rwq)
    before = file.read_bytes()
    foreign.raw.set("jobs:queue", "not a list")
    assert rwq("undo").code == 69
    assert file.read_bytes() == before
    foreign.raw.delete("jobs:queue")
    result = rwq("undo", "-o", "json")
    assert (result.code, result.json["restored"], result.json["in_doubt"]) == (0, 1, 0)


def test_an_undo_without_a_server_is_not_recorded_as_begun(
    rwq: Rwq, start_server: StartServer
) -> None:
    server = start_server()
    rwq.variables["RWQ_URL"] = server.url
    with server.client() as raw:
        Foreign(raw).waiting(b"1")
    rwq("rm", "1", "--yes")
    (file,) = undo_files(rwq)
    before = file.read_bytes()
    server.kill()
    assert rwq("undo").code == 69
    assert file.read_bytes() == before


@pytest.mark.parametrize("count", [20, 5000])
@pytest.mark.usefixtures("slept_s")
def test_an_interrupted_undo_of_a_move_resumes_where_it_stopped(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign, count: int
) -> None:
    foreign.waiting(*(b"%04d" % number for number in range(count)))
    rwq("mv", "--all", "--to", "other", "--yes")
    interrupt(rwq, queue, foreign.raw, 1)
    assert len(foreign.raw.keys("jobs:undo:*")) == 1
    back = foreign.raw.lrange("jobs:queue", 0, -1)
    assert back
    list(queue.complete_many(back))
    dry = rwq("undo", "--dry-run", "-o", "json").json
    result = rwq("undo", "-o", "json")
    assert (result.code, dry) == (0, {**result.json, "dry_run": True})
    assert result.json["restored"] == count - len(back)
    assert (result.json["restored_before"], result.json["in_doubt"]) == (len(back), 0)
    assert foreign.raw.llen("jobs:queue") == count - len(back)
    assert foreign.raw.keys("jobs:undo:*") == []
    assert rwq("undo").code == 1


def test_the_marks_of_an_interrupted_one_are_keys_of_the_queue(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign
) -> None:
    foreign.waiting(*(b"%04d" % number for number in range(1000)))
    rwq("rm", "--all", "--yes")
    interrupt(rwq, queue, foreign.raw, 1)
    assert len(foreign.raw.keys("jobs:undo:*")) == 1
    assert "foreign-key" not in {f["code"] for f in rwq("doctor", "-o", "json").json}
    # Whatever else is named so stays; a purge deletes the marks.
    foreign.raw.lpush("jobs:undo:list", "x")
    rwq("purge", "--yes")
    assert foreign.raw.keys() == [b"jobs:undo:list"]


def test_an_interrupted_undo_of_results_resumes(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign
) -> None:
    foreign.waiting(b"a")
    for number in range(600):
        fields = {"status": "completed", "completed_ms": 5}
        foreign.raw.hset(f"jobs:result:{number}", mapping=fields)  # type: ignore[arg-type]
    rwq("purge", "--yes")
    reader = UndoReader(undo_files(rwq)[-1])
    list(restore_items(queue, islice(reader.others(), 250), file_id=reader.file_id))
    reader.close()
    back = foreign.raw.keys("jobs:result:*")
    assert len(back) == 250
    foreign.raw.delete(*back)
    assert rwq("undo", "-o", "json").json["results"] == 350
    assert foreign.raw.exists(*back) == 0


def test_an_interrupted_one_with_conflicts_remembers_both_runs(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign
) -> None:
    ids = [b"%03d" % number for number in range(2000)]
    foreign.waiting(*ids)
    rwq("rm", "--all", "--yes")
    (file,) = undo_files(rwq)
    interrupt(rwq, queue, foreign.raw, 1)
    free = next(i for i in ids if not foreign.raw.exists(b"jobs:item:" + i))
    rwq("add", "--id", free.decode(), "anew")
    assert rwq("undo").code == 3
    assert foreign.raw.keys("jobs:undo:*") == []
    assert rwq("complete", "--all", "--yes").code == 0
    result = rwq("undo", str(file), "-o", "json").json
    assert (result["restored"], result["restored_before"]) == (1, 1999)
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [free]


def test_an_undo_file_that_another_rwq_writes_is_refused_or_skipped(
    rwq: Rwq, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "--yes")
    rwq("rm", "b", "--yes")
    file = undo_files(rwq)[1]
    with file.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        named = rwq("undo", str(file))
        assert named.as_tuple() == (
            1,
            "",
            f"rwq: error: another rwq is writing or restoring {file}; wait until it ends\n",
        )
        result = rwq("undo", "-o", "ids")
        assert result.text == "a\n"
        assert result.notes.startswith(
            f"rwq: another rwq is writing or restoring {file}; skipped\n"
        )
    assert rwq("undo", "-o", "ids").text == "b\n"


def test_a_writer_holds_the_lock_until_it_ends(rwq: Rwq) -> None:
    taken = UndoOrigin("rm", rwq.variables["RWQ_URL"])
    directory = rwq.home / ".local/state/rwq/undo"
    with UndoFile(directory, lambda: Header(b"jobs", 0, taken)) as writer:
        writer.write([ItemSnapshot(b"a", b"data", State.WAITING, Place.MAIN)])
        assert rwq("undo", str(writer.path)).code == 1
        assert rwq("undo").notes.endswith(
            f"there is nothing to undo in jobs; undo files are in {directory}\n"
        )
    assert rwq("undo", "-o", "ids").text == "a\n"


def test_items_in_doubt_are_reported(rwq: Rwq, foreign: Foreign) -> None:
    """It was killed before it knew that it had taken the last batch."""
    foreign.waiting(*(b"%d" % number for number in range(300)))
    rwq("rm", "--all", "--yes")
    (file,) = undo_files(rwq)
    lines = file.read_text().splitlines(keepends=True)
    *before, last = (json.loads(line)["taken"] for line in lines if "taken" in line)
    assert last == 300
    known = before[-1] if before else 0
    file.write_text("".join(lines[:-1]))
    foreign.waiting(b"299")
    dry = rwq("undo", "--dry-run", "-o", "json").json
    result = rwq("undo")
    assert result.code == 0
    assert (dry["restored"], dry["in_doubt"]) == (299, 299 - known)
    assert result.notes == (
        f"restored 299, already there 1, in doubt {299 - known}; rm of jobs, from "
        f"{file}; in doubt: rm was interrupted before it knew whether they were "
        "removed, so a worker may have completed them\n"
    )


def test_an_item_with_an_empty_id_is_restored(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"", b"a")
    before = contents(foreign.raw)
    assert rwq("purge", "--yes").code == 0
    assert rwq("undo").code == 0
    assert contents(foreign.raw) == before
    exported = rwq("export").out
    foreign.raw.flushall()
    assert rwq("import", "-", stdin=exported).code == 0
    assert contents(foreign.raw) == before


@pytest.mark.parametrize("text", ["", '{"rwq_export": 1, "que'])
def test_an_unwritten_undo_file_does_not_hide_older_ones(
    rwq: Rwq, foreign: Foreign, text: str
) -> None:
    foreign.waiting(b"a")
    rwq("rm", "a", "--yes")
    (file,) = undo_files(rwq)
    (file.parent / "29991231T000000.000000Z-rm-jobs-1.jsonl").write_text(text)
    assert rwq("undo", "-o", "ids").text == "a\n"


def test_an_undo_file_without_removed_items_does_not_hide_older_ones(
    rwq: Rwq, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "--yes")
    rwq("rm", "b", "--yes")
    with undo_files(rwq)[1].open("a") as more:
        more.write('{"kept": true, "id": "b", "id_b64": null}\n')
    assert rwq("undo", "-o", "ids").text == "a\n"


def test_a_file_that_cannot_be_changed_stops_nothing(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    (file,) = undo_files(rwq)
    before = file.read_bytes()
    reader = UndoReader(file)
    reader.unrecorded = "read-only file system"
    reader.finish(b"\xff", complete=False)
    reader.close()
    assert file.read_bytes() == before


def test_another_server_needs_anywhere(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    rwq("rm", "a", "--yes")
    elsewhere = rwq.variables["RWQ_URL"] + "?db=1"
    (file,) = undo_files(rwq)
    result = rwq("undo", str(file), "-u", elsewhere)
    assert (result.code, result.text) == (2, "")
    assert result.notes == (
        f"rwq: error: the undo file is from {rwq.variables['RWQ_URL']}, but this server is "
        f"{elsewhere}; name that server with -u, or use --anywhere\n"
    )
    assert rwq("undo", "-u", elsewhere, "--anywhere").code == 0
    assert rwq("ls", "-u", elsewhere, "-o", "ids").text == "a\n"


def test_another_login_is_the_same_server(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    url = rwq.variables["RWQ_URL"]
    rwq("rm", "a", "--yes", "-u", f"{url}?password=")
    (file,) = undo_files(rwq)
    assert f'"server": "{url}"' in file.read_text()
    assert rwq("undo", "-o", "ids").text == "a\n"
    # As older versions wrote it.
    rwq("rm", "b", "--yes")
    (file,) = (each for each in undo_files(rwq) if each.suffix == ".jsonl")
    file.write_text(
        file.read_text().replace(url, f"{url.replace('//', '//ops:***@')}?password=***")
    )
    assert rwq("undo", "-o", "ids").text == "b\n"


def test_files_of_other_servers_are_passed_over(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    here = rwq.variables["RWQ_URL"]
    elsewhere = f"{here}?db=1"
    rwq("rm", "a", "--yes")
    rwq("add", "--id", "x", "data", "-u", elsewhere)
    rwq("rm", "x", "--yes", "-u", elsewhere)
    file = undo_files(rwq)[-1]
    assert rwq("undo", "-o", "ids").text == "a\n"
    assert rwq("undo").as_tuple() == (
        1,
        "",
        f"rwq: error: there is nothing to undo on this server; {file} was written for {elsewhere}; "
        "name that server with -u, or use --anywhere\n",
    )
    assert rwq("undo", "--anywhere", "-o", "ids").text == "x\n"
    assert rwq("ls", "-o", "ids").text == "x\na\n"


def test_items_written_to_the_file_but_not_removed_are_left(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    rwq("rm", "a", "b", "--yes")
    (file,) = undo_files(rwq)
    lines = file.read_text().splitlines(keepends=True)
    with file.open("a") as more:
        more.write('{"kept": true, "id": "b", "id_b64": null}\n')
        # It was killed while it wrote this one down.
        more.write(lines[1][: len(lines[1]) // 2])
    assert rwq("undo", "-o", "ids").text == "a\n"


def test_the_last_of_two_records_of_an_item_counts(rwq: Rwq, foreign: Foreign) -> None:
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
        ('{"rwq_export": 3}\n', "is an export of version 3, and this rwq reads up to 2"),
        ('{"rwq_export": 1, "queue": "jobs"}\n', "is an export, not an undo file"),
    ],
)
def test_without_an_undo_file_there_is_nothing_to_undo(rwq: Rwq, text: str, said: str) -> None:
    (rwq.home / "file").write_text(text)
    result = rwq("undo", str(rwq.home / "file"))
    assert (result.code, result.text, said in result.notes) == (2, "", True)


class TestResults:
    def purged(self, rwq: Rwq, foreign: Foreign) -> dict[bytes, object]:
        foreign.waiting(b"a")
        for item_id in (b"x", b"y"):
            fields = {"status": "completed", "completed_ms": 5, "result": b"\xff"}
            foreign.raw.hset(b"jobs:result:" + item_id, mapping=fields)  # type: ignore[arg-type]
        before = contents(foreign.raw)
        rwq("purge", "--yes")
        return before

    def test_they_are_returned_once(self, rwq: Rwq, foreign: Foreign) -> None:
        before = self.purged(rwq, foreign)
        (file,) = undo_files(rwq)
        dry, result = rwq("undo", "--dry-run", "-o", "json"), rwq("undo", "-o", "json")
        assert dry.json == {**result.json, "dry_run": True}
        assert (result.json["restored"], result.json["results"]) == (1, 2)
        assert contents(foreign.raw) == before
        foreign.raw.delete("jobs:result:x")
        again = rwq("undo", f"{file}.undone", "-o", "json").json
        assert (again["results"], again["results_already_there"]) == (0, 0)
        assert foreign.raw.exists("jobs:result:x") == 0

    def test_a_later_one_stays(self, rwq: Rwq, foreign: Foreign) -> None:
        self.purged(rwq, foreign)
        later = {b"status": b"completed", b"completed_ms": b"5", b"result": b"later"}
        foreign.raw.hset("jobs:result:x", mapping=later)  # type: ignore[arg-type]
        result = rwq("undo", "-o", "json").json
        assert (result["results"], result["results_already_there"]) == (1, 1)
        assert foreign.raw.hgetall("jobs:result:x") == later

    def test_an_undo_that_restores_only_results_is_partial(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        """Some of it is done, though none of it is an item."""
        self.purged(rwq, foreign)
        rwq("undo")
        rwq("complete", "a")
        rwq("purge", "--yes")
        foreign.raw.set("jobs:result:x", "string")
        result = rwq("undo", "-o", "json")
        assert (result.code, result.json["restored"], result.json["results"]) == (3, 0, 1)

    def test_a_result_that_cannot_be_restored_is_rejected(self, rwq: Rwq, foreign: Foreign) -> None:
        self.purged(rwq, foreign)
        foreign.raw.set("jobs:result:x", "string")
        result = rwq("undo", "-o", "json")
        assert (result.code, result.json["results_rejected"]) == (3, 1)
        (file,) = undo_files(rwq)
        foreign.raw.delete("jobs:result:x")
        again = rwq("undo", str(file), "-o", "json")
        assert (again.code, again.json["results"]) == (0, 1)
        assert [each.name for each in undo_files(rwq)] == [f"{file.name}.undone"]


class TestEdits:
    def test_the_latest_is_undone_first(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a")
        before = contents(foreign.raw)
        rwq("edit", "a", "-f", "-", stdin=b"one")
        rwq("edit", "a", "-f", "-", stdin=b"two")
        file, _ = undo_files(rwq)
        rwq("undo")
        assert foreign.raw.get("jobs:item:a") == b"one"
        result = rwq("undo", "-o", "ids")
        assert result.as_tuple() == (
            0,
            "a\n",
            f"restored 1; edit of jobs, from {file}\n",
        )
        assert contents(foreign.raw) == before
        assert rwq("undo").code == 1
        assert all(each.suffix == ".undone" for each in undo_files(rwq))

    def test_data_that_changed_since_is_left(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b", b"c")
        for item_id in ("a", "b", "c"):
            rwq("edit", item_id, "-f", "-", stdin=b"new")
        foreign.raw.set("jobs:item:a", "newer")
        rwq("complete", "b")
        results = {file.name: rwq("undo", str(file)) for file in undo_files(rwq)}
        assert [(each.code, re.split("[;\n]", each.notes)[0]) for each in results.values()] == [
            (1, "rwq: a: it changed meanwhile"),
            (1, "rwq: b: it is not in jobs any more"),
            (0, "restored 1"),
        ]
        assert foreign.raw.get("jobs:item:a") == b"newer"
        assert foreign.raw.exists("jobs:item:b") == 0
        # Named again, it is tried again.
        file = undo_files(rwq)[0]
        assert rwq("undo").code == 1
        foreign.raw.set("jobs:item:a", "new")
        assert rwq("undo", str(file)).code == 0
        assert foreign.raw.get("jobs:item:a") == b"data of a"

    def test_a_dry_run_changes_nothing(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        rwq("edit", "a", "-f", "-", stdin=b"new")
        (file,) = undo_files(rwq)
        text = file.read_bytes()
        dry = rwq("undo", "--dry-run", "-o", "json").json
        assert (file.read_bytes(), foreign.raw.get("jobs:item:a")) == (text, b"new")
        assert rwq("undo", "-o", "json").json == {**dry, "dry_run": False}
        assert dry["restored"] == 1

    @pytest.mark.parametrize("was_written", [True, False])
    def test_a_writer_that_died_left_nothing_in_doubt(
        self, rwq: Rwq, foreign: Foreign, was_written: bool
    ) -> None:
        foreign.waiting(b"a")
        rwq("edit", "a", "-f", "-", stdin=b"new")
        (file,) = undo_files(rwq)
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
        if not was_written:
            foreign.raw.set("jobs:item:a", "data of a")
        result = rwq("undo", "-o", "json").json
        assert (result["restored"], result["already_there"]) == (was_written, not was_written)
        assert result["in_doubt"] == 0
        assert foreign.raw.get("jobs:item:a") == b"data of a"

    def test_an_undo_that_died_is_completed(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        rwq("edit", "a", "-f", "-", stdin=b"new")
        (file,) = undo_files(rwq)
        with file.open("ab") as appended:
            appended.write(b'{"begun":true}\n')
        foreign.raw.set("jobs:item:a", "data of a")
        result = rwq("undo", "-o", "json")
        assert (result.code, result.json["already_there"], result.json["in_doubt"]) == (0, 1, 0)
        assert "in doubt" not in result.notes

    def test_json_has_the_first_rejected_lines(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        rwq("rm", "a", "--yes")
        (file,) = undo_files(rwq)
        with file.open("ab") as appended:
            appended.write(b"[]\n")
        number = file.read_bytes().count(b"\n")
        result = rwq("undo", "-o", "json")
        assert (result.code, result.json["restored"], result.json["rejected"]) == (3, 1, 1)
        assert result.json["failures"] == [
            {
                "id": None,
                "id_b64": None,
                "code": "rejected",
                "reason": f"line {number}: expected `object`, got `array`",
            }
        ]

    def test_another_type_is_rejected(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        rwq("edit", "a", "-f", "-", stdin=b"new")
        foreign.raw.delete("jobs:item:a")
        foreign.raw.lpush("jobs:item:a", "x")
        result = rwq("undo", "-o", "json")
        assert (result.code, result.json["rejected"]) == (1, 1)


def test_nothing_in_this_queue_names_the_latest_other(rwq: Rwq, foreign: Foreign) -> None:
    for name in (b"first", b"other"):
        Foreign(foreign.raw, name).waiting(b"a")
        assert rwq("rm", "a", "--yes", "-q", name.decode()).code == 0
    assert rwq("undo").as_tuple() == (
        1,
        "",
        "rwq: error: there is nothing to undo in jobs; -q other restores the latest of this "
        "server\n",
    )
    assert rwq("undo", "-q", "other").code == 0
    assert "-q first restores" in rwq("undo").notes
    assert rwq("undo", "-q", "first").code == 0
    assert "; undo files are in " in rwq("undo").notes
