"""Fifty items on a server, behind Sentinel, or on a cluster; and rwq."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis

from rwq_cli.core import Connection, WorkQueue
from tests.clusters import PrivateCluster, PrivateSentinels
from tests.conftest import StartServer
from tests.driver import Rwq
from tests.faults.stage import FarQueue, Stage, rwq_at


@pytest.fixture
def stage(rwq: Rwq, raw: redis.Redis) -> Stage:
    return Stage(rwq, raw)


@pytest.fixture
def stage_on(request: pytest.FixtureRequest, bare_rwq: Rwq) -> Iterator[Callable[[str], Stage]]:
    """Makes a stage on a `server`, behind `sentinel`, on a `cluster`, or on two `servers`."""
    with ExitStack() as clients:

        def behind_sentinel() -> Stage:
            sentinels: PrivateSentinels = request.getfixturevalue("shared_sentinels")
            raw = clients.enter_context(sentinels.primary().client())
            return Stage(rwq_at(bare_rwq, sentinels.url), raw)

        def on_cluster() -> Stage:
            cluster: PrivateCluster = request.getfixturevalue("shared_cluster")
            cluster.flush()
            near, far = "{jobs}", "{other}"
            cluster.separate(near, far)
            far_raw = clients.enter_context(cluster.client(far))
            far_queue = WorkQueue(Connection(far_raw), far.encode())
            return Stage(
                rwq_at(bare_rwq, cluster.url, near),
                clients.enter_context(cluster.client(near)),
                name=near.encode(),
                other=b"{jobs}:other",
                far=FarQueue(far_raw, far.encode(), far_queue),
            )

        def on_servers() -> Stage:
            start_server: StartServer = request.getfixturevalue("start_server")
            server, far = start_server(), start_server()
            far_raw = clients.enter_context(far.client())
            far_queue = WorkQueue(Connection(far_raw), b"jobs")
            return Stage(
                rwq_at(bare_rwq, server.url),
                clients.enter_context(server.client()),
                far=FarQueue(far_raw, b"jobs", far_queue, far.url),
            )

        def make(kind: str) -> Stage:
            if kind == "server":
                made: Stage = request.getfixturevalue("stage")
                return made
            kinds = {"sentinel": behind_sentinel, "cluster": on_cluster, "servers": on_servers}
            return kinds[kind]()

        yield make
