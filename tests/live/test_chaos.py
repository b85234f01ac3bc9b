"""Chaos: real workers of 0.1.5 that die and stall at any step, and cleans beside them.

Four Python workers, and one of Node.js where npm is, lease and complete what rwq and upstream's own
code add. They die between any two of upstream's commands and are started again; they outlive their
leases. Every 100 ms a light and a deep clean of ours begin, so about twenty are under way at once.
In the end each item must stand in the workers' books as completed exactly once, with its own data,
and no key of the queue may be left but settling leases, which end by themselves.

In a second chaos upstream's cleaners, workers and producers are of both generations. The cleaners
walk snapshots that are up to a second old, and enough items wait that what we push is still there
when they come to it. We lease, release, bury, kick, delay, promote, remove and undo. What upstream
does wrong alone is counted apart: `test_settling_leases.py` shows that it needs none of ours.
"""

import math
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest
import redis_work_queue as upstream

from rwq_cli.core import (
    CleanAction,
    Connection,
    NewItem,
    Repair,
    Server,
    State,
    Status,
    WorkQueue,
    connect,
)
from rwq_cli.core.items.schedule import promote as promote_items
from tests.live.conftest import StartProcess
from tests.live.peer_worker import DEATH_STATUS
from tests.live.peers import (
    Entry,
    Peer,
    later_peer,
    node_peer,
    python_peer,
    read_book,
    snapshot_cleaner,
)
from tests.live.raw_keys import end_settling_leases, read_raw_keys
from tests.long import usual
from tests.processes import COMMAND, start
from tests.servers import PrivateServer

QUEUE = "chaos"
SECONDS = usual(2, long=60)
PYTHON_WORKERS = 4
_LATER_WORKERS = 2
_ITEMS_PER_S = 45
# How many items wait at least, beside cleaners of snapshots, and how old these become, seconds.
_BACKLOG = 150
_WALK_S = 1.0
_TICK_S = 0.1
# A lease of 2 s, a grace period of 1 s, and a worker in each: nothing needs longer to come back.
_DRAIN_TIMEOUT_S = 120.0
_RAGE_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 30.0
# From when to when something happened to an item, by ID.
Span = tuple[float, float]
Spans = dict[bytes | None, list[Span]]
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


class Acts:
    """Operations of ours other than cleans, one after the other, on a connection of their own.

    Args:
        url: The server.
        folder: For the undo files.

    Attributes:
        pushes: ID to when we pushed it onto main, each time.
        removals: ID to when it was removed or about to be, each time.
        counts: How many items each operation changed.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._connection = connect(Server(url))
        self._queue = WorkQueue(self._connection, QUEUE)
        self._ended = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._future: Future[None] | None = None
        self.pushes: dict[bytes | None, list[Span]] = {}
        self.removals: dict[bytes | None, list[Span]] = {}
        self._began = 0.0
        self.counts: Counter[str] = Counter()
        self._output = b""

    def start(self) -> None:
        """Begin to act; `end` ends it."""
        self._future = self._thread.submit(self._work)

    def is_done(self) -> bool:
        """Whether each operation has changed something; raises what one of them raised."""
        if self._future is not None and self._future.done():
            self._future.result()
        # What is due is promoted by the cleans, too.
        acts = ("released", "buried", "kicked", "delayed", "restored")
        return all(self.counts[act] for act in acts)

    def end(self) -> None:
        """Finish what is under way; raises what it raised."""
        self._ended.set()
        self._thread.shutdown(wait=True)
        if self._future is not None:
            self._future.result()

    def close(self) -> None:
        self._ended.set()
        self._thread.shutdown(wait=True)
        self._connection.close()

    def kick_all(self) -> None:
        """Kick whatever is buried; used when nobody else acts any more."""
        self._kick()
        self._promote()

    def _work(self) -> None:
        acts = (self._release, self._bury, self._kick, self._delay, self._promote, self._undo)
        while not self._ended.is_set():
            # Each once a round, so that none waits for its turn for long.
            for act in random.sample(acts, len(acts)):
                if not self._ended.is_set():
                    self._began = time.time()
                    act()
                    time.sleep(random.uniform(0, 0.1))

    def _waiting(self) -> list[bytes]:
        waiting = self._queue.call("LRANGE", self._queue.keys.main, 0, -1)
        return random.sample(waiting, min(len(waiting), 10))

    def _release(self) -> None:
        leased = [item.item_id for item in self._queue.lease_many(10, for_s=60)]
        self.counts["leased"] += len(leased)
        for outcome in self._queue.release_many(leased, front=bool(random.randrange(2))):
            if outcome.status is Status.RELEASED:
                self._pushed(outcome.item_id, "released")

    def _bury(self) -> None:
        for outcome in self._queue.bury_many(self._waiting(), grace_s=0.1):
            self.counts["buried"] += outcome.status is Status.BURIED

    def _delay(self) -> None:
        for outcome in self._queue.release_many(self._waiting(), delay_s=0.2, grace_s=0.1):
            self.counts["delayed"] += outcome.status is Status.DELAYED

    def _kick(self) -> None:
        buried = self._queue.call("ZRANGE", self._queue.keys.buried, 0, -1)
        for outcome in self._queue.kick_many(buried):
            if outcome.status is Status.KICKED:
                self._pushed(outcome.item_id, "kicked")

    def _promote(self) -> None:
        for batch in promote_items(self._queue):
            for item_id in batch.ids_with(Status.PROMOTED):
                self._pushed(item_id, "promoted")

    def _undo(self) -> None:
        chosen = ["--id-glob", f"*{random.randrange(10)}", "--state", "waiting"]
        # 3 if some were leased meanwhile: the others are gone.
        if self._rwq("rm", *chosen, "--yes") in (0, 3):
            removal = self._began, time.time()
            self._began = removal[1]
            assert self._rwq("undo", "--yes", "-o", "ids") == 0, self._output
            for item_id in self._output.split():
                self._pushed(item_id, "restored")
                self.removals.setdefault(item_id, []).append(removal)

    def _rwq(self, *words: str) -> int:
        env = {"HOME": str(self._folder), "LANG": "C.UTF-8"}
        command = [*COMMAND, *words, "-u", self._url, "-q", QUEUE]
        with start(command, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE) as process:
            self._output, notes = process.communicate()
        assert process.returncode in (0, 1, 3), (words, notes)
        return process.returncode

    def _pushed(self, item_id: bytes, how: str) -> None:
        self.pushes.setdefault(item_id, []).append((self._began, time.time()))
        self.counts[how] += 1


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
        self.acts: Acts | None = None
        self._cleaner_books: list[Path] = []
        self._cleaners: list[Popen[bytes]] = []
        self._backlog = 0
        self._later_pids: set[int] = set()
        self.added: dict[bytes, bytes] = {}

    @property
    def workers(self) -> int:
        return len(self._slots)

    def close(self) -> None:
        (self._folder / "stop").touch()
        (self._folder / "stop-cleaners").touch()
        if self.acts is not None:
            self.acts.close()
        self._db.close()
        self._connection.close()

    def rage(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Add, clean, and replace the dead, for so long and until enough has happened."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds or not enough():
            assert passed < seconds + _RAGE_TIMEOUT_S, self.deaths()
            while len(self.added) < passed * _ITEMS_PER_S:
                self.add_some()
            while self._db.llen(f"{QUEUE}:queue") < self._backlog:
                self.add_some()
            self._tick()

    def drain(self) -> None:
        """Let no worker die or stall any more; go on until nothing is left."""
        (self._folder / "calm").touch()
        # They push what is in their snapshots, also if it is complete by then.
        (self._folder / "stop-cleaners").touch()
        for cleaner in self._cleaners:
            assert cleaner.wait(_END_TIMEOUT_S) == 0
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        while not self.is_empty() and time.monotonic() < deadline:
            if self.acts is not None:
                self.acts.kick_all()
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
        """Whether no key is left; a lease without an item ends later than we can wait."""
        if self._db.dbsize() and not self._db.exists(f"{QUEUE}:queue", f"{QUEUE}:processing"):
            end_settling_leases(self._db, QUEUE.encode(), stray=self.acts is not None)
        return self._db.dbsize() == 0

    def start_acts(self) -> None:
        """Let us do all that we can beside cleans."""
        self.acts = Acts(self._server.url, self._folder)
        self.acts.start()

    def start_later_generation(self) -> None:
        """Start workers of the later generation, too."""
        for _ in range(_LATER_WORKERS):
            slot = Slot(later_peer(), lease_s=2)
            slot.process = self._start_worker(slot)
            self._later_pids.add(slot.process.pid)
            self._slots.append(slot)

    def start_cleaners(self) -> None:
        """Start upstream's cleaners of both generations; their books are kept apart."""
        self._backlog = _BACKLOG
        for old in (False, True):
            for verb in ("light", "deep"):
                book = self._folder / f"cleaner-{old}-{verb}"
                self._cleaner_books.append(book)
                cleaner = snapshot_cleaner(old=old).command_line(
                    do=verb,
                    socket=self._server.socket,
                    queue=QUEUE,
                    book=book,
                    stop=self._folder / "stop-cleaners",
                    walk_s=_WALK_S,
                )
                self._cleaners.append(self._start(*cleaner))

    def has_both_generations(self, completes: list[Entry]) -> bool:
        """Whether workers of both generations completed an item."""
        return len({entry.pid in self._later_pids for entry in completes}) == 2

    def cleaner_pushes(self) -> list[Entry]:
        """What upstream's cleaners pushed."""
        return [entry for book in self._cleaner_books for entry in read_book(book)]

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
        told += [
            (entry.at, f"cleaner {entry.pid} {entry.did}, it looked at {entry.looked_at}")
            for entry in self.cleaner_pushes()
            if entry.item_id == item_id
        ]
        if self.acts is not None:
            told += [(at, "we pushed it") for _, at in self.acts.pushes.get(item_id, ())]
            told += [(at, "we remove it") for at, _ in self.acts.removals.get(item_id, ())]
        lines = [f"{at:.6f} {what}" for at, what in sorted(told)]
        return "\n".join([repr(item_id), *lines])

    def _tick(self) -> None:
        self.replace_the_dead()
        self.cleans.begin()
        time.sleep(_TICK_S)

    def replace_the_dead(self) -> None:
        """Start a worker in each slot whose worker has died."""
        for slot in self._slots:
            status = slot.process.poll() if slot.process else DEATH_STATUS
            assert status in (None, DEATH_STATUS, -signal.SIGKILL), (
                f"a worker broke down: exit status {status}"
            )
            if status is not None:
                slot.process = self._start_worker(slot)

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

    def add_some(self) -> None:
        """Three items by rwq in one batch, three by upstream's code one by one, and two by what its
        later versions do."""
        number = len(self.added)
        ids = [b"item-%d" % (number + n) for n in range(8)]
        data = {item_id: b"data of " + item_id + bytes(range(256)) for item_id in ids}
        list(self._queue.add_many([NewItem(item_id, data[item_id]) for item_id in ids[:3]]))
        for item_id in ids[3:6]:
            self._upstream.add_item(self._db, upstream.Item(data[item_id], item_id.decode()))
        for item_id in ids[6:]:
            self._db.setnx(b"%s:item:%s" % (QUEUE.encode(), item_id), data[item_id])
            self._db.lpush(f"{QUEUE}:queue", item_id)
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
    _assert_empty(chaos)
    for entry in entries:
        if entry.did == "completed":
            assert entry.data == chaos.added[entry.item_id], chaos.story(entry.item_id)


def _assert_empty(chaos: Chaos) -> None:
    """A worker that stalled before its SETEX may have leased what was complete: that ends soon."""
    deadline = time.monotonic() + _END_TIMEOUT_S
    while not chaos.is_empty() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert chaos.is_empty(), chaos.keys_left()


# Less than a settling lease lasts.
_SETTLED_S = 20.0
# How late our note of a push by a clean may come.
_NOTED_LATE_S = 0.5


def test_beside_cleaners_of_snapshots_only_they_push_an_item_twice(chaos: Chaos) -> None:
    chaos.start_later_generation()
    chaos.start_cleaners()
    chaos.start_acts()
    acts = chaos.acts
    assert acts is not None
    chaos.rage(SECONDS, enough=acts.is_done)
    acts.end()
    chaos.drain()

    entries, pushes = chaos.entries(), chaos.cleaner_pushes()
    completes: dict[bytes | None, list[Entry]] = {}
    for entry in entries:
        # A worker of 0.1.5 takes an ID without data for an item, and completes it.
        if entry.did == "completed" and entry.data:
            completes.setdefault(entry.item_id, []).append(entry)
    completed = Counter({item_id: len(each) for item_id, each in completes.items()})
    touched = {push.item_id for push in pushes}
    again = [push for push in pushes if push.did == "pushed again"]
    ours = _pushes_of_ours(chaos, acts)
    handled = _handled(entries, acts)
    blamed = [push.item_id for push in again if _is_ours(push, ours, handled)]
    twice = [item_id for item_id in chaos.added if completed[item_id] > 1]
    untouched = [item_id for item_id in twice if item_id not in touched]
    # One generation goes by its LREM, the other by its DEL.
    wrong = [i for i in untouched if not chaos.has_both_generations(completes[i])]
    print(
        {
            "items": len(chaos.added),
            "completes": completed.total(),
            "completes of no item": sum(e.did == "completed" and not e.data for e in entries),
            "deaths": chaos.deaths().total(),
            "cleans of ours": chaos.cleans.started,
            "returned by us": chaos.returned().total(),
            "acts of ours": dict(acts.counts),
            "pushes by upstream's cleaners": len(pushes),
            "of what was waiting already": len(again),
            "of these, behind a push of ours that they should have seen": len(blamed),
            "completed more than once, after a push of theirs": len(twice) - len(untouched),
            "completed by both generations, without one": len(untouched) - len(wrong),
        }
    )
    assert not blamed, "\n".join(chaos.story(item_id) for item_id in blamed[:3] if item_id)
    lost = [item_id for item_id in chaos.added if not completed[item_id]]
    assert not lost, "never completed:\n" + "\n".join(map(chaos.story, lost[:3]))
    assert not wrong, "completed twice without them:\n" + "\n".join(map(chaos.story, wrong[:3]))
    _assert_empty(chaos)
    for entry in entries:
        if entry.did == "completed" and entry.data and entry.item_id:
            assert entry.data == chaos.added[entry.item_id], chaos.story(entry.item_id)


def _pushes_of_ours(chaos: Chaos, acts: Acts) -> Spans:
    """When we pushed each item."""
    pushes = {item_id: list(spans) for item_id, spans in acts.pushes.items()}
    for at, action in chaos.cleans.actions:
        if action.action in (Repair.RETURNED, Repair.PROMOTED):
            pushes.setdefault(action.item_id, []).append((at - _NOTED_LATE_S, at))
    return pushes


def _handled(entries: list[Entry], acts: Acts) -> Spans:
    """When workers set or deleted a lease of each item, or we removed it with its settling lease.

    A lease is booked when it is set. A complete is booked before it begins and after it ended.
    """
    handled = {item_id: list(spans) for item_id, spans in acts.removals.items()}
    begun: dict[tuple[int, bytes | None], float] = {}
    for entry in entries:
        worker = entry.pid, entry.item_id
        if entry.did == "intends":
            begun[worker] = entry.at
        elif entry.did in ("leased", "completed", "refused"):
            since = begun.pop(worker, entry.at)
            handled.setdefault(entry.item_id, []).append((since, entry.at))
    for (_, item_id), since in begun.items():
        handled.setdefault(item_id, []).append((since, math.inf))
    return handled


def _is_ours(push: Entry, ours: Spans, handled: Spans) -> bool:
    """Whether it looked after a push of ours, and nobody set or ended a lease in between."""
    looked_at = push.looked_at
    assert looked_at is not None
    before = [span for span in ours.get(push.item_id, ()) if span[1] < looked_at]
    if not before or looked_at - max(before)[0] > _SETTLED_S:
        return False
    pushed_at = max(before)[0]
    spans = handled.get(push.item_id, ())
    return not any(since < looked_at and until > pushed_at for since, until in spans)
