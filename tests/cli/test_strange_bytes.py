"""Bytes that are not UTF-8, drive a terminal, or mean something to Redis: nothing is misread."""

import base64
import os
from collections.abc import Mapping

import pytest
import redis

from tests.conftest import Foreign, contents
from tests.driver import Result, Rwq

# Each with how it is shown to people.
STRANGE = {
    b"a\0b": r"a\x00b",
    b"\xff\xfe\x80": r"\xff\xfe\x80",
    b"caf\xc3": r"caf\xc3",
    b"\x1b[2J\x1b]0;title\x07": r"\x1b[2J\x1b]0;title\x07",
    "\x9b2J\x85".encode(): r"\x9b2J\x85",
    b"\x9b3J": r"\x9b3J",
    "abc\u202egnp.exe\u2066".encode(): r"abc\u202egnp.exe\u2066",
    "a\u200bb\u2060\ufeff".encode(): r"a\u200bb\u2060\ufeff",
    "a\u2028b\u2029c".encode(): r"a\u2028b\u2029c",
    b"[red]x[/red] [/etc/passwd] [link=http://x]": "[red]x[/red] [/etc/passwd] [link=http://x]",
    b":smile: :warning:": ":smile: :warning:",
    b"a\nb\r\nc": r"a\nb\r\nc",
    b"a\tb": r"a\tb",
    b"a\x7fb": r"a\x7fb",
    b"a\\x1b\\n\\": "a\\x1b\\n\\",
    b'it\'s "quoted" `x` $(x)': 'it\'s "quoted" `x` $(x)',
    b"a*b?[c-d]^\\e": "a*b?[c-d]^\\e",
    b"--force": "--force",
    b"  a  b  ": "  a  b  ",
    b"%s %d {0}": "%s %d {0}",
    "日本語 ✓ é ́".encode(): "日本語 ✓ é ́",
    "\ue000\U0010ffff".encode(): r"\ue000\U0010ffff",
}
UNSAFE = {*range(0x20), 0x7F, *range(0x80, 0xA0), 0x200B, 0x202E, 0x2028, 0x2029, 0x2066, 0xFEFF}


def assert_harmless(result: Result) -> None:
    """What was printed can drive no terminal: no control but the line end and tab, no formats."""
    for shown in (result.text, result.notes):
        assert not {ord(character) for character in shown} & (UNSAFE - {0x09, 0x0A})


def raw_bytes(record: Mapping[str, str], field: str) -> bytes:
    """The bytes that a record of JSON or CSV holds under a field, as text or in base64."""
    if record[f"{field}_b64"]:
        return base64.b64decode(record[f"{field}_b64"])
    return record[field].encode()


@pytest.mark.parametrize("data", STRANGE)
def test_data_is_returned_unchanged(rwq: Rwq, raw: redis.Redis, data: bytes) -> None:
    assert rwq("add", "--format", "raw", "--id", "a", stdin=data).code == 0
    assert raw.get("jobs:item:a") == data
    assert rwq("show", "a", "-o", "data").out == data
    assert rwq("lease", "-o", "data").out == data
    (record,) = rwq("leases", "--data", "-o", "jsonl").jsonl
    assert raw_bytes(record, "data") == data


@pytest.fixture
def listed(foreign: Foreign) -> Foreign:
    """An item waits under each of the strange IDs, with its ID as its data."""
    foreign.waiting(*STRANGE)
    foreign.raw.mset({foreign.keys.item(item_id): item_id for item_id in STRANGE})
    return foreign


LISTINGS = ["ls -n 0", "ls all -n 0 --data", "leases -n 0", "show - -0", "lease -n 99"]


def run_listing(rwq: Rwq, listed: Foreign, line: str, output: str) -> Result:
    """Run a command that shows every item; `leases` on a queue where all of them are leased."""
    if line.startswith("leases"):
        listed.raw.rename(listed.keys.main, listed.keys.processing)
        # Distinct expiry times fix the order: before Redis 7, the clock advances during a script.
        for at, item_id in enumerate(STRANGE):
            listed.lease(item_id, holder=b"\x1b[2J\xff", ttl_ms=60_000 + 1000 * at)
    result = rwq(*line.split(), "-o", output, stdin=b"\0".join(shown_by(line)))
    assert result.code == 0
    assert_harmless(result)
    return result


def shown_by(line: str) -> list[bytes]:
    """The IDs that a line of `LISTINGS` shows: one with a NUL cannot be given on stdin."""
    return [item_id for item_id in STRANGE if b"\0" not in item_id or "-0" not in line]


@pytest.mark.parametrize("line", LISTINGS)
class TestEveryListing:
    def test_escapes_ids_for_people(self, rwq: Rwq, listed: Foreign, line: str) -> None:
        result = run_listing(rwq, listed, line, "table")
        assert [STRANGE[i] for i in shown_by(line) if STRANGE[i] not in result.text] == []

    def test_has_a_line_for_each_id(self, rwq: Rwq, listed: Foreign, line: str) -> None:
        if "-0" in line:
            ids = shown_by(line)
            result = rwq(*line.split(), "-o", "ids", stdin=b"\0".join(ids))
            assert result.out == b"".join(item_id + b"\0" for item_id in ids)
            assert (result.code, result.notes) == (0, "")
            return
        result = run_listing(rwq, listed, line, "ids")
        assert result.text.split("\n")[:-1] == [STRANGE[item_id] for item_id in shown_by(line)]
        escaped = sum(STRANGE[item_id] != os.fsdecode(item_id) for item_id in shown_by(line))
        assert result.notes == (
            "IDs that are not UTF-8 or hold control characters are shown escaped "
            f"({escaped}); -0 prints them unescaped\n"
        )


def test_ids_go_from_ls_to_a_verb_as_they_are(rwq: Rwq, listed: Foreign) -> None:
    ids = b"".join(item_id + b"\0" for item_id in STRANGE)
    assert rwq("ls", "-n", "0", "-o", "ids", "-0").as_bytes() == (0, ids, b"")
    (with_nul,) = [item_id for item_id in STRANGE if b"\0" in item_id]
    rest = ids.replace(with_nul + b"\0", b"")
    note, done = rwq("complete", "-", stdin=with_nul + b"\n").notes.splitlines()
    assert note == "lines of stdin hold NUL; -0 reads IDs that end with it"
    assert done.startswith("completed 1;")
    assert rwq("complete", "-", "-0", stdin=rest).notes.startswith("completed 21;")
    assert contents(listed.raw) == {}


def test_a_queue_name_may_be_other_than_utf8(rwq: Rwq, raw: redis.Redis) -> None:
    assert rwq.process("add", "-q", b"\xff", "--id", "a", "x").code == 0
    assert sorted(raw.keys()) == [b"\xff:item:a", b"\xff:queue"]
    record = rwq("queues", "-o", "jsonl").jsonl[0]
    assert (record["queue"], record["queue_b64"]) == (None, "/w==")
    assert rwq("queues", "-o", "ids", "-0").out == b"\xff\0"
