"""`rwq kick`: buried items come back to the end of the queue, with all their chances."""

from tests.conftest import Foreign, contents
from tests.driver import Rwq


def test_named_items_are_kicked_in_the_given_order_and_all_in_that_of_burial(
    rwq: Rwq, foreign: Foreign
) -> None:
    foreign.waiting(b"w")
    for at, item_id in enumerate((b"d", b"a", b"b", b"c")):
        foreign.buried(item_id)
        foreign.raw.zadd("jobs:buried", {item_id: 1000 + at})
        foreign.raw.hset("jobs:returns", item_id, 5)
    assert rwq("kick", "c", "a").as_tuple() == (0, "", "kicked 2\n")
    assert foreign.raw.lrange("jobs:queue", 0, -1)[::-1] == [b"w", b"c", b"a"]
    assert rwq("kick", "--all", "-o", "ids").text == "d\nb\n"
    assert foreign.raw.lrange("jobs:queue", 0, -1)[::-1] == [b"w", b"c", b"a", b"d", b"b"]
    assert foreign.raw.exists("jobs:buried", "jobs:returns") == 0
    assert [key for key in contents(foreign.raw) if b"lease" in key] == []
