"""A producer that stalls between its SETNX and its LPUSH, and pushes between two commands of ours.

The push itself may come at any time, also after we are done; that is the producer's. But none of
our own commands may turn what it finds into a duplicate or a ghost.
"""

from collections.abc import Iterator

import pytest
import redis

from rwq_cli.core import WorkQueue
from tests.live.foreign import Books, Upstream
from tests.live.raw_keys import read_raw_keys
from tests.live.watching import MeddledClock, WatchedConnection
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
def queue(connection: WatchedConnection) -> WorkQueue:
    return WorkQueue(connection, QUEUE, clock=MeddledClock())


def test_an_orphan_that_its_producer_pushes_after_all_is_not_pushed_again(
    queue: WorkQueue, connection: WatchedConnection, raw: redis.Redis, books: Books
) -> None:
    """The lists were read, and the guard keeps cleaners away, but not the producer."""
    producer = Upstream(raw, QUEUE, old=False, books=books).produce(b"id", b"data")
    next(producer)
    connection.begin(lambda _, script: [*producer] if script == "settle_orphans" else None)

    list(queue.deep_clean(grace_s=0))

    assert read_raw_keys(raw, QUEUE).main == (b"id",)


def test_completing_many_leaves_no_ghost_of_an_item_pushed_after_all(
    queue: WorkQueue, connection: WatchedConnection, raw: redis.Redis, books: Books
) -> None:
    """Of more than thirty IDs, those that main was seen not to hold leave processing in pages."""
    producer = Upstream(raw, QUEUE, old=False, books=books).produce(b"id", b"data")
    next(producer)
    list(queue.deep_clean(grace_s=0))
    assert queue.lease() is not None
    connection.begin(lambda _, script: [*producer] if script == "complete" else None)

    list(queue.complete([b"id", *(b"never-%d" % number for number in range(40))]))

    assert read_raw_keys(raw, QUEUE).main == ()
