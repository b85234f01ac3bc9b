"""Four programs lease and complete while slots move, nodes restart and primaries die.

With `--long`, a slot moves thirty times, and all nodes restart so often; else it moves once, and
only the primary of the queue and its replica restart.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from rwq_cli.core import NewItem, Server, ServerError, Status, WorkQueue, connect
from tests.cluster.conftest import QUEUE
from tests.clusters import Moving, PrivateCluster, PrivateSentinels, until
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


def assert_each_once(load: Load) -> None:
    """Each item was completed once, and no reply was lost."""
    assert load.finish() == Counter(load.added)


def test_a_slot_moves(cluster: PrivateCluster, start: Start) -> None:
    load = start(cluster.url, QUEUE)
    for _ in range(MOVES or 1):
        load.add(100)
        moving = Moving(cluster, QUEUE)
        moving.finish(pause_s=0.01)
        load.add(100)
    assert_each_once(load)


def hand_over(cluster: PrivateCluster, primary: int) -> None:
    """Make a primary a replica of its replica, and wait until all programs use the other.

    The primary holds back all writes until its replica has caught up: up to a second after a full
    resynchronization, and on a busy machine longer than a call of the programs waits. A call that
    it has not answered when it is killed afterwards is in doubt, even if it would have refused it.
    """
    replica = cluster.replica_of(primary)
    until(lambda: cluster.is_replicated(primary), "the replica")
    cluster.call(replica, "CLUSTER", "FAILOVER")
    until(lambda: not cluster.is_primary(primary), "the handover")
    until(lambda: len(scripts_from(cluster, replica)) >= PROGRAMS, "all programs there")
    until(lambda: not clients_of(cluster, primary), "the end of all calls")


def clients_of(cluster: PrivateCluster, number: int) -> list[dict[str, str]]:
    """The clients that have sent a node a call in the last second, or wait for its reply."""
    clients = cluster.call(number, "CLIENT", "LIST", "TYPE", "normal").decode().splitlines()
    others = [dict(re.findall(r"(\w+)=(\S*)", each)) for each in clients]
    return [
        each
        for each in others
        if each["cmd"] != "client|list" and (each["idle"] == "0" or "b" in each["flags"])
    ]


def scripts_from(cluster: PrivateCluster, number: int) -> list[dict[str, str]]:
    """Those of its clients whose last call was a script: one for each program."""
    return [each for each in clients_of(cluster, number) if each["cmd"].startswith("eval")]


def test_every_node_restarts(cluster: PrivateCluster, start: Start) -> None:
    """As an upgrade does it: a primary hands over to its replica first."""
    load = start(cluster.url, QUEUE)
    primary = cluster.owner(QUEUE)
    numbers = range(len(cluster.nodes)) if MOVES else (primary, cluster.replica_of(primary))
    for _ in range(MOVES or 1):
        for number in numbers:
            node = cluster.nodes[number]
            if cluster.is_primary(number):
                hand_over(cluster, number)
            node.kill()
            load.add(30)
            node.start()
            until(cluster.is_ok, "the cluster")
            load.add(30)
    assert_each_once(load)


def assert_nothing_lost(load: Load, replicated: list[bytes]) -> None:
    """What was replicated was completed, or may have been: as many as replies were lost."""
    completed = load.finish()
    # A lost reply to a lease leaves the items to a clean; one to a complete leaves one in doubt.
    assert len(set(replicated) - completed.keys()) <= len(load.lost) <= 2 * PROGRAMS


def test_a_primary_of_a_cluster_dies(cluster: PrivateCluster, start: Start) -> None:
    load = start(cluster.url, QUEUE)
    load.add(100)
    primary = cluster.owner(QUEUE)
    replicated = list(load.added)
    until(lambda: cluster.is_replicated(primary), "the replica")
    cluster.nodes[primary].kill()
    load.add(100)
    assert cluster.owner(QUEUE) != primary
    assert_nothing_lost(load, replicated)


@pytest.mark.skipif(not MOVES, reason="takes nine seconds: --long")
def test_a_primary_behind_sentinel_dies(fresh_sentinels: PrivateSentinels, start: Start) -> None:
    load = start(fresh_sentinels.url, "jobs")
    load.add(100)
    primary = fresh_sentinels.primary()
    replicated = list(load.added)
    until(fresh_sentinels.is_replicated, "the replica")
    primary.kill()
    load.add(100)
    assert fresh_sentinels.primary() is not primary
    assert_nothing_lost(load, replicated)
