"""`kill -9` at random instants of a large `add --delay`: each item is wholly in or not at all."""

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

LINES = 60_000
# A few by default; RWQ_KILLS=30 for the long run.
KILLS = int(os.environ.get("RWQ_KILLS", "3"))


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("add") / "lines"
    file.write_bytes(b"".join(b"line %d of many\n" % number for number in range(LINES)))
    return file


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_add_leaves_whole_delayed_items(
    number: int, lines: Path, server: PrivateServer
) -> None:
    until = ("--delay", "1h") if number % 2 else ("--at", "2150-01-01T00:00Z")
    command = [
        *(*COMMAND, "add", "-q", "jobs", "-u", server.url),
        *("--id-from", "line", "-o", "ids", "-f", str(lines), *until),
    ]
    with server.client() as raw:
        raw.flushall()
        process = fork_server.start(
            command,
            env={"HOME": str(lines.parent), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        # In the middle, whatever the machine's speed: after so much was acknowledged, and a moment.
        printed = process.stdout.read(random.randrange(1000, 300_000))
        time.sleep(random.uniform(0, 0.01))
        process.kill()
        printed += process.stdout.read()
        process.wait()
        until_alone(raw)

        acknowledged = printed.split(b"\n")[:-1]
        entries = raw.zrange("jobs:delayed", 0, -1)
        assert set(acknowledged) <= set(entries)
        assert 0 < len(acknowledged) < LINES
        # In the order of the file, and each with its data and both of its guards, and nothing else.
        assert entries == [b"line %d of many" % at for at in range(len(entries))]
        wholly_in = {b"jobs:delayed"}
        for prefix in (b"jobs:item:", b"jobs:lease:", b"jobs:leased_by_session:"):
            wholly_in.update(prefix + item_id for item_id in entries)
        assert set(raw.scan_iter(count=10_000)) == wholly_in
