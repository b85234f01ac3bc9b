"""Following the keys of a queue: whether rates are true, and what they cost."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.filling import PAYLOAD, QUEUE, new_ids
from benchmarks.results import Sample, Unit
from benchmarks.turn import Case, Turn

_PER_S, _BATCH = 10_000, 100
_PERCENT = Unit("%", 100)
_EACH = Unit("µs each", 1e6, 1)
# How long followers go on once the load has ended.
_LAST_TICKS_S = 2.5


def _own_load(socket: str, seconds: float) -> int:
    """Add, lease and complete 10,000 items a second with rwq; return how many it were."""
    from rwq_cli.core import NewItem, Server, WorkQueue, connect

    queue = WorkQueue(connect(Server(f"unix://{socket}")), QUEUE)
    began_s = time.monotonic()
    batches = round(seconds * _PER_S / _BATCH)
    for number in range(batches):
        list(queue.add_many(NewItem(item_id, PAYLOAD) for item_id in new_ids(_BATCH)))
        list(queue.complete_many([item.item_id for item in queue.lease_many(_BATCH)]))
        time.sleep(max(0.0, began_s + number * _BATCH / _PER_S - time.monotonic()))
    return batches * _BATCH


def _upstream_load(socket: str, seconds: float) -> int:
    """Add, lease and complete items with redis-work-queue 0.1.5 as fast as it can."""
    from redis import Redis
    from redis_work_queue import Item, KeyPrefix, WorkQueue

    server, queue, number = Redis(unix_socket_path=socket), WorkQueue(KeyPrefix(QUEUE)), 0
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        queue.add_item(server, Item(PAYLOAD))
        item = queue.lease(server, 60, block=False)
        number += item is not None and queue.complete(server, item)
    return number


class _Follower:
    """A process that shows rates, from its first tick on."""

    def __init__(self, turn: Turn) -> None:
        command = turn.command("stats", "--fast", "--watch", "1s", "-o", "jsonl")
        # It notes that the queue is empty yet.
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self._lines = self._process.stdout
        self._last_ms = json.loads(self._lines.readline())["at_ms"]

    def end(self) -> tuple[float, float]:
        """End it; return how many items it saw done, and its CPU time, seconds."""
        self._process.terminate()
        done = 0.0
        for record in map(json.loads, self._lines):
            done += record["done_per_second"] * (record["at_ms"] - self._last_ms) / 1000
            self._last_ms = record["at_ms"]
        _, _, used = os.wait4(self._process.pid, 0)
        return done, used.ru_utime + used.ru_stime


def _run(
    turn: Turn, load: Callable[[str, float], int], processes: int, followers: int
) -> tuple[int, float, float, float]:
    """Run a load; return how many items it did, the server's CPU time for one, the largest error of
    a follower, and its CPU time as a share of a processor."""
    turn.server.empty()
    seconds = turn.size(10)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        following = [_Follower(turn) for _ in range(followers)]
        cpu_s = turn.server.cpu_s()
        loads = [pool.submit(load, str(turn.server.socket), seconds) for _ in range(processes)]
        items = sum(future.result() for future in loads)
        cpu_s = turn.server.cpu_s() - cpu_s
    time.sleep(_LAST_TICKS_S * bool(following))
    seen = [follower.end() for follower in following]
    error = max((abs(done - items) / items for done, _ in seen), default=0.0)
    used_s = max((used_s for _, used_s in seen), default=0.0)
    return items, cpu_s / items, error, used_s / seconds


def _follow(turn: Turn) -> Iterator[Sample]:
    alone = _run(turn, _own_load, 1, 0)
    for followers, limit in ((1, 2.0), (10, 8.0)):
        _, server_s, error, share = _run(turn, _own_load, 1, followers)
        title = f"{_PER_S:,} items/s, {followers} stats --watch"
        yield Sample(f"{title}: CPU of one", share, _PERCENT, 0.2)
        yield Sample(f"{title}: error of done/s", error, _PERCENT, 0.02)
        yield Sample(f"{title}: server", server_s, _EACH, limit, "without", alone[1])
    alone = _run(turn, _upstream_load, 3, 0)
    items, server_s, error, _ = _run(turn, _upstream_load, 3, 1)
    title = "3 processes of upstream 0.1.5, stats --watch"
    yield Sample(f"{title}: error of done/s", error, _PERCENT, 0.02)
    yield Sample(f"{title}: server", server_s, _EACH, 2.5, "without", alone[1])
    seconds = turn.size(10)
    yield Sample(title, seconds / items, _EACH, 2.0, "without", seconds / alone[0])


CASES = [Case("follow", "following 10,000 items a second", _follow, rounds=2)]
