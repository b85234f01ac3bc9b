"""`rwq bury`: set aside with a reason; another session's lease only with --force, and asking."""

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")


def buried(rwq: Rwq) -> list[tuple[str, str]]:
    """The IDs with their reasons, the longest buried first."""
    return [(r["id"], r["reason"]) for r in rwq("ls", "buried", "-n", "0", "-o", "json").json]


def test_the_reason_is_kept(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.abandoned(b"d")
    result = rwq("bury", "d", "b", "--reason", "crashes the parser")
    assert result.as_tuple() == (0, "", "buried 2\n")
    assert buried(rwq) == [("b", "crashes the parser"), ("d", "crashes the parser")]
    shown = rwq("show", "b", "-o", "table").lines
    assert "reason  crashes the parser" in [line.lstrip() for line in shown]
    record = rwq("show", "b", "-o", "json").json
    assert record["next"] == "Nothing, until somebody kicks it."
    assert record["commands"] == ["rwq kick -q jobs b", "rwq complete -q jobs b"]


def test_a_buried_item_gets_the_new_reason(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"a", b"old")
    assert rwq("bury", "a").as_tuple() == (0, "", "already buried 1\n")
    assert buried(rwq) == [("a", "old")]
    rwq("bury", "a", "--reason", "")
    assert buried(rwq) == [("a", "")]
    assert rwq("ls", "buried", "-o", "json").json[0]["buried_ms"] == 1_700_000_000_000


def test_force_chooses_leased_items_too(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    foreign.leased(b"l")
    foreign.leased(b"h", ttl_ms=None)
    foreign.delayed(b"d", 9_999_999_999_999)
    foreign.data(b"u", b"o")
    foreign.lease(b"u")
    result = rwq("bury", "--state", "waiting", "--force", "--dry-run", "-o", "ids")
    assert result.text == "w\n"
    assert rwq("bury", "--all", "--force", "--yes").as_tuple() == (0, "", "buried 4\n")
    assert {item_id for item_id, _ in buried(rwq)} == {"w", "l", "h", "u"}
