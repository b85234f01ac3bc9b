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


def test_n_kicks_the_oldest(rwq: Rwq, foreign: Foreign) -> None:
    bury(foreign, b"c", b"a", b"b")
    assert rwq("kick", "-n", "2", "-o", "ids").text == "c\na\n"
    assert waiting(foreign) == [b"c", b"a"]


def test_all_are_kicked_in_the_order_of_burial(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    bury(foreign, b"c", b"a", b"b")
    assert rwq("kick", "--all").code == 0
    assert waiting(foreign) == [b"w", b"c", b"a", b"b"]
    assert foreign.raw.exists("jobs:buried", "jobs:returns") == 0


def test_matching_items_are_kicked(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"ab")
    bury(foreign, b"aa", b"b", b"ac")
    assert rwq("kick", "--match", "of a", "-o", "ids").text == "aa\nac\n"
    assert rwq("kick", "--id-glob", "b*", "-o", "ids").text == "b\n"


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


def test_it_takes_no_state(rwq: Rwq) -> None:
    result = rwq("kick", "--state", "buried")
    assert result.code == 2
    assert result.notes.startswith("rwq: error: no such option: --state ")


def test_a_buried_item_that_another_program_pushed_is_left_with_the_reason(
    rwq: Rwq, foreign: Foreign
) -> None:
    """Its entry in the sorted set and its guards say buried; its entry in main says waiting."""
    foreign.buried(b"a")
    foreign.raw.lpush("jobs:queue", "a")
    before = contents(foreign.raw)
    assert rwq("kick", "--all").as_tuple() == (
        1,
        "",
        "rwq: a: it is in another state, or no longer matches; "
        "rwq show -q jobs a says what it is now\nchanged 1\n",
    )
    assert contents(foreign.raw) == before
