"""Chaos: workers of 0.1.5 and of ours that die and stall anywhere, and all that we do beside them.

Workers of 0.1.5 in Python, and one in Node.js where npm is, die between any two of upstream's
commands and outlive their leases; ours die between a call and its reply, and are killed from
outside. Cleans run all the time, and we release, bury, kick, delay, promote, remove and undo.

In the end each item stands in the workers' books as completed exactly once, with its own data, or
its worker was killed before the reply of its complete could be booked; and no key of the queue is
left but settling leases and what knows the server for undo files, which end by themselves. A
complete of 0.1.5, which goes by its LREM, and one of ours, which goes by its DEL, may both win:
`test_peers.py` holds that fast.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import pytest
import redis_work_queue as upstream

from rwq_cli.core import NewItem, Repair, Server, State, Status, WorkQueue, connect
from rwq_cli.core.items.schedule import promote
from tests.live.peer_worker import DEATH_STATUS
from tests.live.peers import (
    Entry,
    Peer,
    core_peer,
    node_peer,
    python_peer,
    read_book,
    start as start_worker,
)
from tests.live.raw_keys import end_settling_leases, read_raw_keys
from tests.long import usual
from tests.processes import COMMAND, start
from tests.servers import PrivateServer

QUEUE = "chaos"
SECONDS = usual(2, long=60)
_ITEMS_PER_S = 40
_TICK_S = 0.1
_KILL_EVERY_S = 1.0
# How likely a worker of ours dies at a call. In a short run it must happen soon.
_DEATH = max(0.004, 0.08 / SECONDS)
# A lease of 2 s, a grace period of 1 s, and a worker in each: nothing needs longer to come back.
_TIMEOUT_S = 120.0
STEPS = ("GET", "SETEX", "LREM", "EXEC", "call", "reply")
ACTS = ("released", "buried", "kicked", "delayed", "restored")


class Acts:
    """Operations of ours, in threads of their own: cleans, and one other after the other."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self._local = threading.local()
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=32)
        self._futures: list[Future[None]] = []
        self.counts: Counter[str] = Counter()
        self.returned: Counter[State] = Counter()
        # What happened to each item, to be read where it went wrong.
        self.told: list[tuple[float, bytes, str]] = []

    def start(self) -> None:
        self._futures.append(self._pool.submit(self._work))

    def clean(self) -> None:
        """Begin one light and one deep clean; raises what an earlier operation raised."""
        for future in self._futures:
            if future.done():
                future.result()
        self._futures += (self._pool.submit(self._clean, deep) for deep in (False, True))

    def end(self) -> None:
        """Do no more; `finish` waits for all, and raises what one of them raised."""
        self._ended.set()

    def finish(self) -> None:
        self._ended.set()
        self._pool.shutdown(wait=True)
        for future in self._futures:
            future.result()

    @property
    def queue(self) -> WorkQueue:
        if not hasattr(self._local, "queue"):
            self._local.queue = WorkQueue(connect(Server(self._url)), QUEUE)
        queue: WorkQueue = self._local.queue
        return queue

    def kick_all(self) -> None:
        buried = self.queue.call("ZRANGE", self.queue.keys.buried, 0, -1)
        self._note(self.queue.kick_many(buried), Status.KICKED)
        for batch in promote(self.queue):
            self._note(batch, Status.PROMOTED)

    def _clean(self, deep: bool) -> None:
        for action in self.queue.deep_clean() if deep else self.queue.light_clean():
            self.told.append((time.time(), action.item_id, f"a clean: {action.action}"))
            self.returned[action.state] += action.action is Repair.RETURNED

    def _work(self) -> None:
        acts = (self._release, self._bury, self._delay, self.kick_all, self._remove_and_undo)
        while not self._ended.is_set():
            # Each once a round, so that none waits for its turn for long.
            for act in random.sample(acts, len(acts)):
                if not self._ended.is_set():
                    act()
                    time.sleep(random.uniform(0, 0.1))

    def _note(self, outcomes: object, wanted: Status) -> None:
        for outcome in outcomes:  # type: ignore[attr-defined]
            if outcome.status is wanted:
                self.counts[wanted] += 1
                self.told.append((time.time(), outcome.item_id, f"we: {wanted}"))

    def _waiting(self) -> list[bytes]:
        waiting = self.queue.call("LRANGE", self.queue.keys.main, 0, -1)
        return random.sample(waiting, min(len(waiting), 10))

    def _release(self) -> None:
        leased = [item.item_id for item in self.queue.lease_many(10, for_s=60)]
        front = bool(random.randrange(2))
        self._note(self.queue.release_many(leased, front=front), Status.RELEASED)

    def _bury(self) -> None:
        self._note(self.queue.bury_many(self._waiting(), grace_s=0.1), Status.BURIED)

    def _delay(self) -> None:
        outcomes = self.queue.release_many(self._waiting(), delay_s=0.2, grace_s=0.1)
        self._note(outcomes, Status.DELAYED)

    def _remove_and_undo(self) -> None:
        chosen = ["--id-glob", f"*{random.randrange(10)}", "--state", "waiting"]
        # Of those that it has found, some may be leased meanwhile.
        if self._rwq("rm", *chosen, "--yes", "-o", "ids")[1]:
            code, restored = self._rwq("undo", "--yes", "-o", "ids")
            assert code == 0
            self.counts["restored"] += len(restored)
            self.told += (
                (time.time(), item_id, "we removed and restored it") for item_id in restored
            )

    def _rwq(self, *words: str) -> tuple[int, list[bytes]]:
        env = {"HOME": str(self._folder), "LANG": "C.UTF-8"}
        command = [*COMMAND, *words, "-u", self._url, "-q", QUEUE]
        with start(command, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE) as process:
            out, notes = process.communicate()
        assert process.returncode in (0, 1, 3), (words, notes)
        return process.returncode, out.split()


class Chaos:
    """Everything that goes on at once, and its books."""

    def __init__(self, server: PrivateServer, folder: Path, peers: list[Peer]) -> None:
        self._server, self._folder = server, folder
        self._peers = peers
        self._workers: list[Popen[bytes] | None] = [None] * len(peers)
        self._books: list[tuple[Peer, Path]] = []
        self._db = server.client()
        self._queue = WorkQueue(connect(Server(server.url)), QUEUE)
        self._upstream = upstream.WorkQueue(upstream.KeyPrefix(QUEUE))
        self._killed_s = 0.0
        self.acts = Acts(server.url, folder)
        self.added: dict[bytes, bytes] = {}

    def close(self) -> None:
        for sign in ("calm", "stop"):
            (self._folder / sign).touch()
        for worker in filter(None, self._workers):
            worker.kill()
            worker.wait()
        self.acts.finish()
        self._db.close()

    def rage(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Add, clean, kill, and replace the dead, for so long and until enough has happened."""
        self.acts.start()
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < seconds or not enough():
            assert passed_s < seconds + _TIMEOUT_S, (self.deaths(), self.acts.counts)
            if len(self.added) < passed_s * _ITEMS_PER_S:
                self.add_some()
            if passed_s - self._killed_s > _KILL_EVERY_S:
                self._killed_s = passed_s
                ours = [w for w in self._workers[-2:] if w and w.poll() is None]
                random.choice(ours).kill() if ours else None
            self._tick()

    def drain(self) -> None:
        """Let no worker die or stall any more; go on until nothing is left."""
        (self._folder / "calm").touch()
        self.acts.end()
        deadline = time.monotonic() + _TIMEOUT_S
        while not self.is_empty():
            assert time.monotonic() < deadline, read_raw_keys(self._db, QUEUE.encode())
            self.acts.kick_all()
            self._tick()
        (self._folder / "stop").touch()
        for worker in self._workers:
            assert worker is not None
            assert worker.wait(_TIMEOUT_S) in (0, DEATH_STATUS)
        self.acts.finish()

    def is_empty(self) -> bool:
        """Whether no key is left but leases without an item, which end later than we can wait, and
        the one by which undo files know the server."""
        if self._db.dbsize() and not self._db.exists(f"{QUEUE}:queue", f"{QUEUE}:processing"):
            end_settling_leases(self._db, QUEUE.encode(), stray=True)
        return self._db.dbsize() == self._db.exists(f"{QUEUE}:undo:server")

    def entries(self, *, ours: bool | None = None) -> list[Entry]:
        """The books in the order of time: all, or those of our workers, or of the others."""
        peers = {id(peer) for peer in self._peers[-2:]}
        books = (b for peer, b in self._books if ours is None or (id(peer) in peers) is ours)
        return sorted((each for book in books for each in read_book(book)), key=lambda e: e.at)

    def deaths(self) -> Counter[str]:
        return Counter(entry.before or "" for entry in self.entries() if entry.did == "dies")

    def story(self, item_id: bytes) -> str:
        """All that happened to an item."""
        told = [
            *((e.at, f"worker {e.pid} {e.did}") for e in self.entries() if e.item_id == item_id),
            *((at, what) for at, known, what in self.acts.told if known == item_id),
        ]
        return "\n".join([repr(item_id), *(f"{at:.6f} {what}" for at, what in sorted(told))])

    def _tick(self) -> None:
        for at, worker in enumerate(self._workers):
            status = worker.poll() if worker else DEATH_STATUS
            assert status in (None, DEATH_STATUS, -9), f"a worker broke down: status {status}"
            if status is not None:
                self._workers[at] = self._start_worker(self._peers[at], lease_s=1 + at % 2)
        self.acts.clean()
        time.sleep(_TICK_S)

    def _start_worker(self, peer: Peer, lease_s: int) -> "Popen[bytes]":
        book = self._folder / f"book-{len(self._books)}"
        self._books.append((peer, book))
        signs = {sign: self._folder / sign for sign in ("calm", "stop")}
        told = {"socket": self._server.socket, "queue": QUEUE, "lease_s": lease_s, **signs}
        seed = random.randrange(2**32)
        return start_worker(peer.command_line(do="chaos", book=book, seed=seed, **told))

    def add_some(self) -> None:
        """Three items by rwq in one batch, three by upstream's code, two by its later versions."""
        ids = [b"item-%d" % (len(self.added) + number) for number in range(8)]
        data = {item_id: b"data of " + item_id + bytes(range(256)) for item_id in ids}
        list(self._queue.add_many([NewItem(item_id, data[item_id]) for item_id in ids[:3]]))
        for item_id in ids[3:6]:
            self._upstream.add_item(self._db, upstream.Item(data[item_id], item_id.decode()))
        for item_id in ids[6:]:
            self._db.setnx(b"%s:item:%s" % (QUEUE.encode(), item_id), data[item_id])
            self._db.lpush(f"{QUEUE}:queue", item_id)
        self.added |= data


@pytest.fixture
def chaos(live_server: PrivateServer, tmp_path: Path, npm_packages: Path | str) -> Iterator[Chaos]:
    seed = int(os.environ.get("RWQ_CHAOS_SEED", random.SystemRandom().randrange(2**32)))
    # What each draws; how their steps meet is up to the machine.
    print(f"RWQ_CHAOS_SEED={seed}")
    random.seed(seed)
    peers = [python_peer() for _ in range(3)]
    if isinstance(npm_packages, Path):
        peers.append(node_peer(npm_packages))
    peers += (core_peer(death=_DEATH) for _ in range(2))
    made = Chaos(live_server, tmp_path, peers)
    yield made
    made.close()


@pytest.mark.ci
def test_every_item_is_completed_exactly_once(chaos: Chaos) -> None:
    def is_enough() -> bool:
        states = (State.ABANDONED, State.ORPHANED)
        return (
            all(chaos.deaths()[step] for step in STEPS)
            and all(chaos.acts.returned[state] for state in states)
            and all(chaos.acts.counts[act] for act in ACTS)
        )

    chaos.rage(SECONDS, is_enough)
    chaos.drain()
    # A worker of 0.1.5 takes an ID without data for an item, and completes it.
    done = [e for e in chaos.entries() if e.did == "completed" and e.data]
    completed = Counter(entry.item_id for entry in done)
    by_ours = {e.item_id for e in chaos.entries(ours=True) if e.did == "completed"}
    doubts = _doubts(chaos.entries(ours=True))
    twice = [item_id for item_id in chaos.added if completed[item_id] > 1]
    print(
        {
            "items": len(chaos.added),
            "completed": completed.total(),
            "by ours": len(by_ours),
            "in doubt": len(chaos.added) - len(completed),
            "by both": len(twice),
            "deaths before": dict(chaos.deaths()),
            "acts": dict(chaos.acts.counts),
            "returned by cleans": {str(state): n for state, n in chaos.acts.returned.items()},
        }
    )
    lost = [item_id for item_id in chaos.added if not completed[item_id] and not doubts[item_id]]
    assert not lost, "never completed:\n" + "\n".join(map(chaos.story, lost[:3]))
    wrong = [item_id for item_id in twice if item_id not in by_ours or completed[item_id] > 2]
    assert not wrong, "completed twice:\n" + "\n".join(map(chaos.story, wrong[:3]))
    assert completed.keys() <= chaos.added.keys()
    altered = [entry.item_id for entry in done if entry.data != chaos.added[entry.item_id]]
    assert not altered, "completed with other data:\n" + "\n".join(map(chaos.story, altered[:3]))


def _doubts(entries: list[Entry]) -> Counter[bytes | None]:
    """For each item, how many workers were about to complete it and did not learn the outcome."""
    settled = Counter((e.pid, e.item_id) for e in entries if e.did in ("completed", "refused"))
    intended = Counter((e.pid, e.item_id) for e in entries if e.did == "intends")
    return Counter(item_id for _, item_id in (intended - settled).elements())
