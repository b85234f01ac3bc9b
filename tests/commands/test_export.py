"""`rwq export`: JSON lines behind a header, whatever the bytes."""

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq


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


def exported(rwq: Rwq, *words: str, stdin: bytes = b"") -> list[str]:
    return [record["id"] for record in rwq("export", *words, stdin=stdin).jsonl[1:]]


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
