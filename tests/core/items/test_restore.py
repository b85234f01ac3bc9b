"""Restoring items as they were, again and again, into a queue that may have others."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Connection, Due, Lease, NewItem, Outcome, State, Status, WorkQueue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.export import export as export_items
from rwq_cli.core.items.restore import (
    RESTORE_ITEMS,
    Line,
    OnConflict,
    restore as restore_items,
)
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Outcomes
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from tests.conftest import Foreign, contents, lasts
from tests.core.items.test_remove import Journal
from tests.export_lines import lines_of

FAIL, SKIP, REPLACE = OnConflict.FAIL, OnConflict.SKIP, OnConflict.REPLACE


def waits(*ids: bytes, data: bytes = b"new") -> list[ItemSnapshot]:
    """Waiting items."""
    return [ItemSnapshot(item_id, data, State.WAITING, Place.MAIN) for item_id in ids]


def restore(queue: WorkQueue, snapshots: Iterable[ItemSnapshot], **options: Any) -> Outcomes:
    """Restore items; a conflict fails by default."""
    return restore_items(queue, lines_of(snapshots), **options)


def statuses(outcomes: object) -> list[Status]:
    """What became of each."""
    return [outcome.status for outcome in outcomes]  # type: ignore[attr-defined]


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
    before = contents(raw)
    snapshots = [p for batch in export_items(queue).batches() for p in batch]
    raw.flushall()
    outcomes = list(restore(queue, snapshots, on_conflict=on_conflict))
    assert outcomes == [Outcome(p.item_id, Status.IMPORTED) for p in snapshots]
    assert contents(raw) == before
    assert lasts(raw, 60, keys.lease(b"l1"), keys.old_lease(b"l1"))
    again = list(restore(queue, snapshots, on_conflict=on_conflict))
    assert again == [Outcome(p.item_id, Status.ALREADY_THERE) for p in snapshots]
    assert contents(raw) == before


def test_the_same_item_elsewhere_is_there_already(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """A worker leased it between two imports."""
    foreign.leased(b"a", ttl_ms=None)
    before = contents(raw)
    assert statuses(restore(queue, waits(b"a", data=b"data of a"), on_conflict=REPLACE)) == [
        Status.ALREADY_THERE
    ]
    assert contents(raw) == before


@pytest.mark.parametrize(
    ("on_conflict", "status"), [(FAIL, Status.CONFLICT), (SKIP, Status.SKIPPED)]
)
def test_an_item_with_other_data_stays(
    queue: WorkQueue, raw: Redis, foreign: Foreign, on_conflict: OnConflict, status: Status
) -> None:
    foreign.leased(b"a", ttl_ms=None)
    outcomes = restore(queue, waits(b"n1", b"a", b"n2"), on_conflict=on_conflict)
    assert statuses(outcomes) == [Status.IMPORTED, status, Status.IMPORTED]
    assert raw.get("jobs:item:a") == b"data of a"
    assert raw.lrange("jobs:queue", 0, -1) == [b"n2", b"n1"]
    assert raw.lrange("jobs:processing", 0, -1) == [b"a"]


def test_replace_overwrites_an_item(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
) -> None:
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l", ttl_ms=None)
    foreign.buried(b"b")
    raw.hset(keys.returns, b"b", 3)
    lease = Lease(b"me", None)
    given = [*waits(b"b", b"w1"), ItemSnapshot(b"l", b"new", State.HELD, Place.PROCESSING, lease)]
    assert statuses(restore(queue, given, on_conflict=REPLACE)) == [Status.REPLACED] * 3
    assert contents(raw) == {
        b"jobs:item:b": b"new",
        b"jobs:item:l": b"new",
        b"jobs:item:w1": b"new",
        b"jobs:item:w2": b"data of w2",
        b"jobs:lease:l": b"them",
        b"jobs:leased_by_session:l": b"them",
        b"jobs:processing": [b"l"],
        b"jobs:queue": [b"b", b"w2", b"w1"],
    }


@pytest.mark.parametrize("count", [3, 3000])
def test_only_the_data_of_an_item_in_its_place_are_replaced(
    queue: WorkQueue, raw: Redis, foreign: Foreign, count: int
) -> None:
    """As by `export | jq | import`; one that was leased since keeps its lease."""
    ids = [b"%04d" % number for number in range(count)]
    foreign.waiting(*ids)
    foreign.buried(b"b")
    exported = [item for batch in export_items(queue).batches() for item in batch]
    leased = queue.lease()
    assert leased is not None
    before = contents(raw)
    journal = Journal()
    new = [item._replace(data=b"new " + item.item_id) for item in exported]
    outcomes = restore(queue, new, on_conflict=REPLACE, journal=journal)
    assert statuses(outcomes) == [Status.REPLACED] * (count + 1)
    after = contents(raw)
    assert after == before | {b"jobs:item:" + item.item_id: item.data for item in new}
    undone = [
        Line(number, item, sha256(b"new " + item.item_id).hexdigest())
        for number, item in enumerate(reversed(journal.written), 2)
    ]
    outcomes = restore_items(queue, undone, on_conflict=REPLACE, front=True)
    assert statuses(outcomes) == [Status.REPLACED] * (count + 1)
    assert contents(raw) == before


def test_what_leaves_its_place_is_found_in_long_lists(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    raw.rpush("jobs:queue", *range(200_000))
    foreign.data(b"a", b"b")
    raw.rpush("jobs:processing", *range(200_000, 300_000), b"a", b"b", *range(300_000, 400_000))
    outcomes = restore(queue, waits(b"a", b"b"), on_conflict=REPLACE)
    assert statuses(outcomes) == [Status.REPLACED] * 2
    assert raw.lrange("jobs:queue", 0, 1) == [b"b", b"a"]
    assert raw.llen("jobs:processing") == 200_000


@pytest.mark.parametrize("items", [1, 3 * RESTORE_ITEMS])
@pytest.mark.parametrize("on_conflict", OnConflict)
def test_leftovers_of_an_id_do_not_become_items(
    queue: WorkQueue,
    raw: Redis,
    foreign: Foreign,
    keys: QueueKeys,
    on_conflict: OnConflict,
    items: int,
) -> None:
    """Completed where nobody takes them off."""
    ids = [b"%04d" % number for number in range(items)]
    ghost = ids[-1]
    foreign.waiting(b"w")
    raw.zadd(keys.delayed, {ghost: 1})
    raw.zadd(keys.buried, {ghost: 1})
    raw.hset(keys.returns, ghost, 1)
    raw.lpush(keys.cleaning, ghost)
    foreign.lease(ghost, ttl_ms=None)
    outcomes = statuses(restore(queue, waits(*ids), on_conflict=on_conflict))
    assert outcomes == [Status.IMPORTED] * items
    assert raw.lrange(keys.main, 0, -1) == [*reversed(ids), b"w"]
    left = contents(raw)
    for item_id in (*ids, b"w"):
        del left[keys.item(item_id)]
    del left[keys.main]
    assert left == {}


def test_items_restored_at_the_front_keep_their_order(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"old")
    ids = [b"%04d" % number for number in range(2 * RESTORE_ITEMS + 3)]
    list(restore(queue, waits(*reversed(ids)), on_conflict=FAIL, front=True))
    assert raw.lrange("jobs:queue", 0, -1) == [b"old", *reversed(ids)]


@pytest.mark.parametrize("between", [0, 2 * RESTORE_ITEMS])
@pytest.mark.parametrize(
    ("on_conflict", "expected"),
    [
        (FAIL, (Status.CONFLICT, Status.ALREADY_THERE)),
        (SKIP, (Status.SKIPPED, Status.ALREADY_THERE)),
        (REPLACE, (Status.REPLACED, Status.REPLACED)),
    ],
)
def test_a_repeated_id(
    queue: WorkQueue,
    raw: Redis,
    on_conflict: OnConflict,
    expected: tuple[Status, Status],
    between: int,
) -> None:
    """In the same batch or later."""
    others = waits(*(b"other%d" % number for number in range(between)))
    given = [*waits(b"a", b"a"), *others, *waits(b"a", data=b"other"), *waits(b"a")]
    for dry_run in (True, False):
        outcomes = restore(queue, given, on_conflict=on_conflict, dry_run=dry_run)
        assert [o.status for o in outcomes if o.item_id == b"a"] == [
            *(Status.IMPORTED, Status.ALREADY_THERE, *expected)
        ]
    assert raw.lrange("jobs:queue", 0, -1).count(b"a") == 1


@pytest.mark.parametrize(("lost_after", "imported"), [(0, 0), (1, 250), (3, 750)])
def test_an_interrupted_restore_leaves_out_only_the_end(
    connection: Connection, raw: Redis, lost_after: int, imported: int
) -> None:
    """So the same again completes it, in the right order."""
    ids = [b"%04d" % number for number in range(1000)]
    queue = WorkQueue(connection, b"jobs")
    given = waits(*ids)
    list(restore(queue, given[: lost_after * RESTORE_ITEMS], on_conflict=FAIL))
    outcomes = statuses(restore(queue, given, on_conflict=FAIL))
    assert outcomes.count(Status.ALREADY_THERE) == imported
    assert outcomes.count(Status.IMPORTED) == 1000 - imported
    assert raw.lrange("jobs:queue", 0, -1) == ids[::-1]


def test_the_order_of_those_of_one_time_is_kept(
    queue: WorkQueue, connection: Connection, raw: Redis
) -> None:
    """It is in what the scores have below a millisecond."""
    in_time = Due(3_600_000, from_now=True)
    ids = [b"%02d" % number for number in range(30)][::-1]
    list(queue.add_many([NewItem(item_id, b"", in_time) for item_id in ids]))
    before = raw.zrange(b"jobs:delayed", 0, -1, withscores=True)
    assert [item_id for item_id, _ in before] == ids
    snapshots = [snapshot for batch in export_items(queue).batches() for snapshot in batch]
    other = WorkQueue(connection, b"other")
    list(restore(other, snapshots, on_conflict=OnConflict.FAIL))
    assert raw.zrange(b"other:delayed", 0, -1, withscores=True) == before


def test_a_guard_lasts_as_long_as_this_server_needs_it_to(queue: WorkQueue, raw: Redis) -> None:
    """The clock of the one that the item was exported from may be ahead of it."""
    guard = Lease(b"rwq-delayed:", 5_000)
    due_ms = queue.now_ms() + 3_600_000
    snapshot = ItemSnapshot(b"a", b"", State.DELAYED, Place.DELAYED, guard, due_ms=due_ms)
    list(restore(queue, [snapshot], on_conflict=OnConflict.FAIL))
    assert lasts(raw, 3660, b"jobs:lease:a", b"jobs:leased_by_session:a")


class Notes:
    """A journal that remembers what was written, and runs something after each write."""

    def __init__(self) -> None:
        self.items: dict[bytes, tuple[bytes, str]] = {}
        self.results: list[Result] = []
        self.settled: list[list[bytes]] = []
        self.after_write: Callable[[], object] = lambda: None

    def write(self, items: Sequence[ItemSnapshot], written: Sequence[str] = ()) -> None:
        for item, by in zip(items, written, strict=True):
            self.items[item.item_id] = item.data, by
        self.after_write()

    def write_results(self, results: Sequence[Result], _written: Sequence[str] = ()) -> None:
        self.results += results

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        self.settled.append(list(kept))


class TestJournal:
    def test_it_has_what_was_replaced_and_what_replaced_it(
        self, queue: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"same")
        foreign.leased(b"l")
        given = [*waits(b"new", b"a", b"l"), *waits(b"same", data=b"data of same")]
        notes = Notes()
        outcomes = restore(queue, given, on_conflict=REPLACE, journal=notes)
        assert statuses(outcomes) == [
            *(Status.IMPORTED, Status.REPLACED, Status.REPLACED, Status.ALREADY_THERE)
        ]
        digest = sha256(b"new").hexdigest()
        assert notes.items == {b"a": (b"data of a", digest), b"l": (b"data of l", digest)}
        assert notes.settled == [[]]

    def test_an_item_that_changes_after_it_was_written_stays(
        self, queue: WorkQueue, foreign: Foreign, raw: Redis
    ) -> None:
        foreign.waiting(b"a", b"b", b"c")
        notes = Notes()
        notes.after_write = lambda: (raw.set("jobs:item:a", "else"), raw.delete("jobs:item:b"))
        outcomes = restore(queue, waits(b"a", b"b", b"c"), on_conflict=REPLACE, journal=notes)
        assert statuses(outcomes) == [Status.CHANGED, Status.MISSING, Status.REPLACED]
        assert (raw.get("jobs:item:a"), raw.exists("jobs:item:b")) == (b"else", 0)
        assert notes.settled == [[b"a", b"b"]]

    def test_an_item_that_comes_after_that_is_not_replaced(
        self, queue: WorkQueue, foreign: Foreign, raw: Redis
    ) -> None:
        foreign.waiting(b"a")
        notes = Notes()
        notes.after_write = lambda: raw.set("jobs:item:b", "else")
        outcomes = restore(queue, waits(b"a", b"b"), on_conflict=REPLACE, journal=notes)
        assert statuses(outcomes) == [Status.REPLACED, Status.CHANGED]
        assert raw.get("jobs:item:b") == b"else"
