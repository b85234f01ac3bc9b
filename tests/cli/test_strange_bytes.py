"""Bytes that are not UTF-8, drive a terminal, or mean something to Redis: nothing is misread."""

import hashlib
import json
import os

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq

STRANGE = {
    "nul": b"a\0b",
    "not-utf8": b"\xff\xfe\x80",
    "cut-utf8": b"caf\xc3",
    "escape": b"\x1b[2J\x1b]0;title\x07",
    "c1": "\x9b2J\x85".encode(),
    "raw-c1": b"\x9b2J",
    "bidi": "abc\u202egnp.exe\u2066".encode(),
    "zero-width": "a\u200bb\u2060\ufeff".encode(),
    "separators": "a\u2028b\u2029c".encode(),
    "markup": b"[red]x[/red] [/etc/passwd] [link=http://x]",
    "emoji-code": b":smile: :warning:",
    "newline": b"a\nb\r\nc",
    "tab": b"a\tb",
    "delete": b"a\x7fb",
    "backslashes": b"a\\x1b\\n\\",
    "quotes": b'it\'s "quoted" `x` $(x)',
    "glob": b"a*b?[c-d]^\\e",
    "dash": b"--force",
    "spaces": b"  a  b  ",
    "percent": b"%s %d {0}",
    "wide": "日本語 ✓ é ́".encode(),
    "private": "\ue000\U0010ffff".encode(),
}
UNSAFE = {*range(0x20), 0x7F, *range(0x80, 0xA0), 0x200B, 0x202E, 0x2028, 0x2029, 0x2066, 0xFEFF}


def assert_harmless(shown: bytes) -> None:
    """What was printed can drive no terminal: no control but the line end and tab, no formats."""
    text = shown.decode("utf-8")
    assert not {ord(character) for character in text} & (UNSAFE - {0x09, 0x0A})


@pytest.fixture(params=STRANGE)
def strange(request: pytest.FixtureRequest) -> bytes:
    """Each of the strange byte strings."""
    return STRANGE[request.param]


def test_data_come_out_as_they_went_in(rwq: Rwq, raw: redis.Redis, strange: bytes) -> None:
    assert rwq("add", "--format", "raw", "--id", "a", stdin=strange).code == 0
    assert raw.get("jobs:item:a") == strange
    assert rwq("show", "a", "-o", "data").out == strange
    assert rwq("lease", "-o", "data").out == strange
    (record,) = rwq("leases", "--data", "-o", "jsonl").jsonl
    if record["data"] is None:
        import base64

        assert base64.b64decode(record["data_b64"]) == strange
    else:
        assert record["data"].encode() == strange


@pytest.mark.parametrize("output", ["table", "plain", "json", "jsonl", "csv", "ids"])
@pytest.mark.parametrize("line", ["ls --data", "ls all", "leases", "show", "lease", "queues"])
def test_nothing_drives_the_terminal(
    rwq: Rwq, raw: redis.Redis, strange: bytes, line: str, output: str
) -> None:
    queue = os.fsdecode(strange.replace(b"\0", b""))
    there = Foreign(raw, os.fsencode(queue))
    raw.set(there.keys.item(strange), strange)
    raw.lpush(there.keys.main, strange)
    leased = strange + b"2"
    there.leased(leased, holder=strange)
    more = ["--", os.fsdecode(strange.replace(b"\0", b""))] if line == "show" else []
    result = rwq(*line.split(), "-o", output, *more, variables={"RWQ_QUEUE": queue})
    assert result.code in (0, 1)
    assert "this is a bug" not in result.notes
    assert_harmless(result.out)
    assert_harmless(result.err)


def test_a_line_of_plain_is_one_record(rwq: Rwq, raw: redis.Redis, strange: bytes) -> None:
    there = Foreign(raw, b"jobs")
    there.waiting(strange, b"second")
    raw.set(there.keys.item(strange), strange)
    rows = rwq("ls", "-o", "plain").text.split("\n")
    assert [len(row.split("\t")) for row in rows] == [5, 5, 1]


def test_ids_on_stdin_are_found(rwq: Rwq, raw: redis.Redis, strange: bytes) -> None:
    Foreign(raw).waiting(strange)
    assert rwq("ls", "-o", "ids", "-0").out == strange + b"\0"
    if b"\0" in strange:
        assert rwq("complete", "-", stdin=strange + b"\n").code == 0
    else:
        assert rwq("complete", "-", "-0", stdin=strange + b"\0").code == 0
    assert raw.keys() == []


def test_ids_as_arguments_of_a_process(rwq: Rwq, raw: redis.Redis, strange: bytes) -> None:
    if b"\0" in strange:
        pytest.skip("no argument can hold a NUL")
    Foreign(raw).waiting(strange)
    assert rwq.process("release", "--front", "--", strange).code == 0
    assert rwq.process("complete", "--", strange, timeout_s=10).code == 0
    assert raw.keys() == []


def test_the_id_that_is_shown_says_what_was_escaped(rwq: Rwq, raw: redis.Redis) -> None:
    Foreign(raw).waiting(b"plain", b"\x1b[2J", b"\xff")
    assert rwq("ls", "-o", "ids").as_tuple() == (
        0,
        "plain\n\\x1b[2J\n\\xff\n",
        "2 of these IDs are not UTF-8 or hold control characters and are shown escaped; "
        "-0 gives them as they are\n",
    )


@pytest.mark.parametrize(
    "name", ["a*", "a?c", "[ab]", "a\\b", "*", "^x-y", "a:b", "a:queue", "x:item:y", "\u202e", "é"]
)
def test_a_queue_with_a_strange_name_is_only_itself(rwq: Rwq, raw: redis.Redis, name: str) -> None:
    """Glob characters in a name must not reach other queues' keys."""
    others = [b"a", b"abc", b"b", b"aXb", b"ab", b"x", b"^xzy", b"item"]
    for other in others:
        Foreign(raw, other).data(b"orphan")
    Foreign(raw, name.encode()).data(b"mine")
    words = ("-q", name)
    assert rwq("stats", "--deep", "-o", "json", *words).json["orphaned"] == 1
    result = rwq("clean", "deep", "--grace", "0", "-o", "ids", *words)
    assert result.as_tuple() == (
        0,
        "mine\n",
        "returned 1, dropped 0, promoted 0, pruned 0, buried 0\n",
    )
    assert rwq("lease", "-o", "ids", *words).text == "mine\n"
    for other in others:
        assert raw.keys(other + b":queue") == []


def test_a_glob_in_a_name_is_no_glob_for_queues(rwq: Rwq, raw: redis.Redis) -> None:
    for name in (b"mail:in", b"mail:out", b"mail*"):
        Foreign(raw, name).waiting(b"a")
    assert rwq("queues", "-o", "ids").text == "mail*\nmail:in\nmail:out\n"
    assert rwq("queues", "mail:*", "-o", "ids").text == "mail:in\nmail:out\n"
    assert rwq("queues", "mail[*]", "-o", "ids").text == "mail*\n"


def test_a_queue_name_that_is_not_utf8(rwq: Rwq, raw: redis.Redis) -> None:
    assert rwq.process("add", "-q", b"\xff", "--id", "a", "x").code == 0
    assert sorted(raw.keys()) == [b"\xff:item:a", b"\xff:queue"]
    record = rwq("queues", "-o", "jsonl").jsonl[0]
    assert (record["queue"], record["queue_b64"]) == (None, "/w==")
    assert rwq("queues", "-o", "ids", "-0").out == b"\xff\0"


@pytest.mark.needs("no-touch")
def test_a_line_of_100_mb(rwq: Rwq, raw: redis.Redis) -> None:
    """Goes in and comes out whole, beside short ones, and a listing reads only its beginning."""
    block = os.urandom(1 << 20).translate(bytes(b if b != 10 else 11 for b in range(256)))
    big = block * 100
    given = b"before\n" + big + b"\nafter\n"
    assert rwq("add", "--id-from", "sha256", stdin=given).as_tuple() == (
        0,
        "",
        "added 3, duplicates 0, rejected 0\n",
    )
    name = hashlib.sha256(big).hexdigest()
    assert raw.strlen(f"jobs:item:{name}") == len(big)
    listed = rwq("ls", "-o", "jsonl")
    assert len(listed.out) < 5000
    assert [record["bytes"] for record in listed.jsonl] == [6, len(big), 5]
    assert hashlib.sha256(rwq("show", name, "-o", "data").out).hexdigest() == name


def test_many_ids_at_once_as_arguments(rwq: Rwq, raw: redis.Redis) -> None:
    ids = [f"{number:05}" for number in range(9000)]
    Foreign(raw).waiting(*(item_id.encode() for item_id in ids[:50]))
    result = rwq("complete", *ids, "-o", "json")
    assert json.loads(result.text)["completed"] == 50
    assert result.code == 3
