"""Turning the processing list round while others turn it, too."""

from collections import Counter

from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.model import Status
from tests.conftest import QUEUE, Foreign, Interleaved

TURN = """
local page = redis.call('RPOP', KEYS[1], ARGV[1])
if page then redis.call('LPUSH', KEYS[1], unpack(page)) end
"""


def numbered(count: int) -> list[bytes]:
    return [b"%04d" % number for number in range(count)]


def turned_by_another(interleaved: Interleaved, raw: Redis, script: str, entries: int) -> None:
    """Before each call of the script somebody else takes a page away from under it."""
    turns = Counter[str]()

    def before(name: str) -> None:
        turns[name] += 1
        if name == script and turns[name] % 2:
            raw.eval(TURN, 1, b"jobs:processing", entries)

    interleaved.before = before


def test_a_complete_finds_all_by_pages(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    ids = numbered(4000)
    foreign.abandoned(*ids)
    sizes = []
    turned_by_another(interleaved, raw, "complete", 700)
    turning = interleaved.before

    def before(name: str) -> None:
        if name == "complete":
            sizes.append(interleaved.words[4])
        assert turning is not None
        turning(name)

    interleaved.before = before
    outcomes = list(WorkQueue(interleaved, QUEUE).complete(ids))
    assert Counter(outcome.status for outcome in outcomes) == {Status.COMPLETED: 4000}
    assert len({outcome.item_id for outcome in outcomes}) == 4000
    # Not one of them was looked for in the whole list.
    assert set(sizes) == {500}
    assert raw.dbsize() == 0


def test_a_clean_leaves_nothing_behind(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    foreign.abandoned(*numbered(4000))
    turned_by_another(interleaved, raw, "clean_processing", 700)
    actions = list(WorkQueue(interleaved, QUEUE).light_clean(grace_s=0))
    assert len(actions) == 4000
    assert raw.llen(b"jobs:processing") == 0
    assert raw.llen(b"jobs:queue") == 4000


def test_ids_that_are_nowhere_cost_one_turn(interleaved: Interleaved, foreign: Foreign) -> None:
    foreign.abandoned(*numbered(2000))
    gone = [b"gone %d" % number for number in range(100)]
    outcomes = list(WorkQueue(interleaved, QUEUE).complete(gone))
    assert Counter(outcome.status for outcome in outcomes) == {Status.MISSING: 100}
    # Four pages of 500, and one call for all that were in no list.
    assert interleaved.calls.count("complete") == 5


def test_it_ends_when_all_is_found(interleaved: Interleaved, raw: Redis) -> None:
    """The oldest of a long list are found at once: a pipe of leased IDs costs what they are."""
    ids = numbered(20_000)
    raw.mset({b"jobs:item:" + item_id: b"" for item_id in ids})
    raw.lpush(b"jobs:processing", *ids)
    outcomes = list(WorkQueue(interleaved, QUEUE).complete(ids[:200]))
    assert Counter(outcome.status for outcome in outcomes) == {Status.COMPLETED: 200}
    assert interleaved.calls.count("complete") <= 8
