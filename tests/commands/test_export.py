"""`rwq export`: JSON lines behind a header, whatever the bytes."""

import sys

import pytest

from tests.conftest import ABSENT, Foreign, contents
from tests.driver import Rwq


def test_an_empty_queue_is_a_header(rwq: Rwq) -> None:
    result = rwq("export")
    (header,) = result.jsonl
    assert list(header) == ["rwq_export", "queue", "queue_b64", "exported_ms", "undo"]
    assert (header["rwq_export"], header["queue"], header["undo"]) == (1, "jobs", None)
    assert (result.code, result.notes) == (0, f"{ABSENT}nothing exported\n")


def test_ids_and_data_can_be_any_bytes(rwq: Rwq, foreign: Foreign) -> None:
    raw = foreign.raw
    raw.set(b"jobs:item:\xff", b"\x00\xfe")
    raw.set("jobs:item:\u202e", "\u2028 \x7f \x1b[2J \u00e9")
    raw.lpush("jobs:queue", b"\xff", "\u202e")
    before = contents(raw)
    result = rwq("export")
    _, first, second = result.jsonl
    assert (first["id"], first["id_b64"]) == (None, "/w==")
    assert (first["data"], first["data_b64"]) == (None, "AP4=")
    assert (second["id"], second["data"]) == ("\u202e", "\u2028 \x7f \x1b[2J \u00e9")
    assert result.text.replace("\n", "").isprintable()
    assert contents(raw) == before


def test_a_leased_item_has_its_lease(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"l", holder=b"\xffthem", ttl_ms=None)
    _, record = rwq("export").jsonl
    assert record == {
        "id": "l",
        "id_b64": None,
        "data": "data of l",
        "data_b64": None,
        "state": "held",
        "place": "processing",
        "lease": {"holder": None, "holder_b64": "/3RoZW0=", "ttl_ms": None},
        "due_ms": None,
        "buried_ms": None,
        "reason": None,
        "returns": None,
        "nearer": None,
    }


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
    result = rwq("export", "-o", "ids")
    assert (result.code, result.text) == (3, "a\n")
    assert result.notes.startswith("rwq: jobs:lease:b has the wrong type; ")


def test_memory_does_not_grow_with_the_data(rwq: Rwq, foreign: Foreign) -> None:
    """128 MB of items of one megabyte."""
    for number in range(128):
        foreign.raw.set(f"jobs:item:{number}", b"x" * 1_000_000)
        foreign.raw.lpush("jobs:queue", number)
    program = (
        "import resource, subprocess, sys; "
        "subprocess.run([sys.executable, '-m', 'rwq_cli', *sys.argv[1:]], "
        "stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    result = rwq.shell(f'{sys.executable} -c "{program}" export')
    assert result.code == 0
    assert int(result.text) < 100_000


def exported(rwq: Rwq, *words: str, stdin: bytes = b"") -> list[str]:
    return [record["id"] for record in rwq("export", *words, stdin=stdin).jsonl[1:]]


@pytest.mark.usefixtures("slept_s")
def test_ids_and_options_select_exported_items(rwq: Rwq, foreign: Foreign) -> None:
    """The grammar of all verbs on many items; nothing chosen is everything."""
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.leased(b"l1", b"l2")
    foreign.data(b"o1")
    assert exported(rwq) == ["w1", "w2", "w3", "l1", "l2", "o1"]
    assert exported(rwq, "--all") == ["w1", "w2", "w3", "l1", "l2", "o1"]
    assert exported(rwq, "l2", "w2") == ["w2", "l2"]
    assert exported(rwq, "-", stdin=b"o1\nw3\n") == ["w3", "o1"]
    assert exported(rwq, "--state", "leased", "--state", "orphaned") == ["l1", "l2", "o1"]
    assert exported(rwq, "--match", "of w[13]") == ["w1", "w3"]
    assert exported(rwq, "--id-glob", "*2") == ["w2", "l2"]
    assert exported(rwq, "-n", "2") == ["w1", "w2"]


def test_unknown_ids_are_missing(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    result = rwq("export", "a", "gone")
    assert (result.code, result.notes) == (3, "exported 1, missing 1\n")
    result = rwq("export", "gone")
    assert (result.code, result.notes) == (1, "nothing exported, missing 1\n")
    assert len(result.jsonl) == 1


class TestResults:
    def keep(self, foreign: Foreign) -> None:
        """One of an item that is gone, binary, and one of an item that was added again."""
        foreign.waiting(b"a")
        for item_id in (b"a", b"\xff"):
            fields = {
                "status": "rejected",
                "completed_ms": 1_700_000_000_000,
                "result": b"\x00\xfe",
            }
            foreign.raw.hset(b"jobs:result:" + item_id, mapping=fields)  # type: ignore[arg-type]

    @pytest.mark.parametrize("words", [(), ("--all",)])
    def test_results_follow_the_items(
        self, rwq: Rwq, foreign: Foreign, words: tuple[str, ...]
    ) -> None:
        self.keep(foreign)
        result = rwq("export", *words)
        assert (result.code, result.notes) == (0, "exported 1, results 2\n")
        _, item, *results = result.jsonl
        assert item["id"] == "a"
        assert sorted(results, key=str) == sorted(
            (
                {
                    "result_of": item_id,
                    "result_of_b64": None if item_id else "/w==",
                    "status": "rejected",
                    "completed_ms": 1_700_000_000_000,
                    "result": None,
                    "result_b64": "AP4=",
                    "holder": None,
                    "holder_b64": None,
                    "ttl_ms": None,
                }
                for item_id in ("a", None)
            ),
            key=str,
        )

    def test_results_are_left_out_of_a_selection(self, rwq: Rwq, foreign: Foreign) -> None:
        self.keep(foreign)
        for words in (("a",), ("--all", "-n", "9"), ("-o", "json"), ("-o", "csv"), ("-o", "ids")):
            result = rwq("export", *words)
            assert (result.code, result.notes) == (0, "exported 1\n")
        assert len(rwq("export", "a").jsonl) == 2
