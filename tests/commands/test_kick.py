"""`rwq kick`: buried items come back to the end of the queue, with all their chances."""

from tests.conftest import Foreign, contents
from tests.driver import Rwq


def waiting(foreign: Foreign) -> list[bytes]:
    """What waits, next first."""
    return foreign.raw.lrange("jobs:queue", 0, -1)[::-1]


def bury(foreign: Foreign, *ids: bytes) -> None:
    """Buried one after another."""
    for at, item_id in enumerate(ids):
        foreign.buried(item_id)
        foreign.raw.zadd("jobs:buried", {item_id: 1000 + at})
        foreign.raw.hset("jobs:returns", item_id, 5)


def test_named_items_are_kicked_in_the_given_order(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    bury(foreign, b"a", b"b", b"c")
    assert rwq("kick", "c", "a").as_tuple() == (
        0,
        "",
        "kicked 2\n",
    )
    assert waiting(foreign) == [b"w", b"c", b"a"]
    assert foreign.raw.hgetall("jobs:returns") == {b"b": b"5"}
    assert [key for key in contents(foreign.raw) if b":lease" in key] == [
        b"jobs:lease:b",
        b"jobs:leased_by_session:b",
    ]


def test_all_are_kicked_in_the_order_of_burial(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    bury(foreign, b"c", b"a", b"b")
    assert rwq("kick", "--all").code == 0
    assert waiting(foreign) == [b"w", b"c", b"a", b"b"]
    assert foreign.raw.exists("jobs:buried", "jobs:returns") == 0


def test_an_item_that_is_not_buried_is_reported(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    foreign.delayed(b"d", 9_999_999_999_999)
    before = contents(foreign.raw)
    result = rwq("kick", "w", "d", "gone", "-o", "jsonl")
    assert [record["status"] for record in result.jsonl] == ["not-buried", "not-buried", "missing"]
    assert (result.code, result.notes) == (
        1,
        "not buried 2, missing 1\n",
    )
    assert contents(foreign.raw) == before
