"""`kill -9` in the middle of `complete - --result`: completed with its result, or neither."""

import random
import subprocess
import time
from pathlib import Path

import pytest
import redis

from rwq_cli.core.keys import QueueKeys
from tests import fork_server
from tests.conftest import until_alone
from tests.fork_server import COMMAND
from tests.servers import PrivateServer

KEYS = QueueKeys(b"jobs")
ITEMS = 8_000
IDS = [b"%05d" % number for number in range(ITEMS)]


@pytest.mark.parametrize(
    ("listed_in", "result_bytes"),
    [(KEYS.main, 20_000), (KEYS.processing, 0)],
    ids=["waiting", "processing"],
)
def test_a_killed_complete_keeps_results_of_completed_items_only(
    server: PrivateServer, tmp_path: Path, listed_in: bytes, result_bytes: int
) -> None:
    ids, result = tmp_path / "ids", tmp_path / "result"
    ids.write_bytes(b"".join(item_id + b"\n" for item_id in random.sample(IDS, ITEMS)))
    result.write_bytes(b"r" * result_bytes)
    with server.client() as raw:
        raw.flushall()
        raw.config_resetstat()
        raw.mset({KEYS.item(item_id): b"data of " + item_id for item_id in IDS})
        raw.lpush(listed_in, *IDS)
        with ids.open("rb") as stdin:
            variables = {"RWQ_URL": server.url, "RWQ_QUEUE": "jobs", "HOME": str(tmp_path)}
            process = fork_server.start(
                [*COMMAND, "complete", "-", "--result", str(result)],
                env={**variables, "LANG": "C.UTF-8"},
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # The server's own count of what it has written says when it is at work.
            until = random.randint(1, ITEMS)
            while process.poll() is None and hash_writes(raw) < until:
                time.sleep(0.001)
            process.kill()
            process.wait()
        until_alone(raw)
        left = set(raw.lrange(listed_in, 0, -1))
        stored = {key[len(KEYS.item_prefix) :] for key in raw.scan_iter("jobs:item:*", 10_000)}
        kept = {key[len(KEYS.result_prefix) :] for key in raw.scan_iter("jobs:result:*", 10_000)}
        assert left == stored
        assert kept == set(IDS) - stored
        assert kept
        for item_id in random.sample(sorted(kept), min(50, len(kept))):
            assert raw.hget(KEYS.result(item_id), "status") == b"completed"
            assert raw.hstrlen(KEYS.result(item_id), "result") == result_bytes
            assert 0 < raw.pttl(KEYS.result(item_id)) <= 3_600_000
        raw.flushall()


def hash_writes(raw: redis.Redis) -> int:
    """How often a field of a result was written since the server was filled."""
    return int(raw.info("commandstats").get("cmdstat_hset", {}).get("calls", 0))
