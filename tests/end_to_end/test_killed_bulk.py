"""`kill -9` in the middle of every bulk command beside a worker: nothing is lost or half done."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
import redis
from redis_work_queue import Item, KeyPrefix, WorkQueue as UpstreamQueue

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.inspect.survey import Survey, survey
from rwq_cli.core.keys import QueueKeys
from tests import fork_server
from tests.fork_server import COMMAND
from tests.servers import PrivateServer

# One of each command by default; RWQ_KILLS=30 for the long run, of longer commands.
KILLS = int(os.environ.get("RWQ_KILLS", "3"))
ROUNDS = max(1, KILLS // 3)
ITEMS = 4_000 if KILLS <= 3 else 8_000
KEYS = QueueKeys(b"jobs")
IDS = [b"%05d" % number for number in range(ITEMS)]


def fill(
    raw: redis.Redis,
    *,
    listed_in: bytes | None,
    leased: bool = False,
    buried: bool = False,
    half_returned: bool = False,
) -> None:
    """All items, in a list or in none; half of them may have been returned once."""
    raw.flushall()
    raw.mset({KEYS.item(item_id): b"data of " + item_id for item_id in IDS})
    if listed_in is not None:
        raw.lpush(listed_in, *IDS)
    if half_returned:
        raw.hset(KEYS.returns, mapping=dict.fromkeys(IDS[::2], 1))
    if buried:
        raw.zadd(KEYS.buried, {item_id: at + 1 for at, item_id in enumerate(IDS)})
    if leased or buried:
        holder, left_ms = (b"somebody", 600_000) if leased else (b"rwq-buried:x", None)
        with raw.pipeline(transaction=False) as pipe:
            for item_id in IDS:
                pipe.set(KEYS.lease(item_id), holder, px=left_ms)
                pipe.set(KEYS.old_lease(item_id), holder, px=left_ms)
            pipe.execute()


COMMANDS = {
    "lease": (("lease", "-n", str(ITEMS), "-o", "ids"), {"listed_in": KEYS.main}),
    "complete": (("complete", "-"), {"listed_in": KEYS.processing, "leased": True}),
    "release": (
        ("release", "-", "--force", "--yes"),
        {"listed_in": KEYS.processing, "leased": True},
    ),
    "bury": (("bury", "--all"), {"listed_in": KEYS.main}),
    "bury what is leased": (
        ("bury", "-", "--force", "--yes"),
        {"listed_in": KEYS.processing, "leased": True},
    ),
    "delay": (("release", "-", "--delay", "1h"), {"listed_in": KEYS.main}),
    "kick": (("kick", "--all"), {"listed_in": None, "buried": True}),
    "touch": (("touch", "-"), {"listed_in": KEYS.processing, "leased": True}),
    "light clean": (("clean", "light", "--grace", "0"), {"listed_in": KEYS.processing}),
    "deep clean": (("clean", "deep", "--grace", "0"), {"listed_in": None}),
    "light clean that buries": (
        ("clean", "light", "--grace", "0", "--bury-after", "1"),
        {"listed_in": KEYS.processing, "half_returned": True},
    ),
    "deep clean that buries": (
        ("clean", "deep", "--grace", "0", "--bury-after", "1"),
        {"listed_in": None, "half_returned": True},
    ),
}


class Worker:
    """One of upstream's, beside the command: adds items of its own, leases and completes."""

    def __init__(self, raw: redis.Redis) -> None:
        self._raw = raw
        self._queue = UpstreamQueue(KeyPrefix("jobs"))
        self.completed: list[bytes] = []
        self.added: list[bytes] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While the block runs."""
        done = Event()
        thread = Thread(target=self._work, args=(done,))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _work(self, done: Event) -> None:
        while not done.is_set():
            item_id = b"own %d" % len(self.added)
            self._queue.add_item(self._raw, Item(b"data of " + item_id, id=item_id.decode()))
            self.added.append(item_id)
            item = self._queue.lease(self._raw, 600, block=False)
            if item is not None and self._queue.complete(self._raw, item):
                self.completed.append(str(item.id()).encode())
            time.sleep(0.001)


@pytest.mark.parametrize("name", [name for name in COMMANDS for _ in range(ROUNDS)])
def test_a_killed_command_loses_nothing(name: str, server: PrivateServer, tmp_path: Path) -> None:
    words, shape = COMMANDS[name]
    ids = tmp_path / "ids"
    ids.write_bytes(b"".join(item_id + b"\n" for item_id in random.sample(IDS, ITEMS)))
    with server.client() as raw:
        raw.config_resetstat()
        fill(raw, **shape)
        worker = Worker(raw)
        with ids.open("rb") as stdin, worker.at_work():
            process = fork_server.start(
                [*COMMAND, *words, "-q", "jobs", "-u", server.url],
                env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"},
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # The server's own count of our calls says when it is at work.
            until = random.randint(2, ITEMS // 650)
            while process.poll() is None and script_calls(raw) < until:
                time.sleep(0.002)
            process.kill()
            process.wait()
        check(raw, name, set(worker.added), worker.completed)


def script_calls(raw: redis.Redis) -> int:
    """How many scripts ran since the server was filled; upstream's worker uses none."""
    return int(raw.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def check(raw: redis.Redis, name: str, added: set[bytes], completed: list[bytes]) -> None:
    """Nothing lost, nothing twice, and nothing broken that was not broken before."""
    known = {*IDS, *added}
    stored = {key[len(KEYS.item_prefix) :] for key in raw.scan_iter("jobs:item:*", count=10_000)}
    assert len(set(completed)) == len(completed)
    assert stored <= known
    gone = known - stored
    assert set(completed) <= gone
    if name != "complete":
        assert gone == set(completed)
    for item_id in random.sample(sorted(stored), min(100, len(stored))):
        assert raw.get(KEYS.item(item_id)) == b"data of " + item_id
    found = survey(WorkQueue(Connection(raw), KEYS.name))
    # An item that was returned and completed by the worker keeps its count until the next clean.
    assert set(found.stale_returns) <= set(completed)
    expected = Survey(stale_returns=found.stale_returns)
    if name.startswith("deep clean"):
        # What was not returned yet is still an orphan, or is claimed for two minutes.
        expected.orphaned, expected.unlisted = found.orphaned, found.unlisted
    assert found == expected
    check_scheduled(raw)
    if name.endswith("clean that buries"):
        check_buried(raw)
    # Whatever is left, workers and cleans bring to an end: each once.
    finish(raw, stored)


def check_scheduled(raw: redis.Redis) -> None:
    """What is delayed or buried has both guards and is in no list; nothing else has a guard.

    If the worker had popped an item, and leased it only after it was scheduled, its lease replaces
    the guard under the old name.
    """
    for zset, prefix in ((KEYS.buried, b"rwq-buried:"), (KEYS.delayed, b"rwq-delayed:")):
        members = set(raw.zrange(zset, 0, -1))
        listed = {*raw.lrange(KEYS.main, 0, -1), *raw.lrange(KEYS.processing, 0, -1)}
        assert members.isdisjoint(listed)
        for lease_prefix in (KEYS.lease_prefix, KEYS.old_lease_prefix):
            guarded = set()
            for page in pages(raw, lease_prefix + b"*"):
                for key, holder in zip(page, raw.mget(page), strict=True):
                    if (holder or b"").startswith(prefix):
                        guarded.add(key[len(lease_prefix) :])
            assert guarded <= members
            of_worker = len(members - guarded)
            assert of_worker <= (2 if lease_prefix == KEYS.old_lease_prefix else 0)


def check_buried(raw: redis.Redis) -> None:
    """Only items that were returned before, each behind its whole guard; kicked, it waits again."""
    buried = raw.zrange(KEYS.buried, 0, -1)
    assert set(buried) <= set(IDS[::2])
    guarded = b"rwq-buried:returned 1 time"
    holders = {key: raw.get(key) for page in guards(buried) for key in page}
    assert set(holders.values()) <= {guarded}
    counts = raw.hgetall(KEYS.returns)
    assert {counts[item_id] for item_id in buried} <= {b"1"}
    assert not {b"2", b"3"} & set(counts.values())
    for _ in WorkQueue(Connection(raw), KEYS.name).kick_many(buried):
        pass
    assert raw.exists(KEYS.buried) == 0


def guards(ids: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The keys of each ID's guard."""
    return ((KEYS.lease(item_id), KEYS.old_lease(item_id)) for item_id in ids)


def finish(raw: redis.Redis, stored: set[bytes]) -> None:
    """Release what is scheduled, end all leases, clean, and complete everything."""
    queue = WorkQueue(Connection(raw), KEYS.name)
    scheduled = [*raw.zrange(KEYS.buried, 0, -1), *raw.zrange(KEYS.delayed, 0, -1)]
    assert len(list(queue.release_many(scheduled, force=True))) == len(scheduled)
    for pattern in (b"jobs:lease:*", b"jobs:leased_by_session:*"):
        for page in pages(raw, pattern):
            raw.delete(*page)
    for _ in queue.deep_clean(grace_s=0):
        pass
    taken = [item.item_id for item in queue.lease_many(2 * ITEMS)]
    assert len(taken) == len(set(taken))
    assert set(taken) == stored
    for _ in queue.complete_many(taken):
        pass
    assert raw.dbsize() == 0


def pages(raw: redis.Redis, pattern: bytes) -> Iterator[list[bytes]]:
    """The keys that match, a thousand at a time."""
    keys = list(raw.scan_iter(pattern, count=10_000))
    for start in range(0, len(keys), 1000):
        yield keys[start : start + 1000]
