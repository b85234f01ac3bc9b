"""Adding: who decides a duplicate, what is on the wire, how much is read and sent at once; and for
later: in one step with the guard, by the server's clock, in the order of putting in."""

from collections.abc import Iterator, Sequence
from random import Random

import pytest
from redis import Redis

from rwq_cli.core import (
    Connection,
    Due,
    InvalidArgument,
    NewItem,
    Outcome,
    Status,
    WorkQueue,
)
from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.items.add import ADD_ITEMS, ADD_ITEMS_LATER, NewItems, add_batches
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.server.window import WINDOW_CALLS
from tests.conftest import (
    HOLDER,
    QUEUE,
    AsUser,
    Foreign,
    Interleaved,
    contents,
)

MEGABYTE = 1024 * 1024
HOUR = Due(3_600_000, from_now=True)
MARGIN_MS = 60_000


def numbered(count: int, data: bytes = b"x") -> list[NewItem]:
    return [NewItem(b"%d" % number, data) for number in range(count)]


def test_add_writes_the_data_and_queues_the_id(queue: WorkQueue, raw: Redis) -> None:
    assert queue.add(b"some \x00\xff data", b"id") is True
    assert contents(raw) == {b"jobs:queue": [b"id"], b"jobs:item:id": b"some \x00\xff data"}


def test_the_data_key_decides_a_duplicate(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"waiting")
    foreign.leased(b"leased")
    foreign.data(b"orphaned")
    foreign.buried(b"buried")
    before = contents(raw)
    ids = [b"waiting", b"leased", b"orphaned", b"buried"]
    outcomes = queue.add_many([NewItem(item_id, b"other") for item_id in ids])
    assert list(outcomes) == [Outcome(item_id, Status.DUPLICATE) for item_id in ids]
    assert queue.add(b"other", b"waiting") is False
    assert contents(raw) == before


def test_a_duplicate_within_a_batch(queue: WorkQueue, raw: Redis) -> None:
    items = [NewItem(b"a", b"1"), NewItem(b"b", b"2"), NewItem(b"a", b"3"), NewItem(b"c", b"4")]
    assert list(queue.add_many(items)) == [
        Outcome(b"a", Status.ADDED),
        Outcome(b"b", Status.ADDED),
        Outcome(b"a", Status.DUPLICATE),
        Outcome(b"c", Status.ADDED),
    ]
    assert contents(raw) == {
        b"jobs:queue": [b"c", b"b", b"a"],
        b"jobs:item:a": b"1",
        b"jobs:item:b": b"2",
        b"jobs:item:c": b"4",
    }


def test_only_one_of_two_adders_wins(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    """There is no read before the write, in which the other could slip."""
    interleaved.before = lambda _: raw.exists(b"jobs:item:id") or foreign.waiting(b"id")
    assert WorkQueue(interleaved, QUEUE).add(b"mine", b"id") is False
    assert interleaved.calls == ["add"]
    assert contents(raw) == {b"jobs:queue": [b"id"], b"jobs:item:id": b"data of id"}


def test_unique_without_reason_replaces_and_lists_twice(queue: WorkQueue, raw: Redis) -> None:
    list(queue.add_many([NewItem(b"id", b"first")], unique=True))
    list(queue.add_many([NewItem(b"id", b"second")], unique=True))
    assert contents(raw) == {b"jobs:queue": [b"id", b"id"], b"jobs:item:id": b"second"}


def test_an_empty_id_is_refused(queue: WorkQueue, raw: Redis) -> None:
    with pytest.raises(InvalidArgument) as caught:
        queue.add(b"data", b"")
    assert caught.value.message == "an item's ID is empty"
    assert caught.value.hint == "give it one, or let rwq generate it"
    assert contents(raw) == {}


def test_the_stream_is_read_a_few_batches_ahead_and_no_further(queue: WorkQueue) -> None:
    """It may never end; memory and the time to the first outcome stay bounded."""
    read = 0

    def endless() -> Iterator[NewItem]:
        nonlocal read
        while True:
            read += 1
            yield NewItem(b"%d" % read, b"data")

    outcomes = queue.add_many(endless())
    assert read == 0
    for reported in range(1, 5 * ADD_ITEMS):
        assert next(outcomes) == Outcome(b"%d" % reported, Status.ADDED)
        assert read <= reported + (WINDOW_CALLS + 1) * ADD_ITEMS
    outcomes.batches.close()


def test_a_pause_in_the_stream_sends_what_is_there(queue: WorkQueue, raw: Redis) -> None:
    """The source is a pipe that has nothing more for now: what it gave is added and reported."""
    reported: list[Outcome] = []
    reported_at_each_pause: list[int] = []

    def stream() -> Iterator[NewItem | Flush]:
        for item in numbered(4):
            yield item
            yield FLUSH
            reported_at_each_pause.append(len(reported))

    for outcome in queue.add_many(stream()):
        reported.append(outcome)
    assert reported == [Outcome(b"%d" % number, Status.ADDED) for number in range(4)]
    assert reported_at_each_pause == [1, 2, 3, 4]
    assert raw.llen(b"jobs:queue") == 4


def now_ms(raw: Redis) -> float:
    seconds, microseconds = raw.time()
    return float(seconds * 1000 + microseconds / 1000)


def items(ids: Sequence[bytes], due: Due | None = HOUR) -> list[NewItem]:
    return [NewItem(item_id, b"x", due) for item_id in ids]


def shuffled(count: int) -> list[bytes]:
    """IDs in no order."""
    ids = [b"%06d" % number for number in range(count)]
    Random(count).shuffle(ids)
    return ids


class TestDelayedItem:
    def test_a_delay_sets_the_due_time_and_guards(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
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
        for key in (keys.lease(b"id"), keys.old_lease(b"id")):
            ends_ms = now_ms(raw) + raw.pttl(key)
            assert due_ms + MARGIN_MS - 100 <= ends_ms <= due_ms + MARGIN_MS + 1000

    @pytest.mark.parametrize("due", [Due(0, True), Due(-5, True), Due(0, False), Due(-1e12, False)])
    def test_an_item_with_a_past_due_time_is_not_delayed(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, due: Due
    ) -> None:
        list(queue.add_many([NewItem(b"id", b"data", due)]))
        assert contents(raw) == {keys.main: [b"id"], keys.item(b"id"): b"data"}

    def test_a_delay_and_a_time_are_refused_together(self, queue: WorkQueue, raw: Redis) -> None:
        with pytest.raises(InvalidArgument) as caught:
            queue.add(b"data", b"id", delay_s=1, at=(1) / 1000)
        assert caught.value.message == "a delay and a time cannot be used together"
        assert contents(raw) == {}

    def test_it_is_leased_when_it_is_due_and_not_before(
        self, connection: Connection, raw: Redis
    ) -> None:
        queue = WorkQueue(connection, QUEUE)
        queue.add(b"data", b"id", delay_s=0.1)
        due_ms = raw.zscore(queue.keys.delayed, b"id")
        assert queue.lease() is None
        item = queue.lease(wait_s=5)
        assert item is not None
        assert item.item_id == b"id"
        assert now_ms(raw) >= due_ms


class TestDelayedBatches:
    def test_a_batch_may_mix_delayed_and_waiting_items(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        far = Due(queue.now_ms() + 9_000_000, from_now=False)
        dues = {b"a": None, b"b": HOUR, b"c": far, b"d": Due(1, False), b"e": HOUR, b"f": None}
        outcomes = list(queue.add_many(NewItem(i, b"x", due) for i, due in dues.items()))
        assert outcomes == [Outcome(item_id, Status.ADDED) for item_id in dues]
        assert raw.lrange(keys.main, 0, -1) == [b"f", b"d", b"a"]
        assert raw.zrange(keys.delayed, 0, -1) == [b"b", b"e", b"c"]
        for item_id in dues:
            guards = raw.exists(keys.lease(item_id), keys.old_lease(item_id))
            assert guards == (2 if item_id in (b"b", b"c", b"e") else 0)


class TestUniqueWithDelays:
    def test_only_waiting_items_are_added_without_a_check(
        self, interleaved: Interleaved, raw: Redis, keys: QueueKeys
    ) -> None:
        """In the order given, whatever the way."""
        raw.set(keys.item(b"there"), b"old")
        raw.set(keys.item(b"later there"), b"old")
        queue = WorkQueue(interleaved, QUEUE)
        at_once = [NewItem(b"%d" % n, b"x") for n in range(2 * ADD_ITEMS)]
        given = [
            *at_once,
            *items([b"later there", *shuffled(ADD_ITEMS - 1)]),
            *[NewItem(b"there", b"new")],
        ]
        outcomes = list(queue.add_many(given, unique=True))
        assert [outcome.item_id for outcome in outcomes] == [item.item_id for item in given]
        odd = [outcome for outcome in outcomes if outcome.status is not Status.ADDED]
        assert odd == [Outcome(b"later there", Status.DUPLICATE)]
        assert raw.mget(keys.item(b"there"), keys.item(b"later there")) == [b"new", b"old"]
        assert raw.llen(keys.main) == 2 * ADD_ITEMS + 1
        assert raw.zcard(keys.delayed) == ADD_ITEMS - 1


class TestOrderOfDueTimes:
    def test_items_with_one_delay_keep_their_order(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        """Over several calls; no item is later than its call by more than it has items."""
        ids = shuffled(3 * ADD_ITEMS_LATER + 1)
        before = now_ms(raw)
        list(queue.add_many(items(ids)))
        after = now_ms(raw)
        found = raw.zrange(keys.delayed, 0, -1, withscores=True)
        assert [item_id for item_id, _ in found] == ids
        assert before <= found[0][1] - HOUR.ms
        assert found[-1][1] - HOUR.ms <= after + ADD_ITEMS_LATER / 1000

    def test_items_with_one_due_time_keep_their_order(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        """A thousand fill a millisecond; who comes after them goes on behind them."""
        due = Due(queue.now_ms() + 3_600_000, from_now=False)
        ids = shuffled(2400)
        list(queue.add_many(items(ids[:1100], due)))
        for item_id in ids[1100:1110]:
            queue.add(b"x", item_id, at=(int(due.ms)) / 1000)
        list(queue.add_many(items(ids[1110:], due)))
        found = raw.zrange(keys.delayed, 0, -1, withscores=True)
        assert [item_id for item_id, _ in found] == ids
        late = [round(score - due.ms, 3) for _, score in found]
        assert late == [number / 1000 for number in range(2400)]

    @pytest.mark.parametrize("there", [0, 1, 999, 1000, 1001, 1999, 2000, 3500, 4000, 7000])
    def test_an_item_comes_after_existing_ones_with_the_same_due_time(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, there: int
    ) -> None:
        due_ms = queue.now_ms() + 3_600_000
        if there:
            members = {b"%06d" % n: due_ms + n / 1000 for n in range(there)}
            raw.zadd(keys.delayed, members)
        queue.add(b"x", b"a", at=(due_ms) / 1000)
        assert round(raw.zscore(keys.delayed, b"a") - due_ms, 3) == there / 1000

    def test_it_is_the_order_of_promotion(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        ids = shuffled(400)
        list(queue.add_many(items(ids)))
        scores = raw.zrange(keys.delayed, 0, -1, withscores=True)
        raw.zadd(keys.delayed, {item_id: score - HOUR.ms for item_id, score in scores})
        assert [i for call in promote(queue) for i in call.ids] == ids
        assert raw.lrange(keys.main, 0, -1) == ids[::-1]


class TestLeftovers:
    """An item that others completed while it was scheduled left an entry, and perhaps a guard."""

    @pytest.mark.parametrize("guarded", ["", "old", "new", "both"])
    @pytest.mark.parametrize("was", ["delayed", "buried"])
    def test_a_new_one_begins_without_its_traces(
        self,
        queue: WorkQueue,
        raw: Redis,
        foreign: Foreign,
        keys: QueueKeys,
        was: str,
        guarded: str,
    ) -> None:
        if was == "delayed":
            foreign.delayed(b"a", 9_999_999_999_999)
        else:
            foreign.buried(b"a")
        raw.delete(keys.item(b"a"))
        if guarded not in ("new", "both"):
            raw.delete(keys.lease(b"a"))
        if guarded not in ("old", "both"):
            raw.delete(keys.old_lease(b"a"))
        raw.hset(keys.returns, b"a", 3)
        list(queue.add_many([NewItem(b"a", b"new"), NewItem(b"b", b"x")]))
        assert contents(raw) == {
            keys.main: [b"b", b"a"],
            keys.item(b"a"): b"new",
            keys.item(b"b"): b"x",
        }

    @pytest.mark.parametrize("lease_name", ["new", "old"])
    @pytest.mark.parametrize("unique", [False, True])
    def test_a_lease_of_the_completed_one_goes(
        self, queue: WorkQueue, foreign: Foreign, keys: QueueKeys, lease_name: str, unique: bool
    ) -> None:
        """Its worker knew the other lease name only; the new item would look leased."""
        foreign.buried(b"a")
        foreign.lease(b"a", holder=HOLDER, generations=lease_name)
        foreign.raw.delete(keys.item(b"a"))
        list(queue.add_many([NewItem(b"a", b"new")], unique=unique))
        assert contents(foreign.raw) == {keys.main: [b"a"], keys.item(b"a"): b"new"}


@pytest.mark.parametrize("command", ["multi", "exec"])
def test_a_user_who_may_not_use_transactions_adds_nothing(
    as_user: AsUser, raw: Redis, command: str
) -> None:
    """Behind a refused MULTI the commands would run; without EXEC all others would be queued."""
    queue = WorkQueue(as_user("+@all", f"-{command}"), QUEUE)
    batch = NewItems([b"a"], [b""], None, random_ids=True)
    with pytest.raises(PermissionDenied, match=command):
        list(add_batches(queue, [batch], unique=True))
    assert raw.keys() == []
    assert queue.now_ms() > 0
