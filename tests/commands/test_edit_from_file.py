"""`rwq edit -f`: the data of an item are replaced, and nothing else of it."""

import pytest
import redis

from rwq_cli.input import payload
from tests.conftest import Foreign, contents
from tests.driver import TIMEOUT_S, UNDO, Rwq, undo_files, until

BINARY = bytes(range(256)) + b"\r\n\n"


def test_the_data_is_that_of_stdin_byte_for_byte(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    result = rwq("edit", "a", "-f", "-", stdin=BINARY)
    (file,) = undo_files(rwq)
    assert result.as_tuple() == (
        0,
        "",
        f"set 1; undo file {UNDO}/{file.name}; rwq undo puts it back\n",
    )
    assert foreign.raw.get("jobs:item:a") == BINARY
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"b", b"a"]
    assert foreign.raw.dbsize() == 3


def test_nothing_in_place_of_data_needs_yes(rwq: Rwq, foreign: Foreign) -> None:
    """An input that failed is empty."""
    foreign.waiting(b"a")
    result = rwq("edit", "a", "-f", "-", stdin=b"")
    assert (result.code, "use --yes" in result.notes) == (2, True)
    assert foreign.raw.get("jobs:item:a") == b"data of a"
    assert rwq("edit", "a", "-f", "-", "--yes", stdin=b"").code == 0
    assert foreign.raw.get("jobs:item:a") == b""


def test_the_data_comes_from_a_file(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"a")
    (rwq.home / "new").write_bytes(b"from a file\n")
    before = contents(foreign.raw)
    result = rwq("edit", "a", "-f", str(rwq.home / "new"), "-o", "json")
    assert result.json == {
        "queue": "jobs",
        "queue_b64": None,
        "dry_run": False,
        "undo_file": str(undo_files(rwq)[0]),
        "set": 1,
        "missing": 0,
        "failures": [],
    }
    assert foreign.raw.get("jobs:item:a") == b"from a file\n"
    after = contents(foreign.raw)
    assert [key for key in before if before[key] != after[key]] == [b"jobs:item:a"]


def test_the_same_data_is_not_a_change(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    result = rwq("edit", "a", "-f", "-", stdin=b"data of a")
    assert result.as_tuple() == (0, "", "unchanged 1\n")
    assert undo_files(rwq) == []


def test_an_item_without_data_is_missing(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.lpush("jobs:queue", "ghost")
    before = contents(foreign.raw)
    for item_id in ("ghost", "gone"):
        assert rwq("edit", item_id, "-f", "-", stdin=b"x").as_tuple() == (
            1,
            "",
            f"rwq: {item_id}: no such item\nmissing 1\n",
        )
    assert contents(foreign.raw) == before
    assert undo_files(rwq) == []


def test_a_key_of_another_type_is_an_error(rwq: Rwq, raw: redis.Redis) -> None:
    raw.hset("jobs:item:a", "x", "y")
    result = rwq("edit", "a", "-f", "-", stdin=b"x")
    assert (result.code, result.text) == (69, "")
    assert "jobs:item:a has the wrong type" in result.notes


def test_a_dry_run_writes_nothing(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    before = contents(foreign.raw)
    result = rwq("edit", "a", "-f", "-", "--dry-run", stdin=b"x")
    assert result.as_tuple() == (0, "", "dry run: would set 1\n")
    assert (contents(foreign.raw), undo_files(rwq)) == (before, [])


def test_data_that_changes_while_the_new_data_is_made_is_left(rwq: Rwq, foreign: Foreign) -> None:
    """In `show | sed | set` the item is read before the new data are."""
    foreign.waiting(b"a")
    foreign.raw.config_resetstat()
    process = rwq.start("edit", "a", "-f", "-")
    until(lambda: "cmdstat_lpos" in foreign.raw.info("commandstats"))
    foreign.raw.set("jobs:item:a", "other")
    assert process.communicate(b"new", timeout=TIMEOUT_S) == (
        b"",
        b"rwq: a: it changed meanwhile; rwq show -q jobs a says what it is now\nchanged 1\n",
    )
    assert process.returncode == 1
    assert foreign.raw.get("jobs:item:a") == b"other"
    assert undo_files(rwq) == []


def test_a_leased_item_is_noted(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a", holder=b"worker-7")
    foreign.delayed(b"d", 9_999_999_999_999)
    result = rwq("edit", "a", "-f", "-", "--dry-run", stdin=b"x")
    note, _ = result.notes.splitlines()
    assert note.startswith("note: a is leased by worker-7 for ")
    assert note.endswith(" more; its worker may have read the old data")
    assert "note" not in rwq("edit", "d", "-f", "-", "--dry-run", stdin=b"x").notes


class TestJson:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (b'{"a": 1}', b'{"a": 1'),
            (b'{"a": 1}', b""),
            (b"17", b"17 apples"),
            (b'"\xc3\xa4"', b'"\xff"'),
            # Too deep to tell.
            (b"[" * 100_000 + b"]" * 100_000, b"x"),
        ],
    )
    def test_to_break_it_needs_yes(
        self, rwq: Rwq, foreign: Foreign, before: bytes, after: bytes
    ) -> None:
        foreign.waiting(b"a")
        foreign.raw.set("jobs:item:a", before)
        result = rwq("edit", "a", "-f", "-", stdin=after)
        assert (result.code, foreign.raw.get("jobs:item:a")) == (2, before)
        assert "use --yes" in result.notes
        assert rwq("edit", "a", "-f", "-", "--yes", stdin=after).code == 0
        assert foreign.raw.get("jobs:item:a") == after

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (b'{"a": 1}', b'{"a":1,"a":123456789012345678901234567890,"b":1e999}\n'),
            (b"no JSON", b"{"),
            (b"{", b"{{"),
            # Too deep to tell.
            (b'{"a": 1}', b"[" * 100_000 + b"]" * 100_000),
        ],
    )
    def test_any_other_change_asks_nothing(
        self, rwq: Rwq, foreign: Foreign, before: bytes, after: bytes
    ) -> None:
        foreign.waiting(b"a")
        foreign.raw.set("jobs:item:a", before)
        assert rwq("edit", "a", "-f", "-", stdin=after).code == 0
        assert foreign.raw.get("jobs:item:a") == after

    def test_the_question_says_what_is_wrong(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        foreign.raw.set("jobs:item:a", "[1]")
        code, screen = rwq.on_terminal(
            "edit", "a", "-f", "-", stdin=b"[1,]", type_in=[(b"[y/N]", b"n\n")]
        )
        assert code == 1
        assert (
            b"rwq will replace JSON with data that is not JSON in 1 item of jobs "
            b"(trailing comma in array (byte 3)) on unix:"
        ) in b" ".join(screen.split())
        assert foreign.raw.get("jobs:item:a") == b"[1]"
        assert undo_files(rwq) == []


class TestInput:
    def test_input_that_is_too_large_is_refused(
        self, rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(payload, "ITEM_BYTES_MAX", 1000)
        foreign.waiting(b"a")
        result = rwq("edit", "a", "-f", "-", stdin=b"x" * 1001)
        assert result.as_tuple() == (
            2,
            "",
            "rwq: error: the payload is larger than the 512 MB that a server accepts; "
            "keep it elsewhere\n",
        )

    def test_a_file_that_does_not_exist_is_an_error(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        assert rwq("edit", "a", "-f", "none").as_tuple() == (
            2,
            "",
            "rwq: error: cannot read none: no such file or directory; check the file's name\n",
        )
        assert rwq("edit", "a", "-f", "").code == 2

    def test_ids_on_stdin_are_refused(self, rwq: Rwq) -> None:
        result = rwq("edit", "-", "-f", "-", stdin=b"a\n")
        assert (result.code, "one ID is needed" in result.notes) == (2, True)


# Several times what a batch of items may hold.
def test_megabytes_are_written_and_undone(rwq: Rwq, raw: redis.Redis) -> None:
    old, new = b"a" * 12_000_000, b"a" * 6_000_000 + b"b" + b"a" * 5_999_999
    raw.set("jobs:item:a", old)
    raw.lpush("jobs:queue", "a")
    assert rwq("edit", "a", "-f", "-", stdin=new).code == 0
    assert raw.get("jobs:item:a") == new
    assert rwq("undo", "--yes").code == 0
    assert raw.get("jobs:item:a") == old


def test_an_undo_file_that_cannot_be_written_stops_it(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    (rwq.home / "file").write_text("")
    result = rwq(
        "edit", "a", "-f", "-", stdin=b"x", variables={"XDG_STATE_HOME": str(rwq.home / "file")}
    )
    assert (result.code, foreign.raw.get("jobs:item:a")) == (1, b"data of a")
    assert result.notes.startswith("rwq: error: cannot write the undo file ")
