"""`kill -9` at random instants of a large add: what was acknowledged is in, nothing is half in."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests import fork_server
from tests.conftest import until_alone
from tests.fork_server import COMMAND
from tests.servers import PrivateServer

LINES = 100_000
# A few by default; RWQ_KILLS=30 for the long run.
KILLS = int(os.environ.get("RWQ_KILLS", "3"))


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("add") / "lines"
    file.write_bytes(b"".join(b"line %d of many\n" % number for number in range(LINES)))
    return file


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_add_leaves_whole_items(number: int, lines: Path, server: PrivateServer) -> None:
    wait_s = random.uniform(0.1, 0.5)
    with server.client() as raw:
        raw.flushall()
        process = fork_server.start(
            [
                *(*COMMAND, "add", "-q", "jobs", "-u", server.url),
                *("--id-from", "line", "-o", "ids", "-f", str(lines)),
            ],
            env={"HOME": str(lines.parent), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        if number == 0:
            # Once at least in the middle, whatever the machine's speed.
            printed = process.stdout.read(50_000)
        else:
            printed = b""
            os.set_blocking(process.stdout.fileno(), False)
            deadline = time.monotonic() + wait_s
            while time.monotonic() < deadline:
                printed += process.stdout.read() or b""
                time.sleep(0.005)
        process.kill()
        os.set_blocking(process.stdout.fileno(), True)
        printed += process.stdout.read()
        process.wait()
        until_alone(raw)

        acknowledged = printed.split(b"\n")[:-1]
        listed = raw.lrange("jobs:queue", 0, -1)
        stored = {key[len(b"jobs:item:") :] for key in raw.scan_iter("jobs:item:*", count=10_000)}
        assert set(acknowledged) <= stored
        # No orphan, no ghost, no duplicate; and in the order of the file.
        assert len(listed) == len(stored)
        assert listed == [b"line %d of many" % at for at in reversed(range(len(stored)))]
        assert raw.dbsize() == len(stored) + (1 if stored else 0)
        if number == 0:
            assert 0 < len(acknowledged) < LINES
