"""Moving items to a queue in another slot: in order, guarded, and safe to kill at any point."""

import pytest

from rwq_cli.core import Connection, WorkQueue
from tests.cluster.conftest import QUEUE
from tests.clusters import PrivateCluster
from tests.driver import Rwq

TO = "{other}"


@pytest.fixture
def other(connection: Connection) -> WorkQueue:
    return WorkQueue(connection, TO, holder="me")


@pytest.fixture(autouse=True)
def in_two_slots(cluster: PrivateCluster) -> None:
    cluster.separate(QUEUE, TO)


def ids(queue: WorkQueue) -> list[bytes]:
    """The waiting IDs, the next first."""
    return list(reversed(queue.call("LRANGE", queue.keys.main, 0, -1)))


def test_items_keep_their_order_and_their_returns(
    crwq: Rwq, queue: WorkQueue, other: WorkQueue
) -> None:
    other.add("there", "there")
    for number in range(600):
        queue.add(b"data %d" % number, b"%d" % number)
    queue.call("HSET", queue.keys.returns, b"7", 3)
    result = crwq("mv", "--to", TO, "--all", "--yes", "-o", "json")
    assert (result.code, result.json["moved"]) == (0, 600), result
    assert ids(queue) == []
    assert ids(other) == [b"there", *(b"%d" % number for number in range(600))]
    assert other.call("HGET", other.keys.returns, b"7") == b"3"
    assert (other.lengths().buried, queue.lengths().buried) == (0, 0)
    assert list(other.lease_many(2))[1].data == b"data 0"


def test_undo_brings_them_back(crwq: Rwq, queue: WorkQueue, other: WorkQueue) -> None:
    for item_id in ("a", "b"):
        queue.add("x", item_id)
    assert crwq("mv", "--to", TO, "--all", "--yes", "-Q").code == 0
    assert crwq("undo", "--yes", "-Q").code == 0
    assert (ids(queue), ids(other)) == ([b"a", b"b"], [])
