"""Chaos: real workers of 0.1.5 that die and stall at any step, and cleans beside them.

Four Python workers, and one of Node.js where npm is, lease and complete what rwq and upstream's own
code add. They die between any two of upstream's commands and are started again; they outlive their
leases. Every 100 ms a light and a deep clean of ours begin, so about twenty are under way at once.
In the end each item must stand in the workers' books as completed exactly once, with its own data,
and no key of the queue may be left.

`RWQ_CHAOS_SECONDS` sets how long it goes on, for a longer run.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
import redis_work_queue as upstream

from rwq_cli.core import CleanAction, Connection, NewItem, Repair, Server, State, WorkQueue, connect
from tests.live.conftest import StartProcess
from tests.live.peer_worker import DEATH_STATUS
from tests.live.peers import Entry, Peer, node_peer, python_peer, read_book
from tests.live.raw_keys import read_raw_keys
from tests.servers import PrivateServer

QUEUE = "chaos"
SECONDS = float(os.environ.get("RWQ_CHAOS_SECONDS", "4"))
PYTHON_WORKERS = 4
_ITEMS_PER_S = 45
_TICK_S = 0.1
# A lease of 2 s, a grace period of 1 s, and a worker in each: nothing needs longer to come back.
_DRAIN_TIMEOUT_S = 120.0
_RAGE_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 30.0
STEPS = ("GET", "SETEX", "LREM", "EXEC")


@dataclass(slots=True)
class Slot:
    """A place for a worker, in which the next one starts when it has died.

    Attributes:
        peer: The package that its workers use.
        lease_s: How long they lease items.
        process: The worker that is in it.
    """

    peer: Peer
    lease_s: int
    process: "Popen[bytes] | None" = None


@dataclass(slots=True)
class Cleans:
    """Cleans of ours, many at a time, each thread with a connection of its own.

    Attributes:
        url: The server.
        actions: What they did, with the time.
        started: How many were begun.
    """

    url: str
    actions: list[tuple[float, CleanAction]] = field(default_factory=list)
    started: int = 0
    _futures: "list[Future[None]]" = field(default_factory=list)
    _connections: list[Connection] = field(default_factory=list)
    _own: threading.local = field(default_factory=threading.local)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=48))

    def begin(self) -> None:
        """Begin one light and one deep clean, with the default grace period."""
        for deep in (False, True):
            self._futures.append(self._pool.submit(self._clean, deep))
            self.started += 1

    def end(self) -> None:
        """Wait for all of them; raises what one of them raised."""
        self._pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        for future in self._futures:
            future.result()

    def _clean(self, deep: bool) -> None:
        queue = self._queue()
        for action in queue.deep_clean() if deep else queue.light_clean():
            self.actions.append((time.time(), action))

    def _queue(self) -> WorkQueue:
        if not hasattr(self._own, "queue"):
            connection = connect(Server(self.url))
            self._connections.append(connection)
            self._own.queue = WorkQueue(connection, QUEUE)
        queue: WorkQueue = self._own.queue
        return queue


class Chaos:
    """Everything that goes on at once, and its books.

    Args:
        server: The server.
        start: Starts a process that ends with the test.
        folder: For the books and the signs to the workers.
        peers: The package of each worker.
    """

    def __init__(
        self, server: PrivateServer, start: StartProcess, folder: Path, peers: list[Peer]
    ) -> None:
        self._server = server
        self._start = start
        self._folder = folder
        self._slots = [Slot(peer, lease_s=1 + number % 2) for number, peer in enumerate(peers)]
        self._numbers = count()
        self._books: list[Path] = []
        self._db = server.client()
        self._connection = connect(Server(server.url))
        self._queue = WorkQueue(self._connection, QUEUE)
        self._upstream = upstream.WorkQueue(upstream.KeyPrefix(QUEUE))
        self.cleans = Cleans(server.url)
        self.added: dict[bytes, bytes] = {}

    @property
    def workers(self) -> int:
        return len(self._slots)

    def close(self) -> None:
        (self._folder / "stop").touch()
        self._db.close()
        self._connection.close()

    def rage(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Add, clean, and replace the dead, for so long and until enough has happened."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds or not enough():
            assert passed < seconds + _RAGE_TIMEOUT_S, self.deaths()
            while len(self.added) < passed * _ITEMS_PER_S:
                self._add_some()
            self._tick()

    def drain(self) -> None:
        """Let no worker die or stall any more; go on until nothing is left."""
        (self._folder / "calm").touch()
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        while self._db.dbsize() and time.monotonic() < deadline:
            self._tick()
        (self._folder / "stop").touch()
        for slot in self._slots:
            assert slot.process is not None
            assert slot.process.wait(_END_TIMEOUT_S) in (0, DEATH_STATUS)
        self.cleans.end()

    def keys_left(self) -> Any:
        """What is left in the queue, to be shown if it is not empty."""
        return read_raw_keys(self._db, QUEUE.encode())

    def is_empty(self) -> bool:
        return self._db.dbsize() == 0

    def entries(self) -> list[Entry]:
        """All books, in the order of time."""
        entries = (entry for book in self._books for entry in read_book(book))
        return sorted(entries, key=lambda entry: entry.at)

    def deaths(self) -> Counter[str]:
        """How often workers died before each step."""
        return Counter(entry.before or "" for entry in self.entries() if entry.did == "dies")

    def returned(self) -> Counter[State]:
        """How many items cleans returned, by the state that they were in."""
        return Counter(
            action.state for _, action in self.cleans.actions if action.action is Repair.RETURNED
        )

    def story(self, item_id: bytes) -> str:
        """All that happened to an item, to be read where it went wrong."""
        told: list[tuple[float, str]] = [
            (entry.at, f"worker {entry.pid} {entry.did}")
            for entry in self.entries()
            if entry.item_id == item_id
        ]
        pids = {entry.pid for entry in self.entries() if entry.item_id == item_id}
        told += [
            (entry.at, f"worker {entry.pid} {entry.did} before {entry.before}")
            for entry in self.entries()
            if entry.pid in pids and entry.before is not None
        ]
        told += [
            (at, f"a clean: {action.action}, {action.state}")
            for at, action in self.cleans.actions
            if action.item_id == item_id
        ]
        lines = [f"{at:.6f} {what}" for at, what in sorted(told)]
        return "\n".join([repr(item_id), *lines])

    def _tick(self) -> None:
        for slot in self._slots:
            status = slot.process.poll() if slot.process else DEATH_STATUS
            assert status in (None, DEATH_STATUS), f"a worker broke down: exit status {status}"
            if status is not None:
                slot.process = self._start_worker(slot)
        self.cleans.begin()
        time.sleep(_TICK_S)

    def _start_worker(self, slot: Slot) -> "Popen[bytes]":
        self._books.append(self._folder / f"book-{next(self._numbers)}")
        return self._start(
            *slot.peer.command_line(
                do="chaos",
                socket=self._server.socket,
                queue=QUEUE,
                book=self._books[-1],
                calm=self._folder / "calm",
                stop=self._folder / "stop",
                lease_s=slot.lease_s,
            )
        )

    def _add_some(self) -> None:
        """Three items by rwq in one batch, three by upstream's code one by one."""
        number = len(self.added)
        ids = [b"item-%d" % (number + n) for n in range(6)]
        data = {item_id: b"data of " + item_id + bytes(range(256)) for item_id in ids}
        list(self._queue.add_many([NewItem(item_id, data[item_id]) for item_id in ids[:3]]))
        for item_id in ids[3:]:
            self._upstream.add_item(self._db, upstream.Item(data[item_id], item_id.decode()))
        self.added |= data


@pytest.fixture
def chaos(
    live_server: PrivateServer,
    start_process: StartProcess,
    tmp_path: Path,
    npm_packages: Path | str,
) -> Iterator[Chaos]:
    peers = [python_peer()] * PYTHON_WORKERS
    if isinstance(npm_packages, Path):
        peers.append(node_peer(npm_packages))
    with ExitStack() as stack:
        made = Chaos(live_server, start_process, tmp_path, peers)
        stack.callback(made.close)
        yield made


def test_every_item_is_completed_exactly_once(chaos: Chaos) -> None:
    # They die before each step, and both kinds of clean are needed.
    chaos.rage(
        SECONDS,
        enough=lambda: (
            all(chaos.deaths()[step] for step in STEPS)
            and all(chaos.returned()[state] for state in (State.ABANDONED, State.ORPHANED))
        ),
    )
    began_drain = time.monotonic()
    chaos.drain()
    drain_s = time.monotonic() - began_drain

    entries = chaos.entries()
    completed = Counter(entry.item_id for entry in entries if entry.did == "completed")
    figures = {
        "workers at a time": chaos.workers,
        "items": len(chaos.added),
        "completes that returned True": completed.total(),
        "completes that returned False": sum(entry.did == "refused" for entry in entries),
        "deaths before": dict(chaos.deaths()),
        "stalls before": dict(Counter(entry.before for entry in entries if entry.did == "stalls")),
        "cleans": chaos.cleans.started,
        "returned by cleans": {str(state): number for state, number in chaos.returned().items()},
        "drained in seconds": round(drain_s, 1),
    }
    print(figures)
    wrong = [item_id for item_id in chaos.added if completed[item_id] != 1]
    assert not wrong, "not completed exactly once:\n" + "\n".join(map(chaos.story, wrong[:3]))
    assert completed.keys() == chaos.added.keys()
    # A worker that stalled before its SETEX may have leased what was complete: that ends by itself.
    deadline = time.monotonic() + _END_TIMEOUT_S
    while not chaos.is_empty() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert chaos.is_empty(), chaos.keys_left()
    for entry in entries:
        if entry.did == "completed":
            assert entry.data == chaos.added[entry.item_id], chaos.story(entry.item_id)
