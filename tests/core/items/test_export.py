"""Everything of a queue: each item once, in an order in which it can be put back."""

from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.complete import complete
from rwq_cli.core.items.export import Export
from rwq_cli.core.items.results import ResultOptions
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.probe import ItemSnapshot, Place, Skipped
from tests.conftest import Foreign, contents


def all_of(exported: Export) -> list[ItemSnapshot]:
    return [snapshot for batch in exported.batches() for snapshot in batch]


def test_items_are_exported_once_and_in_order_and_nothing_else(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
) -> None:
    foreign.data(b"orphan")
    foreign.buried(b"b")
    foreign.delayed(b"d2", 4_000_000_000_000)
    foreign.delayed(b"d1", 3_000_000_000_000)
    foreign.leased(b"l1", b"l2")
    foreign.waiting(b"w1", b"\xff", b"w2")
    raw.lpush(keys.main, b"w1", b"ghost")
    raw.lpush(keys.processing, b"w1", b"ghost2")
    foreign.lease(b"stray")
    raw.hset(keys.item(b"hash"), "x", "y")
    before = contents(raw)
    exported = Export(queue)
    found = [(p.item_id, p.place) for p in all_of(exported)]
    # Of what is listed twice, no place is the right one.
    found.remove((b"w1", Place.MAIN))
    assert found == [
        *((item_id, Place.MAIN) for item_id in (b"\xff", b"w2")),
        *((item_id, Place.PROCESSING) for item_id in (b"l1", b"l2")),
        *((item_id, Place.DELAYED) for item_id in (b"d1", b"d2")),
        (b"b", Place.BURIED),
        (b"orphan", None),
    ]
    ghosts = [b"ghost", b"ghost2"]
    assert exported.skipped == Skipped(ghosts, [b"hash"], [keys.item(b"hash")], 1)
    assert contents(raw) == before


def test_the_result_of_an_item_completed_while_items_are_read_is_met(
    queue: WorkQueue, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b")
    exported = Export(queue)
    batches = exported.batches()
    assert [p.item_id for p in next(batches)] == [b"a", b"b"]
    list(complete(queue, [b"a"], result_options=ResultOptions(b"done")))
    assert [p.item_id for batch in batches for p in batch] == []
    assert [r.item_id for batch in exported.results() for r in batch] == [b"a"]
    assert exported.results_read == 1
