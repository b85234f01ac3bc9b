"""`rwq export`: JSON lines behind a header, whatever the bytes."""

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
