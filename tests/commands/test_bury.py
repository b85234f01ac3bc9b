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
