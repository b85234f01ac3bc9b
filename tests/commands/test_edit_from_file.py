"""`rwq edit -f`: the data of an item are replaced, and nothing else of it."""

from tests.conftest import Foreign
from tests.driver import Rwq


def test_nothing_in_place_of_data_needs_yes(rwq: Rwq, foreign: Foreign) -> None:
    """An input that failed is empty."""
    foreign.waiting(b"a")
    result = rwq("edit", "a", "-f", "-", stdin=b"")
    assert (result.code, "use --yes" in result.notes) == (2, True)
    assert foreign.raw.get("jobs:item:a") == b"data of a"
    assert rwq("edit", "a", "-f", "-", "--yes", stdin=b"").code == 0
    assert foreign.raw.get("jobs:item:a") == b""


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


# Several times what a batch of items may hold.
