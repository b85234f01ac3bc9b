"""Leasing the next items, waiting for them, and what a lease is; asserted on the raw keys."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from rwq_cli.core import Connection, Item, Lease, Outcome, State, Status, WorkQueue
from rwq_cli.core.errors import InvalidArgument, WrongType
from rwq_cli.core.items.lease import lease_from, lease_ids
from rwq_cli.core.keys import QueueKeys
from tests.conftest import HOLDER, QUEUE, Backend, FakeClock, Foreign, contents, lasts, work_of
from tests.driver import TIMEOUT_S, until
from tests.servers import PrivateServer
from tests.support import numbered

MEGABYTE = 1024 * 1024


def leased(item_id: bytes, queue: bytes = QUEUE) -> Item:
    data = b"data of " + item_id
    lease = Lease(HOLDER, 60_000)
    return Item(queue, item_id, State.LEASED, len(data), data, data, lease=lease)


def both(keys: QueueKeys, *ids: bytes) -> list[bytes]:
    return [key for i in ids for key in (keys.lease(i), keys.old_lease(i))]


def test_a_lease_moves_the_item_under_both_names(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
) -> None:
    """Also in place of one that a session that failed has left under either name."""
    foreign.leased(b"other")
    foreign.waiting(b"1", b"2", b"3", b"4")
    foreign.lease(b"1", ttl_ms=None, generations="old")
    foreign.lease(b"2", ttl_ms=900_000, generations="new")
    assert [*queue.lease_many(3, for_s=60)] == [leased(b"1"), leased(b"2"), leased(b"3")]
    assert raw.lrange(keys.main, 0, -1) == [b"4"]
    assert raw.lrange(keys.processing, 0, -1) == [b"3", b"2", b"1", b"other"]
    names = both(keys, b"1", b"2", b"3")
    assert raw.mget(names) == [HOLDER] * 6
    assert lasts(raw, 60, *names)


def test_data_of_the_wrong_type_is_named_not_taken(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    raw.hset(b"jobs:item:strange", "field", "value")
    raw.lpush(b"jobs:queue", b"strange")
    foreign.waiting(b"1")
    before = contents(raw)
    with pytest.raises(WrongType, match="a hash, not a string; it is the data of the next item"):
        queue.lease()
    assert contents(raw) == before


def test_a_lease_below_a_millisecond_is_an_error(queue: WorkQueue) -> None:
    for lease_s in (0, 0.0004, -1):
        with pytest.raises(InvalidArgument):
            queue.lease(for_s=lease_s)
        with pytest.raises(InvalidArgument):
            list(lease_ids(queue, [b"1"], lease_s=lease_s))
        with pytest.raises(InvalidArgument):
            queue.touch_many([b"2"], for_s=lease_s)


@pytest.mark.parametrize("generations", ["old", "new", "both"])
def test_touch_extends_a_lease_of_any_generation(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys, generations: str
) -> None:
    foreign.leased(b"1", ttl_ms=5000, generations=generations)
    foreign.leased(b"2", ttl_ms=None, generations=generations)
    outcomes = list(queue.touch_many([b"1", b"2"], for_s=600))
    assert outcomes == [Outcome(b"1", Status.TOUCHED), Outcome(b"2", Status.TOUCHED)]
    assert raw.mget(both(keys, b"1", b"2")) == [b"them"] * 4
    assert lasts(raw, 600, *both(keys, b"1", b"2"))


def test_several_by_id_in_the_order_given_each_once(
    queue: WorkQueue, raw: Redis, foreign: Foreign, keys: QueueKeys
) -> None:
    foreign.waiting(b"1", b"2", b"\xff\x00")
    foreign.abandoned(b"wrong")
    foreign.buried(b"other")
    raw.hset(keys.returns, b"1", 3)
    attempts = lease_ids(queue, [b"\xff\x00", b"wrong", b"1", b"\xff\x00"], lease_s=60)
    assert list(attempts) == [
        (leased(b"\xff\x00"), True),
        (Item(QUEUE, b"wrong", State.ABANDONED), False),
        (leased(b"1")._replace(returns=3), True),
    ]
    assert raw.lrange(keys.main, 0, -1) == [b"2"]
    assert raw.lrange(keys.processing, 0, -1) == [b"1", b"\xff\x00", b"wrong"]
    assert raw.zrange(keys.buried, 0, -1) == [b"other"]
    assert lasts(raw, 60, *both(keys, b"1"))


class TestSeveralQueues:
    @pytest.fixture
    def queues(self, connection: Connection, clock: FakeClock) -> list[WorkQueue]:
        return [
            WorkQueue(connection, name, holder=HOLDER, clock=clock)
            for name in (b"high", b"normal", b"low")
        ]

    @pytest.mark.parametrize("count", [1, 3, 400])
    def test_all_from_the_first_that_has_anything(
        self, queues: list[WorkQueue], raw: Redis, count: int
    ) -> None:
        ids = numbered(count)
        Foreign(raw, b"normal").waiting(*ids)
        Foreign(raw, b"low").waiting(b"l1")
        raw.lpush(b"high:queue", b"ghost")
        assert list(lease_from(queues, count + 1, lease_s=60)) == [
            leased(item_id, b"normal") for item_id in ids
        ]
        assert raw.lrange(b"low:queue", 0, -1) == [b"l1"]

    def test_the_queues_are_shuffled_for_each_attempt(self, queues: list[WorkQueue]) -> None:
        for queue in queues:
            queue.add(b"data", b"1")
        turns = iter([2, 0, 1])

        def shuffle(order: list[QueueKeys]) -> None:
            assert [keys.name for keys in order] == [b"high", b"normal", b"low"]
            order.insert(0, order.pop(next(turns)))

        taken = [next(lease_from(queues, 1, shuffle=shuffle)).queue for _ in queues]
        assert taken == [b"low", b"high", b"normal"]

    def test_a_push_onto_any_queue_wakes_it(self, backend: Backend, raw: Redis) -> None:
        connection = backend.connect()
        queues = [WorkQueue(connection, each) for each in (b"high", b"normal", b"low")]
        with ThreadPoolExecutor(1) as threads:
            for name in (b"high", b"normal", b"low"):
                waiting = threads.submit(lambda: list(lease_from(queues, 2, wait_s=TIMEOUT_S)))
                until(lambda: raw.info("clients")["blocked_clients"] == 3)
                Foreign(raw, name).waiting(b"1", b"2", b"3")
                leased = [(item.queue, item.item_id) for item in waiting.result()]
                assert leased == [(name, b"1"), (name, b"2")]
                assert raw.lrange(name + b":queue", 0, -1) == [b"3"]
                raw.delete(name + b":queue")
                until(lambda: raw.info("clients")["blocked_clients"] == 0)

    def test_queues_on_two_connections_are_refused(self, backend: Backend) -> None:
        queues = [WorkQueue(backend.connect(), name) for name in (b"a", b"b")]
        with pytest.raises(InvalidArgument):
            lease_from(queues, 1)


def test_no_more_is_read_than_is_returned(server: PrivateServer) -> None:
    """Large items behind small ones: what crosses the limit of a call is the last that it reads."""
    with server.client() as raw:
        raw.flushall()
        sizes = [10] * 40 + [MEGABYTE] * 40
        for number, size in enumerate(sizes):
            raw.set(b"jobs:item:%d" % number, b"x" * size)
            raw.lpush(b"jobs:queue", b"%d" % number)
        before = work_of(raw).calls.get("get", 0)
        first = next(lease_from([WorkQueue(Connection(raw), b"jobs")], len(sizes)).batches)
        assert len(first.ids) == 40 + 1
        assert work_of(raw).calls["get"] - before <= 40 + 4
