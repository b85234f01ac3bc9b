"""Whole queues there and back: purge and undo, export and import into another server."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
import redis

from rwq_cli.core.keys import QueueKeys
from tests.conftest import Foreign, StartServer
from tests.driver import Rwq
from tests.long import usual
from tests.servers import PrivateServer

ITEMS = usual(5_000, long=200_000)


class Shell:
    """rwq as a process, for one server."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __call__(self, server: PrivateServer, *words: str, stdin: bytes = b"") -> bytes:
        """stdout of a run that ends well."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self._home), "LANG": "C.UTF-8"}
        rwq = Rwq(variables, self._home)
        done = rwq.process(*words, "-u", server.url, "-q", "jobs", stdin=stdin)
        assert done.code == 0, done.err
        return done.out


@pytest.fixture
def rwq(tmp_path: Path) -> Shell:
    """rwq with a state directory of its own."""
    return Shell(tmp_path)


def fill(raw: redis.Redis, items: int) -> None:
    """A queue with every healthy state and some that are not, and binary IDs and data."""
    raw.flushall()
    keys = QueueKeys(b"jobs")
    foreign = Foreign(raw, b"jobs")
    ids = [b"%d\xff" % number if number % 7 == 0 else b"%d" % number for number in range(items)]
    for first in range(0, items, 1000):
        some = ids[first : first + 1000]
        raw.mset({keys.item(i): b"\x00data\xfe" + i * (1 + len(i) % 3) for i in some})
        raw.lpush(keys.main, *some)
    for _ in range(items // 100):
        item_id = raw.lmove(keys.main, keys.processing, "RIGHT", "LEFT")
        foreign.lease(item_id, ttl_ms=None if item_id.endswith(b"3") else 3_600_000)
    foreign.abandoned(b"abandoned")
    foreign.data(b"orphan")
    for number in range(50):
        foreign.delayed(b"delayed%d" % number, 4_000_000_000_000 + number)
        foreign.buried(b"buried%d" % number)
    raw.hset(keys.returns, b"buried1", 5)


def without_times(exported: bytes) -> str:
    """A hash of an export without the moment it was made, and without the times left."""
    digest = sha256()
    for line in exported.splitlines():
        record = json.loads(line)
        record.pop("exported_ms", None)
        if record.get("lease"):
            record["lease"]["ttl_ms"] = record["lease"]["ttl_ms"] is not None
        digest.update(json.dumps(record).encode())
    return digest.hexdigest()


def test_an_export_restores_everything_on_another_server(
    server: PrivateServer, start_server: StartServer, rwq: Shell
) -> None:
    other = start_server()
    with server.client() as raw:
        fill(raw, ITEMS)
    exported = rwq(server, "export")
    rwq(other, "import", "-", stdin=exported)
    assert without_times(rwq(other, "export")) == without_times(exported)
    rwq(other, "import", "-", stdin=exported)
    assert without_times(rwq(other, "export")) == without_times(exported)


def test_large_items_are_exported_moved_and_restored(
    server: PrivateServer, start_server: StartServer, rwq: Shell
) -> None:
    other = start_server()
    with server.client() as raw:
        raw.flushall()
        for number in range(5):
            raw.set(f"jobs:item:{number}", os.urandom(1_000_000))
            raw.lpush("jobs:queue", number)
    exported = rwq(server, "export")
    rwq(other, "import", "-", stdin=exported)
    rwq(server, "rm", "--all", "--yes")
    rwq(server, "undo", "--yes")
    rwq(other, "mv", "--to", "next", "--all", "--yes")
    rwq(other, "undo", "--yes")
    for each in (server, other):
        assert without_times(rwq(each, "export")) == without_times(exported)
