"""Adding to several queues: which queue an ID picks, and what is reported."""

from collections import Counter

import redis

from rwq_cli.core import Connection, NewItem, WorkQueue
from rwq_cli.core.items.add import batched_items
from rwq_cli.core.items.spread import Picker, add_spread
from rwq_cli.core.model import Status
from tests.support import numbered

NAMES = numbered(8, b"{jobs:%d}")
IDS = numbered(4000, b"%d")


def test_the_rule_is_the_same_for_ever() -> None:
    """Made with `printf '%s\\0%s' NAME ID | b2sum -l 64`, the greatest first."""
    picker = Picker([b"a", b"b", b"c"])
    ids = (b"1", b"2", b"3", b"4", b"5", b"\xff")
    assert b"".join(map(picker.pick, ids)) == b"ccbaca"


def test_only_items_that_pick_a_new_queue_change_theirs() -> None:
    before, after = Picker(NAMES), Picker([*NAMES, b"{jobs:new}"])
    changed = {after.pick(i) for i in IDS if before.pick(i) != after.pick(i)}
    assert changed == {b"{jobs:new}"}


def test_a_second_add_is_a_duplicate_wherever_the_item_went(
    connection: Connection, raw: redis.Redis
) -> None:
    queues = [WorkQueue(connection, name) for name in NAMES]

    def add(*, dry_run: bool = False) -> Counter[Status]:
        items = (NewItem(item_id, b"data") for item_id in IDS)
        batches = add_spread(queues, batched_items(items), dry_run=dry_run)
        return Counter(each.status for batch in batches for each in batch.outcomes)

    assert add(dry_run=True) == {Status.ADDED: 4000}
    assert raw.dbsize() == 0
    assert add() == {Status.ADDED: 4000}
    assert add() == {Status.DUPLICATE: 4000}
    picker = Picker(NAMES)
    for name in NAMES:
        waiting = raw.lrange(name + b":queue", 0, -1)
        assert waiting[::-1] == [item_id for item_id in IDS if picker.pick(item_id) == name]
