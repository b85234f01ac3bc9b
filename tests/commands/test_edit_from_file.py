"""`rwq edit -f`: the data of an item are replaced, and nothing else of it."""

from tests.conftest import Foreign
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
    def test_to_break_it_needs_yes(self, rwq: Rwq, foreign: Foreign) -> None:
        for before, after in (
            (b'{"a": 1}', b'{"a": 1'),
            (b"17", b"17 apples"),
            (b'"\xc3\xa4"', b'"\xff"'),
            # Too deep to tell.
            (b"[" * 100_000 + b"]" * 100_000, b"x"),
        ):
            foreign.raw.set("jobs:item:a", before)
            result = rwq("edit", "a", "-f", "-", stdin=after)
            assert (result.code, foreign.raw.get("jobs:item:a")) == (2, before)
            assert "use --yes" in result.notes
            assert rwq("edit", "a", "-f", "-", "--yes", stdin=after).code == 0
            assert foreign.raw.get("jobs:item:a") == after

    def test_the_question_says_what_is_wrong(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        foreign.raw.set("jobs:item:a", "[1]")
        code, screen = rwq.asked(
            "edit", "a", "-f", "-", stdin=b"[1,]", type_in=[(b"[y/N]", b"n\n")]
        )
        assert code == 1
        assert (
            b"rwq will replace JSON with data that is not JSON in 1 item of jobs "
            b"(trailing comma in array (byte 3)) on unix:"
        ) in b" ".join(screen.split())
        assert foreign.raw.get("jobs:item:a") == b"[1]"
        assert undo_files(rwq) == []


# Several times what a batch of items may hold.
