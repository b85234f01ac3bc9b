"""Adding: who decides a duplicate, how much is read ahead; for later: the guard and the order."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
import redis
from redis import Redis

from rwq_cli.core import (
    Connection,
    Due,
    InvalidArgument,
    NewItem,
    Outcome,
    Source,
    State,
    Status,
    WorkQueue,
)
from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.items.add import (
    NewItems,
    add_batches,
    add_spread,
    batched_items,
    picker,
)
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.lua import items_max
from tests.conftest import QUEUE, AsUser, Foreign, contents
from tests.support import numbered

ADD_ITEMS, ADD_ITEMS_LATER = items_max("add"), items_max("add") // 3
HOUR = Due(3_600_000, from_now=True)
MARGIN_MS = 60_000


def now_ms(raw: Redis) -> float:
    seconds, microseconds = raw.time()
    return float(seconds * 1000 + microseconds / 1000)


def later(ids: list[bytes], due: Due | None = HOUR) -> list[NewItem]:
    return [NewItem(item_id, b"x", due) for item_id in ids]


def shuffled(count: int) -> list[bytes]:
    ids = numbered(count)
    Random(count).shuffle(ids)
    return ids


def test_unique_replaces_waiting_and_checks_delayed(
    queue: WorkQueue, raw: Redis, keys: QueueKeys
) -> None:
    raw.mset({keys.item(b"there"): b"old", keys.item(b"later there"): b"old"})
    given = [
        *(NewItem(item_id, b"x") for item_id in numbered(2 * ADD_ITEMS)),
        *later([b"later there", *(b"later %b" % i for i in shuffled(ADD_ITEMS - 1))]),
        NewItem(b"there", b"new"),
    ]
    outcomes = list(queue.add_many(given, unique=True))
    assert [outcome.item_id for outcome in outcomes] == [item.item_id for item in given]
    odd = [outcome for outcome in outcomes if outcome.status is not Status.ADDED]
    assert odd == [Outcome(b"later there", Status.DUPLICATE)]
    assert raw.mget(keys.item(b"there"), keys.item(b"later there")) == [b"new", b"old"]
    assert raw.llen(keys.main) == 2 * ADD_ITEMS + 1
    assert raw.zcard(keys.delayed) == ADD_ITEMS - 1


def test_an_empty_id_or_delay_with_time_is_refused(queue: WorkQueue, raw: Redis) -> None:
    with pytest.raises(InvalidArgument, match="an item's ID is empty"):
        queue.add(b"data", b"")
    with pytest.raises(InvalidArgument, match="a delay and a time cannot be used together"):
        queue.add(b"data", b"id", delay_s=1, at=1)
    assert contents(raw) == {}


def test_a_pause_in_the_stream_sends_what_is_there(queue: WorkQueue) -> None:
    """The source is a pipe that has nothing more for now: what it gave is added and reported."""
    reported: list[Outcome] = []
    reported_at_each_pause: list[int] = []

    def stream() -> Iterator[NewItem | Flush]:
        for item_id in numbered(4):
            yield NewItem(item_id, b"x")
            yield FLUSH
            reported_at_each_pause.append(len(reported))

    for outcome in queue.add_many(stream()):
        reported.append(outcome)
    assert reported_at_each_pause == [1, 2, 3, 4]


def test_a_delayed_item_has_a_guard_that_outlives_it(
    queue: WorkQueue, raw: Redis, keys: QueueKeys
) -> None:
    before = now_ms(raw)
    assert queue.add(b"some \x00\xff data", b"id", delay_s=300) is True
    after = now_ms(raw)
    due_ms = raw.zscore(keys.delayed, b"id")
    assert before + 300_000 - 0.001 <= due_ms <= after + 300_000 + 0.001
    guard = b"rwq-delayed:%d" % int(due_ms)
    assert contents(raw) == {
        keys.delayed: {b"id": due_ms},
        keys.item(b"id"): b"some \x00\xff data",
        keys.lease(b"id"): ("expires", guard),
        keys.old_lease(b"id"): ("expires", guard),
    }
    guards = (keys.lease(b"id"), keys.old_lease(b"id"))
    early_ms = max([now_ms(raw) + raw.pttl(key) for key in guards])
    late_ms = min([raw.pttl(key) + now_ms(raw) for key in guards])
    assert early_ms - 1000 <= due_ms + MARGIN_MS <= late_ms + 100


def test_an_item_with_a_past_due_time_is_not_delayed(
    queue: WorkQueue, raw: Redis, keys: QueueKeys
) -> None:
    dues = [Due(0, True), Due(-5, True), Due(0, False), Due(-1e12, False), HOUR, None]
    items = [NewItem(b"%d" % at, b"data", due) for at, due in enumerate(dues)]
    assert {each.status for each in queue.add_many(items)} == {Status.ADDED}
    assert raw.lrange(keys.main, 0, -1) == [b"5", b"3", b"2", b"1", b"0"]
    assert raw.zrange(keys.delayed, 0, -1) == [b"4"]


class TestOrderOfDueTimes:
    def test_items_of_one_delay_keep_their_order(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        """Over several calls; no item is later than its call by more than it has items."""
        ids = shuffled(3 * ADD_ITEMS_LATER + 1)
        before = now_ms(raw)
        list(queue.add_many(later(ids)))
        after = now_ms(raw)
        found = raw.zrange(keys.delayed, 0, -1, withscores=True)
        assert [item_id for item_id, _ in found] == ids
        assert before <= found[0][1] - HOUR.ms
        assert found[-1][1] - HOUR.ms <= after + ADD_ITEMS_LATER / 1000
        raw.zadd(keys.delayed, {item_id: score - HOUR.ms for item_id, score in found})
        assert [i for call in promote(queue) for i in call.ids] == ids
        assert raw.lrange(keys.main, 0, -1) == ids[::-1]

    def test_items_with_one_due_time_keep_their_order(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        """A thousand fill a millisecond; who comes after them goes on behind them."""
        due = Due(queue.now_ms() + 3_600_000, from_now=False)
        ids = shuffled(2400)
        list(queue.add_many(later(ids[:1100], due)))
        for item_id in ids[1100:1110]:
            queue.add(b"x", item_id, at=int(due.ms) / 1000)
        list(queue.add_many(later(ids[1110:], due)))
        found = raw.zrange(keys.delayed, 0, -1, withscores=True)
        assert [item_id for item_id, _ in found] == ids
        late = [round(score - due.ms, 3) for _, score in found]
        assert late == [number / 1000 for number in range(2400)]


@pytest.mark.parametrize("command", ["multi", "exec"])
def test_without_transactions_nothing_is_added(as_user: AsUser, raw: Redis, command: str) -> None:
    """Behind a refused MULTI the commands would run; without EXEC all others would be queued."""
    queue = WorkQueue(as_user("+@all", f"-{command}"), QUEUE)
    batch = NewItems([b"a"], [b""], None, random_ids=True)
    with pytest.raises(PermissionDenied, match=command):
        list(add_batches(queue, [batch], unique=True))
    assert raw.keys() == []
    assert queue.now_ms() > 0


NAMES = numbered(8, b"{jobs:%d}")
IDS = numbered(4000, b"%d")


def test_the_rule_is_the_same_for_ever() -> None:
    """Made with `printf '%s\\0%s' NAME ID | b2sum -l 64`, the greatest first."""
    pick = picker([b"a", b"b", b"c"])
    ids = (b"1", b"2", b"3", b"4", b"5", b"\xff")
    assert b"".join(map(pick, ids)) == b"ccbaca"


def test_only_items_that_name_a_queue_change_it() -> None:
    before, after = picker(NAMES), picker([*NAMES, b"{jobs:new}"])
    changed = {after(i) for i in IDS if before(i) != after(i)}
    assert changed == {b"{jobs:new}"}


def test_a_second_add_is_a_duplicate_anywhere(connection: Connection, raw: redis.Redis) -> None:
    queues = [WorkQueue(connection, name) for name in NAMES]

    def add(*, dry_run: bool = False) -> Counter[Status]:
        items = (NewItem(item_id, b"data") for item_id in IDS)
        batches = add_spread(queues, batched_items(items), dry_run=dry_run)
        return Counter(each.status for _, batch in batches for each in batch)

    assert add(dry_run=True) == {Status.ADDED: 4000}
    assert raw.dbsize() == 0
    assert add() == {Status.ADDED: 4000}
    assert add() == {Status.DUPLICATE: 4000}
    pick = picker(NAMES)
    assert {name: raw.lrange(name + b":queue", 0, -1)[::-1] for name in NAMES} == {
        name: [item_id for item_id in IDS if pick(item_id) == name] for name in NAMES
    }


@pytest.mark.parametrize("unique", [False, True])
def test_a_new_item_inherits_nothing(
    queue: WorkQueue, raw: Redis, foreign: Foreign, unique: bool
) -> None:
    """What a worker that knows none of rwq's keys leaves of an item that it completes."""
    foreign.buried(b"a", b"it broke")
    foreign.delayed(b"b", 1)
    foreign.leased(b"c")
    raw.hset(foreign.keys.returns, "c", 7)
    raw.delete(*(foreign.keys.item(item_id) for item_id in (b"a", b"b", b"c")))
    raw.delete(foreign.keys.processing)
    [*queue.add_many([NewItem(item_id, b"x") for item_id in (b"a", b"b", b"c")], unique=unique)]
    items = [*queue.items(Source(main=True, delayed=True, buried=True))]
    assert [(item.item_id, item.state, item.returns) for item in items] == [
        *((item_id, State.WAITING, None) for item_id in (b"a", b"b", b"c"))
    ]
    assert raw.exists(foreign.keys.returns, foreign.keys.buried, foreign.keys.delayed) == 0
