"""The cluster and the Sentinels of the session for one test, and rwq with their URLs."""

from collections.abc import Iterator

import pytest

from rwq_cli.core import Connection, Server, WorkQueue, connect
from tests.clusters import PrivateCluster, PrivateSentinels, running_sentinels
from tests.driver import Rwq, until

QUEUE = "{jobs}"
# How a long wait is told.
WAITING = "rwq: waiting up to 30 s: "


@pytest.fixture
def cluster(shared_cluster: PrivateCluster) -> Iterator[PrivateCluster]:
    """Three primaries and three replicas, empty; what a test kills is started again."""
    shared_cluster.flush()
    yield shared_cluster
    for moving in list(shared_cluster.moving):
        moving.finish()
    for node in shared_cluster.nodes:
        if node.process is None:
            node.start()
    until(shared_cluster.is_ok, "the cluster")


@pytest.fixture
def crwq(bare_rwq: Rwq, cluster: PrivateCluster) -> Rwq:
    """rwq with the cluster and the queue `{jobs}` in its environment."""
    bare_rwq.variables = {**bare_rwq.variables, "RWQ_URL": cluster.url, "RWQ_QUEUE": QUEUE}
    return bare_rwq


@pytest.fixture
def connection(cluster: PrivateCluster) -> Iterator[Connection]:
    made = connect(Server(cluster.url))
    yield made
    made.close()


@pytest.fixture
def queue(connection: Connection) -> WorkQueue:
    return WorkQueue(connection, QUEUE, holder="me")


@pytest.fixture
def sentinels(shared_sentinels: PrivateSentinels) -> PrivateSentinels:
    """An empty primary, a replica and three Sentinels, for tests that kill neither server."""
    shared_sentinels.primary().call("FLUSHALL")
    for sentinel in shared_sentinels.sentinels:
        if sentinel.process is None:
            sentinel.start()
    return shared_sentinels


@pytest.fixture
def fresh_sentinels() -> Iterator[PrivateSentinels]:
    """The same, to be killed."""
    with running_sentinels() as started:
        yield started


@pytest.fixture
def srwq(bare_rwq: Rwq, sentinels: PrivateSentinels) -> Rwq:
    """rwq with the Sentinels and the queue `jobs` in its environment."""
    bare_rwq.variables = {**bare_rwq.variables, "RWQ_URL": sentinels.url, "RWQ_QUEUE": "jobs"}
    return bare_rwq
