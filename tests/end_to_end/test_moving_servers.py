"""A queue moves to another server while producers and workers run on both: books are exact."""

import random
import time
from collections import Counter
from threading import Event, Thread

import redis
from redis_work_queue import Item, KeyPrefix, WorkQueue as UpstreamQueue

from tests.conftest import StartServer
from tests.driver import Rwq, until
from tests.long import usual

# How often the move is killed, and how many items each producer adds.
KILLS = usual(3, long=30)
ITEMS = usual(1500, long=15_000)


class Side:
    """A server with a producer and two workers of upstream's, which begin at once."""

    def __init__(self, raw: redis.Redis, name: str) -> None:
        self.raw = raw
        self.added: list[str] = []
        self.completed: list[str] = []
        self.is_over = Event()
        self._name = name
        targets = (self._produce, self._work, self._work)
        self._threads = [Thread(target=target) for target in targets]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        queue = UpstreamQueue(KeyPrefix("jobs"))
        for number in range(ITEMS):
            item_id = f"{self._name}-{number}"
            queue.add_item(self.raw, Item(b"data", id=item_id))
            self.added.append(item_id)
            time.sleep(0.0005)

    def _work(self) -> None:
        queue = UpstreamQueue(KeyPrefix("jobs"))
        while not self.is_over.is_set():
            item = queue.lease(self.raw, 600, block=False)
            if item is None:
                time.sleep(0.002)
            elif queue.complete(self.raw, item):
                self.completed.append(item.id())
            # Slower than the producers, so that there is something to move.
            time.sleep(0.004)

    def end(self) -> None:
        """End the workers."""
        self.is_over.set()
        for thread in self._threads:
            thread.join()


def test_each_item_is_completed_once(rwq: Rwq, start_server: StartServer) -> None:
    here, there = start_server(), start_server()
    rwq.variables = {**rwq.variables, "RWQ_URL": here.url}
    words = ("mv", "--all", "--to", "jobs", "--to-url", there.url, "--yes", "-Q")
    with here.client() as old, there.client() as new:
        sides = (Side(old, "old"), Side(new, "new"))
        for _ in range(KILLS):
            process = rwq.start(*words, "--follow")
            moved = new.llen("jobs:queue")
            until(lambda moved=moved: new.llen("jobs:queue") != moved)
            time.sleep(random.uniform(0.1, 0.6))
            process.kill()
            process.communicate()
        follower = rwq.start(*words, "--follow")
        until(lambda: all(len(side.added) == ITEMS for side in sides))
        until(lambda: not old.keys("jobs:item:*"))
        until(lambda: not new.keys("jobs:item:*"))
        follower.terminate()
        assert follower.communicate()[0] == b""
        for side in sides:
            side.end()
        completed = Counter(item_id for side in sides for item_id in side.completed)
        assert completed == Counter(item_id for side in sides for item_id in side.added)
        assert min(len(side.completed) for side in sides) > 0
        print("completed", [len(side.completed) for side in sides])
        for raw in (old, new):
            assert not raw.exists("jobs:queue", "jobs:processing", "jobs:buried", "jobs:delayed")
