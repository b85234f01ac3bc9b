"""What the tests of the command line share: a real server, raw keys, and rwq pointed at them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.cli.driver import Rwq
from tests.conftest import Foreign
from tests.servers import PrivateServer

QUEUE = b"jobs"


@pytest.fixture
def raw(server: PrivateServer) -> Iterator[redis.Redis]:
    """A plain client of the server, which is empty when a test begins."""
    with server.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def foreign(raw: redis.Redis) -> Foreign:
    """Other workers, and their crashes, on the queue `jobs`."""
    return Foreign(raw, QUEUE)


@pytest.fixture
def bare_rwq(tmp_path: Path) -> Iterator[Rwq]:
    """rwq without a server or a queue in its environment."""
    rwq = Rwq(
        {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "USER": "tester",
            "RWQ_SESSION": "s1",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        },
        tmp_path,
    )
    yield rwq
    rwq.close()


@pytest.fixture
def rwq(bare_rwq: Rwq, server: PrivateServer, raw: redis.Redis) -> Rwq:  # noqa: ARG001
    """rwq with RWQ_URL and RWQ_QUEUE set to the empty server and the queue `jobs`."""
    bare_rwq.variables = {**bare_rwq.variables, "RWQ_URL": server.url, "RWQ_QUEUE": "jobs"}
    return bare_rwq
