"""Four workers lease and complete while a slot moves, often with `--long`, or a primary dies."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from rwq_cli.core import NewItem, Server, ServerError, Status, WorkQueue, connect
from tests.cluster.conftest import QUEUE
from tests.clusters import Moving, PrivateCluster
from tests.driver import until
from tests.long import usual

PROGRAMS = 4
MOVES = usual(0, long=30)


class Load:
    """Workers with connections of their own, and the items that were added for them.

    Attributes:
        lost: Their calls that had no reply.
    """

    def __init__(self, url: str, name: str, threads: ThreadPoolExecutor) -> None:
        self.queue = WorkQueue(connect(Server(url)), name)
        self.added: list[bytes] = []
        self.lost: list[ServerError] = []
        self._completed: list[bytes] = []
        self._stop = Event()
        queues = [WorkQueue(connect(Server(url)), name) for _ in range(PROGRAMS)]
        self._workers = [threads.submit(self._work, queue) for queue in queues]

    def _work(self, queue: WorkQueue) -> None:
        while not self._stop.is_set():
            try:
                for item in queue.lease_many(3, for_s=2.0, wait_s=0.2):
                    if queue.complete(item.item_id)[0].status is Status.COMPLETED:
                        self._completed.append(item.item_id)
            except ServerError as error:
                if not error.in_doubt:
                    raise
                self.lost.append(error)

    def add(self, count: int) -> None:
        """Add items in small calls; an add that is in doubt counts as not added."""
        for _ in range(count // 10):
            items = [NewItem(b"%d-%d" % (time.monotonic_ns(), n), b"data") for n in range(10)]
            with suppress(ServerError):
                self.added += [
                    outcome.item_id
                    for outcome in self.queue.add_many(items)
                    if outcome.status is Status.ADDED
                ]
            time.sleep(0.005)

    def finish(self) -> Counter[bytes]:
        """Wait until the queue is empty, and end the workers; what they have completed."""

        def is_empty() -> bool:
            list(self.queue.light_clean(grace_s=0.1))
            counts = self.queue.lengths()
            return not (counts.waiting or counts.processing)

        until(
            lambda: any(each.done() for each in self._workers) or is_empty(), "the end of the work"
        )
        self.stop()
        for worker in self._workers:
            worker.result()
        return Counter(self._completed)

    def stop(self) -> None:
        self._stop.set()


Start = Callable[[str, str], Load]


@pytest.fixture
def start() -> Iterator[Start]:
    loads: list[Load] = []

    def begin(url: str, name: str) -> Load:
        loads.append(Load(url, name, threads))
        loads[-1].add(50)
        return loads[-1]

    with ThreadPoolExecutor(PROGRAMS) as threads:
        yield begin
        for load in loads:
            load.stop()


def test_a_slot_moves(cluster: PrivateCluster, start: Start) -> None:
    load = start(cluster.url, QUEUE)
    for _ in range(MOVES or 1):
        load.add(100)
        moving = Moving(cluster, QUEUE)
        moving.finish(pause_s=0.01)
        load.add(100)
    # Each item was completed once, and no reply was lost.
    assert load.finish() == Counter(load.added)
    assert load.lost == []


@pytest.mark.ci
def test_a_primary_of_a_cluster_dies(cluster: PrivateCluster, start: Start) -> None:
    load = start(cluster.url, QUEUE)
    load.add(100)
    primary = cluster.owner(QUEUE)
    replicated = list(load.added)
    until(lambda: cluster.is_replicated(primary), "the replica")
    cluster.nodes[primary].kill()
    load.add(100)
    assert cluster.owner(QUEUE) != primary
    completed = load.finish()
    # A lost reply to a lease leaves the items to a clean; one to a complete leaves one in doubt.
    assert len(set(replicated) - completed.keys()) <= len(load.lost) <= 2 * PROGRAMS
