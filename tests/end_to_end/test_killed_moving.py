"""`kill -9` in the middle of import, rm, mv and purge: nothing is lost, nothing is half done."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import BinaryIO

import pytest
import redis

from tests import processes
from tests.conftest import until_alone
from tests.long import usual
from tests.processes import COMMAND
from tests.servers import PrivateServer

ITEMS = 8_000
KILLS = usual(1, long=15)

IDS = [b"%d" % number for number in range(ITEMS)]


def fill(raw: redis.Redis) -> None:
    """Waiting items."""
    raw.flushall()
    for first in range(0, ITEMS, 1000):
        some = IDS[first : first + 1000]
        raw.mset({b"jobs:item:" + item_id: b"data of " + item_id for item_id in some})
        raw.lpush("jobs:queue", *some)


def command(
    server: PrivateServer, home: Path, *words: str, stdout: int | BinaryIO = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """Start rwq; what it says is thrown away."""
    return processes.start(
        [*COMMAND, *words, "-u", server.url, "-q", "jobs"],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "XDG_STATE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
    )


def kill_in_the_middle(
    process: "subprocess.Popen[bytes]", raw: redis.Redis, key: str, start: int
) -> None:
    """Kill it once it has changed the length of a list, a random while later."""
    while raw.llen(key) == start and process.poll() is None:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    process.wait()
    until_alone(raw)


def held(raw: redis.Redis, queue: str) -> list[bytes]:
    """The IDs of a queue's items, next first; each has its data and its entry, and no more."""
    listed: list[bytes] = raw.lrange(f"{queue}:queue", 0, -1)[::-1]
    prefix = f"{queue}:item:".encode()
    stored = {key[len(prefix) :] for key in raw.scan_iter(prefix + b"*", count=10_000)}
    assert len(listed) == len(set(listed))
    assert stored == set(listed)
    return listed


def written_down(home: Path) -> set[bytes]:
    """The IDs that stand in undo files."""
    found = set()
    for file in (home / "rwq" / "undo").glob("*.jsonl"):
        for line in file.read_bytes().splitlines(keepends=True)[1:]:
            record = json.loads(line) if line.endswith(b"\n") else {}
            if "data" in record:
                found.add(record["id"].encode())
    return found


def exported(server: PrivateServer, folder: Path) -> Path:
    """A file with an export of the queue."""
    file = folder / "export"
    with file.open("wb") as out:
        assert command(server, folder, "export", stdout=out).wait() == 0
    return file


@pytest.mark.parametrize(
    "verb",
    ["rm --id-glob *[0-4] --yes", "purge --yes", "rm --all --yes", "complete --all --yes"],
)
@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_removal_can_be_undone(
    verb: str, number: int, server: PrivateServer, tmp_path: Path
) -> None:
    assert number >= 0
    with server.client() as raw:
        fill(raw)
        process = command(server, tmp_path, *verb.split())
        kill_in_the_middle(process, raw, "jobs:queue", ITEMS)
        left = held(raw, "jobs")
        known = set(left)
        assert left == [item_id for item_id in IDS if item_id in known]
        assert known | written_down(tmp_path) == set(IDS)
        assert command(server, tmp_path, "undo", "--yes").wait() == 0
        assert sorted(held(raw, "jobs")) == sorted(IDS)


def complete_all(raw: redis.Redis) -> set[bytes]:
    """Complete every item of the queue, and return which."""
    there = set(held(raw, "jobs"))
    for item_id in there:
        raw.delete(b"jobs:item:" + item_id)
    raw.delete("jobs:queue")
    return there


@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("verb", ["purge --yes", "rm --all --yes"])
def test_a_killed_undo_can_be_run_again(
    verb: str, number: int, server: PrivateServer, tmp_path: Path
) -> None:
    """What came back and is completed before the next undo stays completed, to the last item."""
    assert number >= 0
    with server.client() as raw:
        fill(raw)
        assert command(server, tmp_path, *verb.split()).wait() == 0
        kill_in_the_middle(command(server, tmp_path, "undo", "--yes"), raw, "jobs:queue", 0)
        there = complete_all(raw)
        # If it was faster than the kill, nothing is left to undo.
        assert command(server, tmp_path, "undo", "--yes").wait() == 0 or len(there) == ITEMS
        back = set(held(raw, "jobs"))
        assert (there | back, there & back) == (set(IDS), set())
        assert raw.keys("jobs:undo:*") == []


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_import_restores_nothing_that_was_completed_meanwhile(
    number: int, server: PrivateServer, tmp_path: Path
) -> None:
    assert number >= 0
    with server.client() as raw:
        fill(raw)
        file = exported(server, tmp_path)
        raw.flushall()
        kill_in_the_middle(command(server, tmp_path, "import", str(file)), raw, "jobs:queue", 0)
        there = complete_all(raw)
        interrupted = bool(raw.keys("jobs:undo:*"))
        assert command(server, tmp_path, "import", str(file)).wait() == 0
        back = set(held(raw, "jobs"))
        if interrupted:
            assert (there | back, there & back) == (set(IDS), set())
        assert raw.keys("jobs:undo:*") == []
