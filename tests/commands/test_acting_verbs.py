"""`rwq bury`, `complete`, `release`, `rm` and `purge`: questions, summaries, failures, undo."""

import json
import re
import stat
import time

import pytest

from tests.conftest import Foreign, contents, lasts
from tests.driver import UNDO, Rwq, configure, undo_files

pytestmark = pytest.mark.usefixtures("slept_s")


def test_a_thousand_by_options_ask_for_the_queues_name(rwq: Rwq, foreign: Foreign) -> None:
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
    listed = rwq("ls", "buried", "-o", "json").json
    assert {each["id"]: each["reason"] for each in listed} == dict.fromkeys(
        ("b", "d"), "crashes the parser"
    )
    for options, summary in (
        (["--reason", "new", "--dry-run"], "dry run: would replace the reason of 1\n"),
        (["--reason", "new"], "reason replaced 1\n"),
        (["--reason", "new"], "already buried 1\n"),
        ([], "already buried 1\n"),
    ):
        assert rwq("bury", "d", *options).as_tuple() == (0, "", summary)


@pytest.mark.parametrize("options", ["", "--delay 1h", "--front"])
def test_release_mine_is_of_all_of_this_session(rwq: Rwq, foreign: Foreign, options: str) -> None:
    foreign.leased(b"theirs")
    foreign.leased(b"glob", holder=b"rwq:tester@*:s1")
    foreign.waiting(b"a", b"b", b"c")
    rwq("lease", "-n", "2")
    before = contents(foreign.raw)
    words = ("release", "--mine", "-o", "ids", *options.split())
    dry = rwq(*words, "--dry-run")
    assert (sorted(dry.text.split()), contents(foreign.raw)) == (["a", "b"], before)
    result = rwq(*words)
    assert (result.code, sorted(result.text.split())) == (0, ["a", "b"])
    assert sorted(rwq("leases", "-o", "ids").text.split()) == ["glob", "theirs"]
    assert rwq("release", "--mine").code == 0


def test_the_undo_command_has_the_queue_and_server(rwq: Rwq, foreign: Foreign) -> None:
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
    header, record, end, trailer = map(json.loads, file.read_text().splitlines())
    assert (header["queue"], header["undo"]["verb"], end) == ("jobs", "rm", {"taken": 1})
    assert trailer == {"closed": {"items": 1, "results": 0, "state": "unused"}}
    assert (record["id"], record["data"], record["place"]) == ("a", "data of a", "main")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_other_keys_under_the_prefix_of_results_stay(rwq: Rwq, foreign: Foreign) -> None:
    fields = {"status": "completed", "completed_ms": 1_700_000_000_000, "result": b"\x00\xfe"}
    for item_id in (b"gone", b"\xff"):
        foreign.raw.hset(b"jobs:result:" + item_id, mapping=fields)  # type: ignore[arg-type]
    foreign.raw.hset("jobs:result:odd", "x", "y")
    foreign.raw.set("jobs:result:s", "t")
    said = "rwq: kept 2 keys of other programs, with names like those of results\n"
    dry = rwq("purge", "--dry-run")
    assert dry.notes == f"{said}dry run: results 2\n"
    result = rwq("purge", "--yes")
    (file,) = undo_files(rwq)
    summary = f"results 2; undo file {UNDO}/{file.name}; rwq undo puts them back\n"
    assert result.as_tuple() == (0, "", said + summary)
    assert list(contents(foreign.raw)) == [b"jobs:result:odd", b"jobs:result:s"]
    foreign.raw.delete("jobs:result:s")
    assert rwq("purge", "-o", "json").notes == said.replace("2", "1")


def named(notes: str) -> dict[str, str]:
    """The reasons by ID; the time left, which goes by, as TIME."""
    lines = [line.split(": ", 2) for line in notes.splitlines() if line.startswith("rwq: ")]
    return {item_id: re.sub(r"for [0-9ms.]+;", "for TIME;", reason) for _, item_id, reason in lines}


MORE = "rwq show -q jobs ID says more; --force in place of --owner completes it anyway"


@pytest.mark.parametrize(
    ("line", "way_out"),
    {
        "release": "--force ends its lease",
        "bury": "--force ends its lease",
        "mv --to other --yes": "--force moves it anyway",
        "complete --owner me": MORE,
        "complete": "--force completes it anyway",
    }.items(),
)
def test_a_leased_item_names_holder_and_way_out(
    rwq: Rwq, foreign: Foreign, line: str, way_out: str
) -> None:
    foreign.leased(b"17", holder=b"worker-3", ttl_ms=250_000)
    foreign.leased(b"18", holder=b"worker-4", ttl_ms=None)
    notes = rwq(*line.split(), "17", "18").notes
    assert named(notes) == {
        "17": f"leased by worker-3 for TIME; {way_out.replace('ID', '17')}",
        "18": f"leased by worker-4 without expiry; {way_out.replace('ID', '18')}",
    }
    assert notes.splitlines()[-1].startswith("not owner 2")
    assert re.search(r"for 4m\d+s;", notes)


def test_json_names_the_first_failures(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    foreign.leased(b"17", holder=b"worker-3", ttl_ms=None)
    gone = [f"gone{number}" for number in range(9)]
    document = rwq("release", "-", "-o", "json", stdin=b"a\n17\n\xff\n").json
    assert document["failures"] == [
        {
            "id": "17",
            "id_b64": None,
            "code": "not-owner",
            "reason": "leased by worker-3 without expiry; --force ends its lease",
        },
        {"id": None, "id_b64": "/w==", "code": "missing", "reason": "no such item"},
    ]
    many = rwq("complete", *gone, "-o", "json").json
    assert [each["id"] for each in many["failures"]] == gone[:5]
    assert many["missing"] == 9
    assert rwq("complete", "a", "-o", "json").json["failures"] == []


class TestComplete:
    """What a session holds is completed at once, the rest like a removal."""

    def lease(self, rwq: Rwq, session: str) -> str:
        return rwq("lease", "-o", "ids", variables={"RWQ_SESSION": session}).text.strip()

    def test_who_holds_it_decides(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2", b"3", b"4", b"w")
        own, shell, quoted = (self.lease(rwq, session) for session in ("s1", "other", "it's"))
        foreign.abandoned(b"a")
        foreign.leased(b"theirs", ttl_ms=None)
        foreign.buried(b"b")
        ids = [own, shell, quoted, "a", "theirs", "b", "w", "gone"]
        dry = rwq("complete", *ids, "--dry-run", "-o", "jsonl").jsonl
        notes = rwq("complete", *ids, "--dry-run").notes
        result = rwq("complete", *ids, "-o", "jsonl")
        assert result.jsonl == dry
        assert {each["id"]: each["status"] for each in dry} == {
            **dict.fromkeys((own, "a", "b", "w"), "completed"),
            **dict.fromkeys((shell, quoted, "theirs"), "not-owner"),
            "gone": "missing",
        }
        words = "completes it for that session, --force completes it anyway"
        assert {key: why.partition("; ")[2] for key, why in named(notes).items()} == {
            "gone": "",
            shell: f"--owner other {words}",
            quoted: f"--owner 'it'\"'\"'s' {words}",
            "theirs": "--force completes it anyway",
        }
        (file,) = undo_files(rwq)
        saved = [
            each["id"] for each in map(json.loads, file.read_text().splitlines()) if "id" in each
        ]
        assert sorted(saved) == ["a", "b", "w"], "one's own is not saved"
        assert rwq("complete", "theirs", "--force").code == 0
        assert rwq("undo", "--yes", "-o", "ids").text == "theirs\n"
        assert rwq("complete", "theirs", "--force", "--mine").code == 2

    @pytest.mark.parametrize("protect", ["ask", "type"])
    def test_a_protected_context_asks_also_of_named_ids(
        self, rwq: Rwq, foreign: Foreign, protect: str
    ) -> None:
        url = rwq.variables["RWQ_URL"]
        configure(rwq.home, f'[contexts.prod]\nurl = "{url}"\nprotect = "{protect}"\n')
        foreign.waiting(b"1", b"2", b"w")
        yes = "--yes=prod" if protect == "type" else "--yes"
        said = (
            "rwq will complete 2 items of jobs (1 of them leased) that this session does not hold"
        )
        stdin = b"".join(b"%b\n" % self.lease(rwq, name).encode() for name in ("s1", "x")) + b"w\n"
        result = rwq("complete", "-", "--force", stdin=stdin)
        assert (result.code, said in result.notes, f"use {yes}" in result.notes) == (3, True, True)
        assert result.notes.startswith("completed 1\n")
        assert foreign.raw.exists("jobs:item:2", "jobs:item:w") == 2
        prompt = b"context's name to continue: " if protect == "type" else b"[y/N] "
        code, _ = rwq.asked("complete", "-", "--force", stdin=stdin, type_in=[(prompt, b"n\n")])
        assert (code, undo_files(rwq)) == (1, [])
        result = rwq("complete", "-", "--force", yes, stdin=stdin)
        assert (result.code, "; undo file " in result.notes) == (3, True)
        assert rwq("undo", yes, "-o", "ids").text.split() == ["w", "2"]

    def test_unprotected_asks_about_many_on_a_terminal(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(*(b"%d" % number for number in range(1000)))
        stdin = b"".join(b"%d\n" % number for number in range(1000))
        asked = b"Type the queue's name to continue: "
        code, _ = rwq.asked("complete", "-", stdin=stdin, type_in=[(asked, b"other\n")])
        assert (code, foreign.raw.llen("jobs:queue")) == (1, 1000)
        assert rwq.asked("complete", "-", stdin=stdin[:-4], type_in=[])[0] == 0
        assert rwq("complete", "-", stdin=stdin).code == 3
        assert [len(file.read_text().splitlines()) > 1 for file in undo_files(rwq)] == [True] * 2


class TestSession:
    """`--mine`, and `--owner` with the name of a session."""

    def test_the_short_name_is_of_a_session_here(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        rwq("lease", variables={"RWQ_SESSION": "nightly"})
        foreign.leased(b"whole", holder=b"nightly")
        foreign.leased(b"elsewhere", holder=b"rwq:tester@elsewhere:nightly")
        words = ("complete", "a", "whole", "elsewhere", "--owner", "nightly", "-o", "jsonl")
        statuses = [record["status"] for record in rwq(*words).jsonl]
        assert statuses == ["completed", "completed", "not-owner"]


class TestResult:
    def kept(self, foreign: Foreign, item_id: str) -> dict[bytes, bytes]:
        fields: dict[bytes, bytes] = foreign.raw.hgetall(f"jobs:result:{item_id}")
        fields.pop(b"completed_ms", None)
        return fields

    def test_an_outcome_without_a_result_is_kept(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        assert rwq("complete", "a", "--rejected").code == 0
        assert rwq("complete", "b", "--result-ttl", "90s").code == 0
        kept = [self.kept(foreign, item_id) for item_id in ("a", "b")]
        assert kept == [{b"status": b"rejected"}, {b"status": b"completed"}]
        assert lasts(foreign.raw, 3600, "jobs:result:a")
        assert lasts(foreign.raw, 90, "jobs:result:b")


@pytest.mark.parametrize(
    ("before", "words", "queue"),
    [
        ("bury --all", "kick --all", "jobs"),
        ("lease -n 6", "release --mine", "jobs"),
        ("stats", "mv --all --to other", "other"),
        ("stats", "mv --all --to other --to-url {url}?db=1", "other?db=1"),
    ],
)
def test_a_rate_spreads_what_is_done(rwq: Rwq, before: str, words: str, queue: str) -> None:
    rwq("add", "-", stdin=b"0\n1\n2\n3\n4\n5\n")
    url, (queue, _, db) = rwq.variables["RWQ_URL"], queue.partition("?")
    rwq(*before.split())
    began_s = time.monotonic()
    result = rwq(*words.format(url=url).split(), "--rate", "10/s", "--yes")
    assert (result.code, time.monotonic() - began_s > 0.5) == (0, True)
    words_of_stats = ("stats", "-q", queue, "--fields", "waiting", "-o", "plain")
    assert rwq(*words_of_stats, "-u", f"{url}?{db}").text == "6\n"
