"""`rwq import`: an export goes in as it was; bad lines and conflicts are reported."""

import json

import pytest

from tests.conftest import Foreign, contents
from tests.driver import UNDO, Rwq, undo_files

HEADER = '{"rwq_export": 1, "queue": "jobs"}\n'


def lines(*records: object) -> bytes:
    """A header and these lines."""
    return (HEADER + "".join(json.dumps(record) + "\n" for record in records)).encode()


def item(item_id: str, data: str = "new", **more: object) -> dict[str, object]:
    """A waiting item."""
    return {"id": item_id, "data": data, "place": "main", **more}


def test_an_export_is_imported_as_it_was(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"\xff", b"c")
    foreign.leased(b"l", ttl_ms=None)
    foreign.buried(b"b")
    before = contents(foreign.raw)
    (rwq.home / "file").write_bytes(rwq("export").out)
    foreign.raw.flushall()
    result = rwq("import", str(rwq.home / "file"))
    assert result.as_tuple() == (
        0,
        "",
        "imported 5\n",
    )
    assert contents(foreign.raw) == before
    again = rwq("import", "-", stdin=(rwq.home / "file").read_bytes())
    assert again.notes == "already there 5\n"
    assert contents(foreign.raw) == before


@pytest.mark.parametrize(
    ("words", "code", "said", "data"),
    [
        ((), 3, "imported 1, already there 1, conflicts 1", b"data of b"),
        (
            ("--on-conflict", "fail"),
            3,
            "imported 1, already there 1, conflicts 1",
            b"data of b",
        ),
        (("--on-conflict", "skip"), 0, "imported 1, already there 1, skipped 1", b"data of b"),
        (
            ("--on-conflict", "replace", "--yes"),
            0,
            "imported 1, already there 1, replaced 1",
            b"new",
        ),
    ],
)
def test_an_id_with_other_data_is_a_conflict(
    rwq: Rwq, foreign: Foreign, words: tuple[str, ...], code: int, said: str, data: bytes
) -> None:
    foreign.waiting(b"a", b"b")
    given = lines(item("a", "data of a"), item("b"), item("c"))
    before = contents(foreign.raw)
    dry = rwq("import", "-", "--dry-run", *words, stdin=given)
    would = said.replace("imported", "would import")
    would = would.replace("skipped", "would skip").replace("replaced", "would replace")
    assert (dry.code, dry.notes.splitlines()[-1]) == (code, f"dry run: {would}")
    assert contents(foreign.raw) == before
    result = rwq("import", "-", *words, stdin=given)
    *failures, summary = result.notes.splitlines()
    assert (result.code, summary.partition("; undo file ")[0]) == (code, said)
    reason = "it exists with other data; --on-conflict skip leaves it, replace overwrites it"
    assert failures == ([f"rwq: b: {reason}"] if code else [])
    assert foreign.raw.get("jobs:item:b") == data
    assert foreign.raw.lrange("jobs:queue", 0, 0) == [b"c"]


BAD = [
    (b"no json", "not JSON: "),
    (b"[]", "expected `object`, got `array`"),
    (b'{"data": "x"}', "it has no id"),
    (b'{"id": "x"}', "it has neither data nor data_b64"),
    (b'{"id": 1, "data": "x"}', "id: expected `str | null`, got `int`"),
    (b'{"id": "x", "data_b64": "?"}', "data_b64: invalid base64 encoded string"),
    (b'{"id": "x", "data": ""}', "it has no place, such as main"),
    (b'{"id": "x", "data": "", "state": "waiting"}', "it has no place, such as main"),
    (b'{"id": "x", "data": "", "place": "moon"}', "place: invalid enum value 'moon'"),
    (b'{"id": "x", "data": "", "place": "delayed"}', "its place is delayed, but it has no such"),
    (b'{"id": "x", "data": "", "place": "main", "due_ms": 1}', "its place is main, but it has a"),
    (b'{"id": "x", "data": "", "place": "main", "buried_ms": 1}', "its place is main, but it has"),
    (b'{"id": "x", "data": "", "lease": "me"}', "lease: expected `object | null`, got `str`"),
    (b'{"id": "x", "data": "", "due_ms": 1e30}', "due_ms: expected `float` <= 9007199254740992"),
    (b'{"id": "x", "data": "", "returns": 1.5}', "returns: expected `int | null`, got `float`"),
    (b'{"id": "x", "data": "", "returns": -1}', "returns: expected `int` >= 0"),
    (
        b'{"id": "x", "data": "", "returns": 1000000000000000}',
        "returns: expected `int` <= 999999999999999",
    ),
]


def test_json_has_the_first_rejected_lines(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.set("jobs:item:a", "old")
    bad = b"".join(line + b"\n" for line, _ in BAD[:3])
    result = rwq("import", "-", "-o", "json", stdin=lines(item("a"), item("b")) + bad)
    assert result.code == 3
    assert (result.json["imported"], result.json["rejected"]) == (1, 3)
    *rejected, conflict = result.json["failures"]
    assert [(each["id"], each["id_b64"], each["code"]) for each in rejected] == [
        (None, None, "rejected")
    ] * 3
    for number, (each, (_, why)) in enumerate(zip(rejected, BAD, strict=False), 4):
        assert each["reason"].startswith(f"line {number}: {why}")
    assert (conflict["id"], conflict["code"]) == ("a", "conflicts")
    many = rwq("import", "-", "-o", "json", stdin=lines(item("b")) + 2 * bad).json
    assert (many["rejected"], len(many["failures"])) == (6, 5)
    assert [each["reason"][:7] for each in many["failures"]] == [f"line {n}:" for n in range(3, 8)]


@pytest.mark.parametrize(("line", "why"), BAD)
def test_a_bad_line_is_rejected_alone(rwq: Rwq, foreign: Foreign, line: bytes, why: str) -> None:
    given = lines(item("a")) + line + b"\n" + lines(item("b"))[len(HEADER) :]
    result = rwq("import", "-", stdin=given)
    failure, summary = result.notes.splitlines()
    assert failure.startswith(f"rwq: line 3: {why}")
    assert failure.endswith("; not imported")
    assert summary.startswith("imported 2, ")
    assert summary.endswith("rejected 1")
    assert result.code == 3
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"b", b"a"]
    foreign.raw.flushall()
    assert rwq("import", "-", "--strict", stdin=given).code == 3
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "stdin does not begin with the header of an export"),
        (b'{"id": "a", "data": "x"}\n', "stdin does not begin with the header of an export"),
        (b'{"rwq_export": true}\n', "stdin does not begin with the header of an export"),
        (b'{"rwq_export": 3, "queue": "jobs"}\n', "stdin is an export of version 3"),
        (b'{"rwq_export": 1}\n', "the header of stdin cannot be used: it does not name a queue"),
    ],
)
def test_a_bad_header_is_an_error(rwq: Rwq, foreign: Foreign, given: bytes, said: str) -> None:
    result = rwq("import", "-", stdin=given + lines(item("a"))[len(HEADER) :])
    assert (result.code, result.text) == (2, "")
    assert result.notes.startswith(f"rwq: error: {said}")
    assert foreign.raw.keys() == []


class TestResults:
    def kept(self, item_id: str, **more: object) -> dict[str, object]:
        return {"result_of": item_id, "status": "completed", "completed_ms": 1, **more}

    def test_an_existing_result_stays_unless_replaced(self, rwq: Rwq, foreign: Foreign) -> None:
        given = lines(item("a"), self.kept("a", result="new"), self.kept("b", result="new"))
        foreign.raw.hset(
            "jobs:result:b", mapping={"status": "completed", "completed_ms": 5, "result": "old"}
        )
        for words, name in (
            ((), "results_already_there"),
            (("--on-conflict", "replace"), "results"),
        ):
            dry = rwq("import", "-", "--dry-run", "-o", "json", *words, stdin=given)
            result = rwq("import", "-", "-o", "json", *words, stdin=given)
            assert result.code == 0
            assert result.json[name] > 0
            wanted = b"new" if words else b"old"
            assert foreign.raw.hget("jobs:result:b", "result") == wanted
            if not words:
                assert dry.json == {**result.json, "dry_run": True}
                assert [result.json["imported"], result.json["results"]] == [1, 1]

    def test_a_bad_result_is_rejected(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.raw.set("jobs:result:s", "string")
        given = lines(
            self.kept("a", status="lost"),
            {"result_of": "b", "status": "completed"},
            {"result_of": "c", "completed_ms": 5},
            self.kept("d", ttl_ms=-1),
            self.kept("e", result=5),
            self.kept("f", result=None, result_b64="?"),
            self.kept("s"),
            item("g"),
            self.kept("h", completed_ms=-1),
            self.kept("i", completed_ms=10**15),
        )
        result = rwq("import", "-", stdin=given)
        assert result.code == 3
        assert result.notes.splitlines() == [
            "rwq: line 2: status: invalid enum value 'lost'; not imported",
            "rwq: line 3: it is a result without a status or a time; not imported",
            "rwq: line 4: it is a result without a status or a time; not imported",
            "rwq: line 5: ttl_ms: expected `int` >= 0; not imported",
            "rwq: line 6: result: expected `str | null`, got `int`; not imported",
            "rwq: line 7: result_b64: invalid base64 encoded string; not imported",
            "rwq: line 10: completed_ms: expected `int` >= 0; not imported",
            "rwq: line 11: completed_ms: expected `int` <= 999999999999999; not imported",
            "imported 1, rejected 8, results rejected 1",
        ]


@pytest.mark.usefixtures("slept_s")
class TestReplace:
    """`--on-conflict replace` asks, as what removes items does, and can be undone."""

    GIVEN = lines(item("a"), item("l"), item("fresh"), item("same", "data of same"))
    QUESTION = "rwq will replace 2 items of jobs (1 of them leased) with what {} has on "

    @pytest.fixture(autouse=True)
    def present(self, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"same", b"z")
        foreign.leased(b"l")

    @pytest.mark.parametrize("name", ["file", "-", "/dev/stdin"])
    def test_the_question_counts_what_would_be_replaced(
        self, rwq: Rwq, foreign: Foreign, name: str
    ) -> None:
        (rwq.home / "file").write_bytes(self.GIVEN)
        before = contents(foreign.raw)
        words = ("import", "--on-conflict", "replace", name)
        given = None if name == "file" else self.GIVEN
        question = self.QUESTION.format("stdin" if name == "-" else name)
        code, seen = rwq.on_terminal(*words, stdin=given, type_in=[(b"[y/N] ", b"n\n")])
        assert (code, question.encode() in seen.replace(b"\r\n", b" ")) == (1, True)
        assert contents(foreign.raw) == before
        code, seen = rwq.on_terminal(*words, stdin=given, type_in=[(b"[y/N] ", b"y\n")])
        assert (code, b"imported 1, already there 1, replaced 2; undo file " in seen) == (0, True)
        assert foreign.raw.get("jobs:item:l") == b"new"

    def test_without_a_terminal_it_needs_yes(self, rwq: Rwq, foreign: Foreign) -> None:
        before = contents(foreign.raw)
        refused = rwq("import", "-", "--on-conflict", "replace", stdin=self.GIVEN)
        assert (refused.code, "; use --yes" in refused.notes) == (2, True)
        assert contents(foreign.raw) == before
        for words in (("--on-conflict", "skip"), ("--on-conflict", "replace", "--dry-run")):
            assert rwq("import", "-", *words, stdin=self.GIVEN).code == 0

    def test_an_undo_restores_what_was_replaced_and_no_more(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.raw.delete("jobs:queue")
        foreign.raw.rpush("jobs:queue", "z", "same", "a")
        before = contents(foreign.raw)
        replace = ("import", "-", "--on-conflict", "replace", "--yes")
        result = rwq(*replace, stdin=self.GIVEN)
        (file,) = undo_files(rwq)
        assert result.notes == (
            f"imported 1, already there 1, replaced 2; undo file {UNDO}/{file.name}; "
            "rwq undo puts back what was replaced\n"
        )
        assert rwq(*replace, "-o", "json", stdin=self.GIVEN).json["undo_file"] is None
        undone = rwq("undo", "--yes")
        assert undone.as_tuple() == (
            0,
            "",
            f"restored 2; import of jobs, from {UNDO}/{file.name}\n",
        )
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"fresh", b"z", b"same", b"a"]
        assert rwq("complete", "fresh").code == 0
        assert contents(foreign.raw) == before
        assert [each.name for each in undo_files(rwq)] == [f"{file.name}.undone"]

    def test_results_are_undone_too(self, rwq: Rwq, foreign: Foreign) -> None:
        rwq("complete", "a", "--result", "-", stdin=b"old")
        given = rwq("export").out
        rwq("add", "x", "--id", "a")
        rwq("complete", "a", "--result", "-", stdin=b"newer")
        before = contents(foreign.raw)
        result = rwq("import", "-", "--on-conflict", "replace", "--yes", stdin=given)
        assert rwq("result", "a", "-o", "data").text == "old"
        assert "; rwq undo puts back what was replaced" in result.notes
        rwq("undo", "--yes")
        assert contents(foreign.raw) == before
        rwq("import", "-", "--on-conflict", "replace", "--yes", stdin=given)
        foreign.raw.hset("jobs:result:a", mapping={"completed_ms": 7, "result": "newest"})
        rwq("undo", "--yes")
        assert rwq("result", "a", "-o", "data").text == "newest"

    def test_each_queue_of_several_is_asked_about_and_undone(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        Foreign(foreign.raw, b"other").waiting(b"o")
        (rwq.home / "file").write_bytes(rwq("export", "--all-queues").out)
        foreign.raw.mset({"jobs:item:a": "x", "other:item:o": "x"})
        before = contents(foreign.raw)
        words = ("import", "file", "--on-conflict", "replace")
        no_queue = {"RWQ_QUEUE": ""}
        asks = [(b"1 item of jobs", b"y\n"), (b"1 item of other", b"n\n")]
        code, _ = rwq.on_terminal(*words, type_in=asks, variables=no_queue)
        assert (code, contents(foreign.raw)) == (1, before)
        asks = [(b"1 item of jobs", b"y\n"), (b"1 item of other", b"y\n")]
        code, _ = rwq.on_terminal(*words, type_in=asks, variables=no_queue)
        assert (code, foreign.raw.get("other:item:o")) == (0, b"data of o")
        assert (
            rwq("undo", "--yes", "-q", "other").code == rwq("undo", "--yes", "-q", "jobs").code == 0
        )
        assert contents(foreign.raw) == before
