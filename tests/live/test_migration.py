"""`mv --follow` to another server, killed again and again, while workers run on both.

Producers go on, workers of 0.1.5 and cleans run on both servers, and the mover is killed while
items are in transit. In the end each item was completed once, and nothing is left.
"""

import random
import subprocess
import time
from collections import Counter
from threading import Event, Thread

import pytest
from redis import Redis
from redis_work_queue import KeyPrefix, WorkQueue as UpstreamQueue

from tests.conftest import Foreign, StartServer
from tests.driver import Rwq, until
from tests.long import usual

KILLS = usual(3, long=60)
_ITEMS = 150
_LEFT = (":lease:", ":leased_by_session:", ":clean-lock", ":moved:", ":undo:server", ":history")


class Worker(Thread):
    """Completes items of one server, until it is told to stop."""

    def __init__(self, raw: Redis, stop: Event) -> None:
        super().__init__(daemon=True)
        self._raw, self._stop_working = raw, stop
        self.completed: list[str] = []
        self.start()

    def run(self) -> None:
        queue = UpstreamQueue(KeyPrefix("jobs"))
        while not self._stop_working.is_set():
            if (item := queue.lease(self._raw, 600, block=False)) is not None:
                time.sleep(random.uniform(0, 0.02))
                if queue.complete(self._raw, item):
                    self.completed.append(item.id())
            # So that there is something to move.
            time.sleep(0.01)


@pytest.mark.ci
def test_each_item_completes_once_while_a_queue_moves(
    rwq: Rwq, foreign: Foreign, start_server: StartServer
) -> None:
    there, stop = start_server(), Event()
    clean = ("clean", "deep", "--every", "0.2s", "--grace", "0.2s")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    urls = (rwq.variables["RWQ_URL"], there.url)
    cleaners = [rwq.start(*clean, variables={"RWQ_URL": url}, **quiet) for url in urls]
    added: list[str] = []
    move = ("mv", "--all", "--to", "jobs", "--to-url", there.url, "--yes")
    with there.client() as raw:
        sides: tuple[Redis, Redis] = (foreign.raw, raw)
        workers = [Worker(side, stop) for side in sides for _ in range(2)]

        def in_transit() -> list[int]:
            return [side.zcard("jobs:buried") for side in sides]

        def is_empty() -> bool:
            return not any(
                side.llen("jobs:queue") + side.llen("jobs:processing") + side.zcard("jobs:buried")
                for side in sides
            )

        for number in range(KILLS):
            ids = [b"%d-%d" % (number, each) for each in range(_ITEMS)]
            foreign.waiting(*ids)
            added += [item_id.decode() for item_id in ids]
            # Of the one before.
            left_over = in_transit()
            mover = rwq.start(*move, "--follow", **quiet)
            deadline = time.monotonic() + 20
            while in_transit() in ([0, 0], left_over) and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(random.uniform(0, 0.02))
            mover.kill()
            mover.wait()
        try:
            until(lambda: rwq(*move).code in (0, 1, 3) and is_empty())
        finally:
            stop.set()
        for worker in workers:
            worker.join()
        for cleaner in cleaners:
            cleaner.terminate()
            cleaner.wait()
        left = [
            key
            for side in sides
            for key in side.keys("*")
            if not any(map(key.decode().__contains__, _LEFT))
        ]
    assert Counter(each for worker in workers for each in worker.completed) == Counter(added)
    assert workers[2].completed, "nothing was moved"
    assert left == []
