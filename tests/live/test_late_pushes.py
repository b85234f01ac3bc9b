"""Foreign pushes and pops between two commands of ours.

A producer that stalls between its SETNX and its LPUSH may push at any time, also after we are done;
that is the producer's. But none of our own commands may turn what it finds into a duplicate or a
ghost.
"""

from collections.abc import Iterator

import pytest
import redis

from rwq_cli.core import NewItem, WorkQueue
from rwq_cli.core.repair import repairs
from tests.live.foreign import Books, Upstream
from tests.live.raw_keys import read_raw_keys
from tests.live.watching import InterferingClock, WatchedConnection
from tests.servers import PrivateServer

QUEUE = b"jobs"


@pytest.fixture
def raw(live_server: PrivateServer) -> Iterator[redis.Redis]:
    with live_server.client() as client:
        yield client


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.fixture
def connection(
    live_server: PrivateServer, raw: redis.Redis, books: Books
) -> Iterator[WatchedConnection]:
    made = WatchedConnection(live_server.client(protocol=2), raw, QUEUE, books)
    yield made
    made.close()


@pytest.fixture
def clock() -> InterferingClock:
    return InterferingClock()


@pytest.fixture
def queue(connection: WatchedConnection, clock: InterferingClock) -> WorkQueue:
    return WorkQueue(connection, QUEUE, clock=clock)


def test_an_orphan_that_its_producer_pushes_late_is_listed_once(
    queue: WorkQueue, connection: WatchedConnection, raw: redis.Redis, books: Books
) -> None:
    """The lists were read, and the guard keeps cleaners away, but not the producer."""
    producer = Upstream(raw, QUEUE, old=False, books=books).produce(b"id", b"data")
    next(producer)
    connection.begin(lambda _, script: [*producer] if script == "repair" else None)

    list(queue.deep_clean(grace_s=0))

    assert read_raw_keys(raw, QUEUE).main == (b"id",)


def test_completing_many_leaves_no_ghost_of_a_late_push(
    queue: WorkQueue, connection: WatchedConnection, raw: redis.Redis, books: Books
) -> None:
    """Of more than thirty IDs, those that main was seen not to hold leave processing in pages."""
    producer = Upstream(raw, QUEUE, old=False, books=books).produce(b"id", b"data")
    next(producer)
    list(queue.deep_clean(grace_s=0))
    assert queue.lease() is not None
    connection.begin(lambda _, script: [*producer] if script == "complete" else None)

    list(queue.complete_many([b"id", *(b"never-%d" % number for number in range(40))]))

    assert read_raw_keys(raw, QUEUE).main == ()


def test_an_item_twice_in_processing_is_returned_once(
    queue: WorkQueue,
    clock: InterferingClock,
    raw: redis.Redis,
    books: Books,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An item that was copied by hand is leased a second time in the grace period."""
    monkeypatch.setattr(repairs, "_REPAIR_ITEMS", 3)
    worker = Upstream(raw, QUEUE, old=False, books=books).work()
    queue.add(b"data", b"id")
    raw.lpush(b"jobs:processing", b"id", *(b"ghost-%d" % number for number in range(40)))
    clock.during = lambda: next(worker)

    list(queue.light_clean())

    seen = read_raw_keys(raw, QUEUE)
    assert (seen.main, seen.processing) == ((b"id",), ())


def test_a_push_in_the_grace_period_is_found_anywhere_in_the_list(
    queue: WorkQueue, clock: InterferingClock, raw: redis.Redis, books: Books
) -> None:
    producer = Upstream(raw, QUEUE, old=False, books=books).produce(b"id", b"data")
    next(producer)
    later = [NewItem(b"later-%d" % number, b"") for number in range(3000)]

    def push_all() -> None:
        list(producer)
        raw.mset({b"jobs:item:" + item.item_id: item.data for item in later})
        raw.lpush(b"jobs:queue", *(item.item_id for item in later))
        books.live.update((item.item_id, item.data) for item in later)

    clock.during = push_all

    assert list(queue.deep_clean()) == []

    assert read_raw_keys(raw, QUEUE).main[-2:] == (b"later-0", b"id")
    assert raw.llen(b"jobs:queue") == 3001


def test_an_orphan_that_its_worker_deletes_late_leaves_no_ghost(
    queue: WorkQueue, connection: WatchedConnection, raw: redis.Redis, books: Books
) -> None:
    """A worker of 0.1 that stalled between its LREM and its DEL goes on while it is guarded."""
    worker = Upstream(raw, QUEUE, old=True, books=books).work()
    queue.add(b"data", b"id")
    for _ in range(4):
        next(worker)
    raw.delete(b"jobs:leased_by_session:id")
    connection.begin(lambda _, script: next(worker) if script == "repair" else None)

    assert list(queue.deep_clean()) == []

    seen = read_raw_keys(raw, QUEUE)
    assert (seen.main, seen.data, seen.leases) == ((), {}, {})
