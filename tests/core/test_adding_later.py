"""Adding for later: one step with its guard, by the server's clock, in the order of putting in."""

from collections.abc import Sequence
from random import Random

import pytest
from redis import Redis

from rwq_cli.core import Connection, Due, InvalidArgument, NewItem, Outcome, Status, WorkQueue
from rwq_cli.core.adding import ADD_ITEMS, ADD_ITEMS_LATER
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.promotion import promote
from tests.conftest import HOLDER, QUEUE, AsUser, Foreign, Interleaved, contents

HOUR = Due(3_600_000, from_now=True)
MARGIN_MS = 60_000


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


class TestOneItem:
    def test_a_delay(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
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

    def test_a_time(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
        due_ms = queue.now_ms() + 7_200_000
        assert queue.add(b"data", b"id", at_ms=due_ms) is True
        assert raw.zscore(keys.delayed, b"id") == due_ms
        assert raw.get(keys.lease(b"id")) == b"rwq-delayed:%d" % due_ms
        assert raw.exists(keys.main) == 0

    @pytest.mark.parametrize("due", [Due(0, True), Due(-5, True), Due(0, False), Due(-1e12, False)])
    def test_what_is_past_waits_at_once(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, due: Due
    ) -> None:
        list(queue.add_many([NewItem(b"id", b"data", due)]))
        assert contents(raw) == {keys.main: [b"id"], keys.item(b"id"): b"data"}

    def test_a_time_that_has_just_passed(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        queue.add(b"data", b"id", at_ms=queue.now_ms())
        assert raw.lrange(keys.main, 0, -1) == [b"id"]

    def test_both(self, queue: WorkQueue, raw: Redis) -> None:
        with pytest.raises(InvalidArgument) as caught:
            queue.add(b"data", b"id", delay_s=1, at_ms=1)
        assert caught.value.message == "a delay and a time exclude each other"
        assert contents(raw) == {}

    @pytest.mark.real_only("the fake does not wake who waits")
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


class TestBatches:
    def test_with_and_without_a_delay(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
        far = Due(queue.now_ms() + 9_000_000, from_now=False)
        dues = {b"a": None, b"b": HOUR, b"c": far, b"d": Due(1, False), b"e": HOUR, b"f": None}
        outcomes = list(queue.add_many(NewItem(i, b"x", due) for i, due in dues.items()))
        assert outcomes == [Outcome(item_id, Status.ADDED) for item_id in dues]
        assert raw.lrange(keys.main, 0, -1) == [b"f", b"d", b"a"]
        assert raw.zrange(keys.delayed, 0, -1) == [b"b", b"e", b"c"]
        for item_id in dues:
            guards = raw.exists(keys.lease(item_id), keys.old_lease(item_id))
            assert guards == (2 if item_id in (b"b", b"c", b"e") else 0)

    @pytest.mark.parametrize("first_later", [True, False])
    def test_of_an_id_that_is_twice_in_it_the_first_wins(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, first_later: bool
    ) -> None:
        later, at_once = NewItem(b"a", b"later", HOUR), NewItem(b"a", b"now")
        given = [later, at_once] if first_later else [at_once, later]
        outcomes = queue.add_many([*given, NewItem(b"b", b"x", HOUR)])
        assert [outcome.status for outcome in outcomes] == [
            Status.ADDED,
            Status.DUPLICATE,
            Status.ADDED,
        ]
        assert raw.get(keys.item(b"a")) == given[0].data
        assert raw.lrange(keys.main, 0, -1) == ([] if first_later else [b"a"])
        assert raw.zrange(keys.delayed, 0, -1) == [b"a", b"b"][not first_later :]
        assert raw.exists(keys.lease(b"a")) == first_later

    def test_what_exists_is_left_alone(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"waiting")
        foreign.leased(b"leased")
        foreign.data(b"orphaned")
        foreign.buried(b"buried")
        foreign.delayed(b"delayed", 9_999_999_999_999)
        before = contents(raw)
        ids = [b"waiting", b"leased", b"orphaned", b"buried", b"delayed"]
        for unique in (False, True):
            outcomes = list(queue.add_many(items(ids), unique=unique))
            assert outcomes == [Outcome(item_id, Status.DUPLICATE) for item_id in ids]
        assert contents(raw) == before

    def test_are_cut_smaller(self, interleaved: Interleaved, raw: Redis, keys: QueueKeys) -> None:
        counts: list[int] = []
        interleaved.before = lambda _: counts.append((len(interleaved.words) - 6) // 2)
        ids = shuffled(ADD_ITEMS + 10)
        given = [*items(ids[:ADD_ITEMS]), *items(ids[ADD_ITEMS:], None)]
        outcomes = list(WorkQueue(interleaved, QUEUE).add_many(given))
        assert outcomes == [Outcome(item_id, Status.ADDED) for item_id in ids]
        rest = ADD_ITEMS % ADD_ITEMS_LATER
        assert counts == [ADD_ITEMS_LATER] * (ADD_ITEMS // ADD_ITEMS_LATER) + [rest, 10]
        assert raw.zcard(keys.delayed) == ADD_ITEMS

    def test_large_ones(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
        large = bytes(3 * 1024 * 1024)
        list(queue.add_many(NewItem(b"%d" % number, large, HOUR) for number in range(4)))
        assert raw.zcard(keys.delayed) == 4
        assert raw.strlen(keys.item(b"3")) == len(large)


class TestUnique:
    def test_only_what_is_not_put_off_goes_unchecked(
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
        unchecked = interleaved.calls.count("MSET+LPUSH")
        assert unchecked == 3


class TestOrder:
    def test_of_one_delay(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
        """Over several calls; no item is later than its call by more than it has items."""
        ids = shuffled(3 * ADD_ITEMS_LATER + 1)
        before = now_ms(raw)
        list(queue.add_many(items(ids)))
        after = now_ms(raw)
        found = raw.zrange(keys.delayed, 0, -1, withscores=True)
        assert [item_id for item_id, _ in found] == ids
        assert before <= found[0][1] - HOUR.ms
        assert found[-1][1] - HOUR.ms <= after + ADD_ITEMS_LATER / 1000

    def test_of_one_time(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
        """A thousand fill a millisecond; who comes after them goes on behind them."""
        due = Due(queue.now_ms() + 3_600_000, from_now=False)
        ids = shuffled(2400)
        list(queue.add_many(items(ids[:1100], due)))
        for item_id in ids[1100:1110]:
            queue.add(b"x", item_id, at_ms=int(due.ms))
        list(queue.add_many(items(ids[1110:], due)))
        found = raw.zrange(keys.delayed, 0, -1, withscores=True)
        assert [item_id for item_id, _ in found] == ids
        late = [round(score - due.ms, 3) for _, score in found]
        assert late == [number / 1000 for number in range(2400)]

    @pytest.mark.parametrize("there", [0, 1, 999, 1000, 1001, 1999, 2000, 3500, 4000, 7000])
    def test_behind_those_that_are_there(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys, there: int
    ) -> None:
        due_ms = queue.now_ms() + 3_600_000
        if there:
            members = {b"%06d" % n: due_ms + n / 1000 for n in range(there)}
            raw.zadd(keys.delayed, members)
        queue.add(b"x", b"a", at_ms=due_ms)
        assert round(raw.zscore(keys.delayed, b"a") - due_ms, 3) == there / 1000

    def test_those_of_another_time_make_nobody_late(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        due_ms = queue.now_ms() + 3_600_000
        raw.zadd(keys.delayed, {b"before": due_ms - 0.5, b"after": due_ms + 1})
        queue.add(b"x", b"a", at_ms=due_ms)
        assert raw.zscore(keys.delayed, b"a") == due_ms

    def test_two_times_in_a_batch(self, queue: WorkQueue, raw: Redis, keys: QueueKeys) -> None:
        first, second = queue.now_ms() + 3_600_000, queue.now_ms() + 3_601_000
        ids = shuffled(100)
        given = [
            NewItem(item_id, b"x", Due(second if at % 2 else first, from_now=False))
            for at, item_id in enumerate(ids)
        ]
        list(queue.add_many(given))
        assert raw.zrange(keys.delayed, 0, -1) == [*ids[::2], *ids[1::2]]

    def test_it_is_the_order_of_promotion(
        self, queue: WorkQueue, raw: Redis, keys: QueueKeys
    ) -> None:
        ids = shuffled(400)
        list(queue.add_many(items(ids)))
        scores = raw.zrange(keys.delayed, 0, -1, withscores=True)
        raw.zadd(keys.delayed, {item_id: score - HOUR.ms for item_id, score in scores})
        assert [i for call in promote(queue.connection, keys) for i in call.ids] == ids
        assert raw.lrange(keys.main, 0, -1) == ids[::-1]


class TestPastItem:
    """What was completed by others while it was put away has left an entry, and a guard perhaps."""

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

    @pytest.mark.parametrize("was", ["delayed", "buried"])
    def test_one_for_later_has_its_own(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys, was: str
    ) -> None:
        if was == "delayed":
            foreign.delayed(b"a", 5)
        else:
            foreign.buried(b"a")
        raw.delete(keys.item(b"a"))
        raw.hset(keys.returns, b"a", 3)
        due_ms = queue.now_ms() + 3_600_000
        queue.add(b"new", b"a", at_ms=due_ms)
        guard = ("expires", b"rwq-delayed:%d" % due_ms)
        assert contents(raw) == {
            keys.delayed: {b"a": due_ms},
            keys.item(b"a"): b"new",
            keys.lease(b"a"): guard,
            keys.old_lease(b"a"): guard,
        }

    def test_a_lease_that_is_no_guard_stays(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
    ) -> None:
        """Somebody still works on the past one."""
        foreign.delayed(b"a", 5)
        foreign.lease(b"a", holder=HOLDER)
        raw.delete(keys.item(b"a"))
        queue.add(b"new", b"a")
        assert raw.exists(keys.delayed) == 0
        assert raw.get(keys.lease(b"a")) == HOLDER

    def test_others_keep_theirs(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
    ) -> None:
        foreign.delayed(b"other", 9_999_999_999_999)
        foreign.buried(b"another")
        raw.hset(keys.returns, b"another", 1)
        before = contents(raw)
        queue.add(b"x", b"a")
        raw.delete(keys.main, keys.item(b"a"))
        assert contents(raw) == before


@pytest.mark.real_only("the fake has no ACL")
@pytest.mark.parametrize("rule", ["-zadd", "-set", "-setnx", "-time"])
def test_nothing_is_written_where_a_command_is_denied(
    as_user: AsUser, raw: Redis, rule: str
) -> None:
    queue = WorkQueue(as_user("+@all", rule), QUEUE)
    with pytest.raises(PermissionDenied):
        queue.add(b"x", b"a", delay_s=5)
    assert contents(raw) == {}
