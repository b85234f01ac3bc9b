"""`rwq export` and `import`: any bytes go out and in as they were; bad lines are told."""

import json
from collections.abc import Callable

import pytest

from tests.conftest import Foreign, StartServer, contents
from tests.driver import UNDO, Rwq, complete, undo_files

HEADER = '{"rwq_export": 1, "queue": "jobs"}\n'


CUT = "rwq: note: stdin has no end line: it was truncated, or lines were selected"


def lines(*records: object) -> bytes:
    return (HEADER + "".join(json.dumps(record) + "\n" for record in records)).encode()


def item(item_id: str, data: str = "new", **more: object) -> dict[str, object]:
    return {"id": item_id, "data": data, "place": "main", **more}


@pytest.mark.parametrize(
    ("words", "code", "said", "data"),
    [
        ("", 3, "imported 1, already there 1, conflicts 1", b"data of b"),
        ("--on-conflict skip", 0, "imported 1, already there 1, skipped 1", b"data of b"),
        ("--on-conflict replace --yes", 0, "imported 1, already there 1, replaced 1", b"new"),
    ],
)
def test_an_id_with_other_data_is_a_conflict(
    rwq: Rwq, foreign: Foreign, words: str, code: int, said: str, data: bytes
) -> None:
    foreign.waiting(b"a", b"b")
    given = lines(item("a", "data of a"), item("b"), item("c"))
    dry = rwq("import", "-", "--dry-run", *words.split(), stdin=given)
    would = said.replace("imported", "would import").replace("replaced", "would replace")
    would = would.replace("skipped", "would skip")
    assert (dry.code, dry.notes.splitlines()[-2:]) == (code, [f"dry run: {would}", CUT])
    result = rwq("import", "-", *words.split(), stdin=given)
    *failures, summary, _ = result.notes.splitlines()
    assert (result.code, summary.partition("; undo file ")[0]) == (code, said)
    reason = "it exists with other data; --on-conflict skip leaves it, replace overwrites it"
    assert failures == ([f"rwq: b: {reason}"] if code else [])
    assert foreign.raw.get("jobs:item:b") == data


BAD = [
    (b"no json", "not JSON: "),
    (b'{"data": "x"}', "it has no id"),
    (b'{"id": "x"}', "it has neither data nor data_b64"),
    (b'{"id": "x", "data_b64": "?"}', "data_b64: invalid base64 encoded string"),
    (b'{"id": "x", "data": ""}', "it has no place, such as main"),
    (b'{"id": "x", "data": "", "place": "moon"}', "place: invalid enum value 'moon'"),
    (b'{"id": "x", "data": "", "place": "delayed"}', "its place is delayed, but the time"),
    (b'{"id": "x", "data": "", "place": "main", "due_ms": 1}', "its place is main, but it has a"),
    (b'{"id": "x", "data": "", "lease": "me"}', "lease: expected `object | null`, got `str`"),
    (b'{"id": "x", "data": "", "due_ms": 1e30}', "due_ms: expected `float` <= 9007199254740992"),
    (b'{"id": "x", "data": "", "returns": -1}', "returns: expected `int` >= 0"),
]


def test_a_bad_line_is_rejected_alone(rwq: Rwq, foreign: Foreign) -> None:
    given = lines(item("a")) + b"\n".join(line for line, _ in BAD) + b"\n"
    result = rwq("import", "-", stdin=given + lines(item("b"))[len(HEADER) :])
    *failures, summary, cut = result.notes.splitlines()
    assert (len(failures), cut) == (len(BAD), CUT)
    reasons = [f"rwq: line {number}: {why}" for number, (_, why) in enumerate(BAD, 3)]
    starts = [line[: len(why)] for line, why in zip(failures, reasons, strict=True)]
    assert starts == reasons
    assert [line for line in failures if not line.endswith("; not imported")] == []
    assert (result.code, summary) == (3, f"imported 2, rejected {len(BAD)}")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"b", b"a"]
    foreign.raw.flushall()
    assert rwq("import", "-", "--strict", stdin=given).code == 3
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]


@pytest.mark.usefixtures("slept_s")
class TestReplace:
    """`--on-conflict replace` asks, as what removes items does, and can be undone."""

    GIVEN = lines(item("a"), item("l"), item("fresh"), item("same", "data of same"))
    QUESTION = "rwq will replace 2 items of jobs (1 of them leased) with what {} has on "

    @pytest.fixture(autouse=True)
    def present(self, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"same", b"z")
        foreign.leased(b"l")

    def test_the_question_counts_what_would_be_replaced(self, rwq: Rwq, foreign: Foreign) -> None:
        (rwq.home / "file").write_bytes(self.GIVEN)
        before = contents(foreign.raw)
        words = ("import", "--on-conflict", "replace", str(rwq.home / "file"))
        question = self.QUESTION.format(words[-1])
        code, seen = rwq.asked(*words, type_in=[(b"[y/N] ", b"n\n")])
        assert (code, question in " ".join(seen.decode().split())) == (1, True)
        assert contents(foreign.raw) == before
        code, seen = rwq.asked(*words, type_in=[(b"[y/N] ", b"y\n")])
        assert (code, b"imported 1, already there 1, replaced 2; undo file " in seen) == (0, True)
        assert foreign.raw.get("jobs:item:l") == b"new"

    def test_what_is_read_once_needs_yes(self, rwq: Rwq, foreign: Foreign) -> None:
        before = contents(foreign.raw)
        result = rwq("import", "--on-conflict", "replace", "-", stdin=self.GIVEN)
        assert (result.code, result.notes[-28:]) == (2, "; name a file, or use --yes\n")
        assert contents(foreign.raw) == before

    def test_an_undo_restores_only_what_was_replaced(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.raw.delete("jobs:queue")
        foreign.raw.rpush("jobs:queue", "z", "same", "a")
        before = contents(foreign.raw)
        replace = ("import", "-", "--on-conflict", "replace", "--yes")
        result = rwq(*replace, stdin=self.GIVEN)
        (file,) = undo_files(rwq)
        assert result.notes == (
            f"imported 1, already there 1, replaced 2; undo file {UNDO}/{file.name}; "
            f"rwq undo puts back what was replaced\n{CUT}\n"
        )
        assert rwq(*replace, "-o", "json", stdin=self.GIVEN).json["undo_file"] is None
        # The last import left nothing to undo.
        assert rwq("undo", "--yes").code == 1
        undone = rwq("undo", "--yes", "1")
        assert undone.as_tuple() == (
            0,
            "",
            f"restored 2; import of jobs, from {UNDO}/{file.name}\n",
        )
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"fresh", b"z", b"same", b"a"]
        complete(rwq, "fresh")
        assert contents(foreign.raw) == before
        assert [each.name for each in undo_files(rwq)] == [f"{file.name}.undone"]


@pytest.mark.parametrize(
    ("choose", "code", "note"),
    [
        (lambda lines: lines, 0, None),
        (lambda lines: lines[:3], 0, CUT),
        (
            lambda lines: [*lines[:2], *lines[3:]],
            3,
            "rwq: error: stdin has 4 lines, not the 5 that its end line counts",
        ),
    ],
    ids=["whole", "cut", "a line is missing"],
)
def test_an_export_tells_whether_it_is_whole(
    rwq: Rwq,
    foreign: Foreign,
    choose: Callable[[list[bytes]], list[bytes]],
    code: int,
    note: str | None,
) -> None:
    foreign.waiting(b"a", b"b", b"c", b"d")
    foreign.raw.hset("jobs:result:r", mapping={"status": "completed", "completed_ms": 5})
    exported = rwq("export").out
    assert exported.endswith(b'{"export_end": {"items": 4, "results": 1}}\n')
    chosen = b"".join(choose(exported.splitlines(keepends=True)))
    results = [rwq(*line.split(), stdin=chosen) for line in ("import - -q copy", "diff --file -")]
    assert [result.code for result in results] == [code, int(note is not None)]
    is_last = [result.notes.splitlines()[-1] == note for result in results]
    assert is_last == [note is not None] * 2


def test_ids_and_data_can_be_any_bytes(rwq: Rwq, foreign: Foreign) -> None:
    raw = foreign.raw
    raw.set(b"jobs:item:\xff", b"\x00\xfe")
    raw.set("jobs:item:\u202e", "\u2028 \x7f \x1b[2J \u00e9")
    raw.lpush("jobs:queue", b"\xff", "\u202e")
    before = contents(raw)
    result = rwq("export")
    _, first, second, _ = result.jsonl
    assert (first["id"], first["id_b64"]) == (None, "/w==")
    assert (first["data"], first["data_b64"]) == (None, "AP4=")
    assert (second["id"], second["data"]) == ("\u202e", "\u2028 \x7f \x1b[2J \u00e9")
    assert result.text.replace("\n", "").isprintable()
    assert contents(raw) == before


def test_a_key_of_another_type_is_named(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.hset("jobs:item:h", "a", "b")
    result = rwq("export")
    assert (result.code, result.notes) == (
        1,
        "rwq: jobs:item:h has the wrong type; not exported\n"
        "nothing exported; skipped 1 of the wrong type\n",
    )
    foreign.waiting(b"a", b"b")
    foreign.raw.lpush("jobs:lease:b", "x")
    result = rwq("export")
    assert (result.code, [line.get("id") for line in result.jsonl]) == (3, [None, "a", None])
    assert result.notes.startswith("rwq: jobs:lease:b has the wrong type; ")


def test_a_small_output_buffer_gets_small_batches(rwq: Rwq, start_server: StartServer) -> None:
    server = start_server("--client-output-buffer-limit", "normal 1mb 0 0")
    with server.client() as raw:
        for number in range(20):
            raw.set(b"jobs:item:%d" % number, b"x" * 300_000)
            raw.lpush("jobs:queue", number)
            data = {b"status": b"completed", b"completed_ms": b"1", b"result": b"y" * 300_000}
            raw.hset(b"jobs:result:r%d" % number, mapping=data)
        lines = ("export", "ls --data -n 0 -o jsonl", "rm --all --yes -o jsonl")
        results = [rwq(*line.split(), "-u", server.url) for line in lines]
        assert [(result.code, len(result.lines) > 19) for result in results] == [(0, True)] * 3
        assert rwq("undo", "--yes", "-u", server.url).code == 0
        raw.set("jobs:item:7", b"x" * 1_500_000)
        limit = "client-output-buffer-limit for normal clients is 1,048,576 bytes"
        lines = ("export", "lease -n 20 -o data")
        notes = [rwq(*line.split(), "-u", server.url).notes for line in lines]
        assert [text for text in notes if limit not in text] == []
