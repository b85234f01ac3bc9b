"""A queue is exported in an order in which it can be restored, again and again, as it was."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Connection, Due, Lease, NewItem, Outcome, State, Status, WorkQueue
from rwq_cli.core.batches import BUDGET
from rwq_cli.core.items.complete import ResultOptions, complete
from rwq_cli.core.items.export import Export
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.restore import OnConflict, restore as restore_lines
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.lua import items_max
from rwq_cli.core.model import Outcomes
from rwq_cli.core.state.snapshots import ItemSnapshot, Place, Skipped
from tests.conftest import QUEUE, Foreign, Interleaved, contents, lasts
from tests.support import Journal, lines_of, numbered

RESTORE_ITEMS = items_max("restore")
FAIL, SKIP, REPLACE = OnConflict.FAIL, OnConflict.SKIP, OnConflict.REPLACE


def waits(*ids: bytes, data: bytes = b"new") -> list[ItemSnapshot]:
    return [ItemSnapshot(item_id, data, State.WAITING, Place.MAIN) for item_id in ids]


def restore(queue: WorkQueue, snapshots: Iterable[ItemSnapshot], **options: Any) -> Outcomes:
    return restore_lines(queue, lines_of(snapshots), **options)


def statuses(outcomes: Iterable[Outcome]) -> list[Status]:
    return [outcome.status for outcome in outcomes]


def all_of(export: Export) -> list[ItemSnapshot]:
    return [item for batch in export.batches() for item in batch]


@pytest.mark.parametrize("on_conflict", OnConflict)
def test_everything_is_restored_as_it_was(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys, on_conflict: OnConflict
) -> None:
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.leased(b"l1", b"l2", holder=b"\xffthem")
    foreign.leased(b"h", ttl_ms=None)
    foreign.delayed(b"d", 4_000_000_000_000)
    foreign.buried(b"b")
    foreign.data(b"o")
    raw.hset(keys.returns, b"b", 3)
    before, snapshots = contents(raw), all_of(Export(queue))
    raw.flushall()
    assert {*statuses(restore(queue, snapshots, on_conflict=on_conflict))} == {Status.IMPORTED}
    assert contents(raw) == before
    assert lasts(raw, 60, keys.lease(b"l1"), keys.old_lease(b"l1"))
    # A worker leased one since; the others are where they were.
    leased = queue.lease()
    assert leased is not None
    again = {*statuses(restore(queue, snapshots, on_conflict=on_conflict))}
    assert again == {Status.ALREADY_THERE}
    assert raw.get(keys.lease(leased.item_id)) == queue.holder


@pytest.mark.parametrize("count", [3, 3000])
def test_data_of_an_item_in_its_place_is_replaced(
    queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
) -> None:
    """As by `export | jq | import`; one that was leased since keeps its lease. And undone."""
    foreign.waiting(*numbered(count))
    foreign.buried(b"b")
    items = all_of(Export(queue))
    assert queue.lease() is not None
    before = contents(raw)
    journal = Journal()
    new = [item._replace(data=b"new " + item.item_id) for item in items]
    outcomes = restore(queue, new, on_conflict=REPLACE, journal=journal)
    assert statuses(outcomes) == [Status.REPLACED] * (count + 1)
    assert contents(raw) == before | {b"jobs:item:" + item.item_id: item.data for item in new}
    undone = [
        Line(number, item, sha256(b"new " + item.item_id).hexdigest())
        for number, item in enumerate(reversed(journal.written), 2)
    ]
    outcomes = restore_lines(queue, undone, on_conflict=REPLACE, front=True)
    assert statuses(outcomes) == [Status.REPLACED] * (count + 1)
    assert contents(raw) == before


def test_large_data_are_replaced_in_groups(
    interleaved: Interleaved, raw: Redis, foreign: Foreign, keys: QueueKeys
) -> None:
    """Of what is replaced, so much is read and written to the journal at once; in order."""
    megabyte = b"x" * BUDGET.bytes
    ids = numbered(11)
    for item_id in ids:
        foreign.buried(item_id)
        raw.set(keys.item(item_id), megabyte + item_id)
    raw.lpush(keys.main, *numbered(300, b"other %d"))
    queue, journal = WorkQueue(interleaved, QUEUE), Journal()
    written: list[int] = []
    journal.after_write = lambda: written.append(len(journal.written))
    new = [*waits(*ids[:6]), *waits(b"new"), *waits(*ids[6:])]
    outcomes = statuses(restore(queue, new, on_conflict=REPLACE, journal=journal))
    assert outcomes == [*[Status.REPLACED] * 6, Status.IMPORTED, *[Status.REPLACED] * 5]
    assert raw.lrange(keys.main, 0, 11) == [*reversed(ids[6:]), b"new", *reversed(ids[:6])]
    assert written == [4, 8, 11]
    assert [item.data for item in journal.written] == [megabyte + item_id for item_id in ids]


def test_data_of_another_length_are_never_read(
    interleaved: Interleaved, raw: Redis, keys: QueueKeys
) -> None:
    raw.set(keys.item(b"a"), b"x" * 100)
    raw.execute_command("CONFIG", "RESETSTAT")
    for on_conflict in (FAIL, SKIP):
        list(restore(WorkQueue(interleaved, QUEUE), waits(b"a"), on_conflict=on_conflict))
    assert "cmdstat_get" not in raw.info("commandstats")


@pytest.mark.parametrize("count", [1, 3 * RESTORE_ITEMS])
def test_leftovers_of_an_id_do_not_become_items(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys, count: int
) -> None:
    """Completed where nobody takes them off."""
    ids = numbered(count)
    foreign.waiting(b"w")
    raw.zadd(keys.delayed, {ids[-1]: 1})
    raw.zadd(keys.buried, {ids[-1]: 1})
    raw.hset(keys.returns, ids[-1], 1)
    raw.lpush(keys.cleaning, ids[-1])
    foreign.lease(ids[-1], ttl_ms=None)
    assert statuses(restore(queue, waits(*ids))) == [Status.IMPORTED] * count
    assert contents(raw) == {
        keys.main: [*reversed(ids), b"w"],
        keys.item(b"w"): b"data of w",
        **{keys.item(item_id): b"new" for item_id in ids},
    }


def test_items_restored_at_the_front_keep_their_order(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"old")
    ids = numbered(2 * RESTORE_ITEMS + 3)
    list(restore(queue, waits(*reversed(ids)), front=True))
    assert raw.lrange("jobs:queue", 0, -1) == [b"old", *reversed(ids)]


@pytest.mark.parametrize("between", [0, 2 * RESTORE_ITEMS])
@pytest.mark.parametrize(
    ("on_conflict", "later"),
    [
        (FAIL, [Status.ALREADY_THERE, Status.CONFLICT, Status.ALREADY_THERE]),
        (SKIP, [Status.ALREADY_THERE, Status.SKIPPED, Status.ALREADY_THERE]),
        (REPLACE, [Status.ALREADY_THERE, Status.REPLACED, Status.REPLACED]),
    ],
)
def test_a_repeated_id(
    queue: WorkQueue, raw: Redis, between: int, on_conflict: OnConflict, later: list[Status]
) -> None:
    """In the same batch or later. A dry run judges each line by what is there now."""
    others = waits(*numbered(between))
    lines = [*waits(b"a", b"a"), *others, *waits(b"a", data=b"other"), *waits(b"a")]
    planned = restore(queue, lines, on_conflict=on_conflict, dry_run=True)
    assert [o.status for o in planned if o.item_id == b"a"] == [Status.IMPORTED] * 4
    outcomes = restore(queue, lines, on_conflict=on_conflict)
    assert [o.status for o in outcomes if o.item_id == b"a"] == [Status.IMPORTED, *later]
    assert raw.lrange("jobs:queue", 0, -1).count(b"a") == 1


def test_delayed_keep_order_and_get_this_clocks_guard(
    queue: WorkQueue, connection: Connection, raw: Redis
) -> None:
    """The order is in what the scores have below a millisecond."""
    ids = numbered(30)[::-1]
    list(queue.add_many([NewItem(i, b"", Due(3_600_000, from_now=True)) for i in ids]))
    before = raw.zrange(b"jobs:delayed", 0, -1, withscores=True)
    # As if the clock of the other server were ahead.
    guard = Lease(b"rwq-delayed:", 5_000)
    snapshots = [item._replace(lease=guard) for item in all_of(Export(queue))]
    list(restore(WorkQueue(connection, b"other"), snapshots))
    assert raw.zrange(b"other:delayed", 0, -1, withscores=True) == before
    assert lasts(raw, 3660.1, b"other:lease:0000", b"other:leased_by_session:0000")


def test_no_lists_are_read_for_items_that_are_gone(interleaved: Interleaved, raw: Redis) -> None:
    queue, new = WorkQueue(interleaved, QUEUE), numbered(2 * RESTORE_ITEMS)
    raw.lpush("jobs:queue", *numbered(9, b"other %d"))
    assert set(statuses(restore(queue, waits(*new), on_conflict=REPLACE))) == {Status.IMPORTED}
    assert not any("LRANGE" in call for call in interleaved.calls)


def test_what_changes_after_it_was_written_stays(
    queue: WorkQueue, foreign: Foreign, raw: Redis, keys: QueueKeys
) -> None:
    foreign.waiting(b"a", b"b", b"c")
    foreign.buried(b"e")
    foreign.buried(b"f")
    journal = Journal()
    journal.after_write = lambda: (
        raw.mset({"jobs:item:a": "else", "jobs:item:d": "else"}),
        raw.delete("jobs:item:b"),
        # A worker takes it.
        foreign.leased(b"e"),
    )
    items = waits(b"a", b"b", b"c", b"d", b"e", b"f")
    outcomes = restore(queue, items, on_conflict=REPLACE, journal=journal)
    assert statuses(outcomes) == [
        *(Status.CHANGED, Status.MISSING, Status.REPLACED),
        *(Status.CHANGED, Status.CHANGED, Status.REPLACED),
    ]
    assert raw.lrange(keys.processing, 0, -1) == [b"e"]
    assert raw.mget(keys.item(b"e"), keys.lease(b"e")) == [b"data of e", b"them"]
    assert raw.mget("jobs:item:a", "jobs:item:b", "jobs:item:d") == [b"else", None, b"else"]
    assert journal.kept == [b"a", b"b", b"e"]


def test_exactly_the_items_are_exported_in_order(
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


def test_a_result_made_during_the_reading_is_met(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    exported = Export(queue)
    batches = exported.batches()
    assert [p.item_id for p in next(batches)] == [b"a", b"b"]
    list(complete(queue, [b"a"], result_options=ResultOptions(b"done")))
    assert [p.item_id for batch in batches for p in batch] == []
    assert [r.item_id for batch in exported.results() for r in batch] == [b"a"]
    assert exported.results_read == 1
