"""Waiting, leased, delayed and buried items beside upstream's workers and cleaners.

Real workers of 0.1.5, in Python and where npm is in Node.js, and workers as the later versions are;
their light cleans; and a deep clean as the seed documents describe it, run again and again. None of
them knows a word of delayed and buried items: what keeps them off is the guard alone, a lease of
both generations' names.
"""

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import redis_work_queue as upstream

from tests.driver import Rwq, until
from tests.live.conftest import StartProcess
from tests.live.peers import (
    Entry,
    Peer,
    later_peer,
    node_peer,
    python_peer,
    read_book,
    seed_cleaner,
)
from tests.live.raw_keys import end_settling_leases
from tests.long import usual
from tests.servers import PrivateServer

QUEUE = "jobs"
SECONDS = usual(2, long=60)
_TICK_S = 0.2
_LEASE_S = 2
_END_TIMEOUT_S = 30.0
# A guard outlives the due time by this, ms.
_MARGIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Cast:
    """Who is at work beside us.

    Attributes:
        workers: The program of each worker.
        cleaners: The program of each cleaner, and what it is told to do.
        one_winner: Whether each item's completion is reported once. Cleaners of one generation do
            not see the leases of the other's workers, who then work on one item at the same time;
            that 0.1.5 goes by its LREM and the later ones by their DEL lets two of them win.
    """

    workers: list[Peer]
    cleaners: list[tuple[Peer, str]]
    one_winner: bool = True


@pytest.fixture(params=["0.1", "later", "both"])
def cast(request: pytest.FixtureRequest, npm_packages: Path | str) -> Cast:
    """Upstream's programs: of 0.1.5, of the later versions, and of both on one queue."""
    old = [python_peer(), python_peer()]
    if isinstance(npm_packages, Path):
        old[1] = node_peer(npm_packages)
    else:
        warnings.warn(f"no workers of Node.js: {npm_packages}", stacklevel=1)
    new = [later_peer(), later_peer()]
    old_cleans = [(peer, "cleans") for peer in old] + [(seed_cleaner("leased_by_session"), "deep")]
    new_cleans = [(seed_cleaner("lease"), "light"), (seed_cleaner("lease"), "deep")]
    if request.param == "0.1":
        return Cast(old, old_cleans)
    if request.param == "later":
        return Cast(new, new_cleans)
    return Cast(old + new, old_cleans + new_cleans, one_winner=False)


class Stage:
    """One queue, everybody at it, and the books of who did what.

    Args:
        server: The server.
        rwq: The program under test.
        start: Starts a process that ends with the test.
        folder: For the books, and the sign to stop.
        cast: Upstream's programs.

    Attributes:
        raw: A plain client.
        earliest_ms: ID to the time before which it must not run, by the server's clock.
        added: ID to data of every item.
        buried: The items that must not run at all.
        held: Items that somebody holds by rwq.
    """

    def __init__(
        self, server: PrivateServer, rwq: Rwq, start: StartProcess, folder: Path, cast: Cast
    ) -> None:
        self.raw = server.client()
        self.rwq = rwq
        self.cast = cast
        self.earliest_ms: dict[bytes, float] = {}
        self.added: dict[bytes, bytes] = {}
        self.buried: set[bytes] = set()
        self.held: set[bytes] = set()
        self._server = server
        self._start = start
        self._folder = folder
        self._numbers = count()
        self._upstream = upstream.WorkQueue(upstream.KeyPrefix(QUEUE))

    def close(self) -> None:
        self.stop_sign.touch()
        self.raw.close()

    @property
    def stop_sign(self) -> Path:
        return self._folder / "stop"

    def begin(self) -> None:
        """Workers and cleaners start. Nobody dies or stalls here: that is the chaos test's part."""
        (self._folder / "calm").touch()
        for worker in self.cast.workers:
            self._start_peer(worker, "chaos", "worker")
        for cleaner, does in self.cast.cleaners:
            self._start_peer(cleaner, does, "cleaner")

    def _start_peer(self, peer: Peer, does: str, book: str) -> None:
        self._start(
            *peer.command_line(
                do=does,
                socket=self._server.socket,
                queue=QUEUE,
                book=self._folder / f"{book}-{next(self._numbers)}",
                calm=self._folder / "calm",
                stop=self.stop_sign,
                lease_s=_LEASE_S,
            )
        )

    def entries(self, book: str) -> list[Entry]:
        """What the workers, or the cleaners, wrote; of ghosts nothing.

        0.1.5 leases a ghost as an item without data, and completes it; no item here has none.
        """
        books = self._folder.glob(f"{book}-*")
        return [entry for path in books for entry in read_book(path) if entry.data != b""]

    def now_ms(self) -> float:
        """The server's clock, unix ms."""
        seconds, microseconds = self.raw.time()
        return float(seconds) * 1000 + float(microseconds) / 1000

    def run(self, *words: str, stdin: bytes = b"") -> list[str]:
        """Run rwq, which must do all that it is told; returns its lines."""
        result = self.rwq(*words, stdin=stdin)
        assert result.code == 0, result
        return result.text.splitlines()

    def add(self, number: int, delays_s: tuple[float, ...] = ()) -> list[bytes]:
        """Add items by rwq, delayed ones if there are delays."""
        ids = [b"item-%d" % next(self._numbers) for _ in delays_s or range(number)]
        lines = []
        for at, item_id in enumerate(ids):
            self.added[item_id] = b"data of " + item_id
            record: dict[str, object] = {
                "id": item_id.decode(),
                "data": f"data of {item_id.decode()}",
            }
            if delays_s:
                self.earliest_ms[item_id] = self.now_ms() + delays_s[at] * 1000
                record["delay"] = delays_s[at]
            lines.append(json.dumps(record))
        self.run("add", "--format", "jsonl", stdin="\n".join(lines).encode())
        return ids

    def add_by_upstream(self, number: int) -> None:
        for _ in range(number):
            item_id = b"item-%d" % next(self._numbers)
            self.added[item_id] = b"data of " + item_id
            self._upstream.add_item(self.raw, upstream.Item(self.added[item_id], item_id.decode()))

    def bury(self, ids: list[bytes]) -> None:
        self.buried.update(ids)
        names = [item_id.decode() for item_id in ids]
        self.run("bury", *names, "--reason", "must not run", "--yes")

    def hold(self, number: int, lease: str) -> list[bytes]:
        """Lease by rwq."""
        result = self.rwq("lease", "-n", str(number), "--for", lease, "-o", "ids")
        assert result.code in (0, 1), result
        return result.out.splitlines()

    def completed(self) -> Counter[bytes]:
        """How often workers say that they completed each item."""
        return Counter(
            entry.item_id
            for entry in self.entries("worker")
            if entry.did == "completed" and entry.item_id
        )

    def items_left(self) -> set[bytes]:
        return {key[len(QUEUE) + 6 :] for key in self.raw.scan_iter(f"{QUEUE}:item:*")}

    def check(self, ran: set[bytes]) -> Counter[bytes]:
        """Nobody ran early or what must not run; `ran` were completed. Returns the completes."""
        # A worker writes into its book after it completed.
        until(lambda: self.completed().keys() >= ran)
        completed = self.completed()
        assert completed.keys() == ran
        entries = self.entries("worker")
        leased = [entry for entry in entries if entry.did == "leased"]
        early = [
            (entry.item_id, self.earliest_ms[entry.item_id] - entry.server_ms)
            for entry in leased
            if entry.item_id in self.earliest_ms
            and entry.server_ms is not None
            and entry.server_ms < self.earliest_ms[entry.item_id]
        ]
        assert not early, f"they ran so many ms early: {early}"
        forbidden = {entry.item_id for entry in leased} & (self.buried | self.held)
        assert not forbidden, f"they ran all the same: {forbidden}"
        for entry in entries:
            if entry.item_id and entry.did == "completed":
                assert entry.data == self.added[entry.item_id]
        if self.cast.one_winner:
            twice = [item_id for item_id, number in completed.items() if number != 1]
            assert not twice, f"completed more than once: {twice}"
        return completed


@pytest.fixture
def stage(
    live_server: PrivateServer, start_process: StartProcess, tmp_path: Path, cast: Cast
) -> Iterator[Stage]:
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "USER": "tester",
        "LANG": "C.UTF-8",
        "RWQ_URL": live_server.url,
        "RWQ_QUEUE": QUEUE,
    }
    made = Stage(live_server, Rwq(variables, tmp_path), start_process, tmp_path, cast)
    yield made
    made.close()


def turns(seconds: float) -> Iterator[int]:
    """Numbers, one a tick, for so long."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        yield number
        number += 1
        time.sleep(_TICK_S)


def cleaning_until(stage: Stage, condition: Callable[[], bool]) -> None:
    """Clean by rwq until something is so."""
    deadline = time.monotonic() + _END_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"still there: {sorted(stage.items_left())[:10]}"
        stage.run("clean", "light", "--grace", "0.1")
        stage.run("clean", "deep", "--grace", "0.1")


def test_items_run_once_not_early_and_not_while_buried(stage: Stage) -> None:
    stage.add(30)
    stage.bury(stage.add(8))
    # Taken before anybody else is at work: a worker whose pop a cleaner has taken back still runs.
    stage.held.update(stage.hold(15, "1h"))
    stage.hold(3, "1s")
    stage.add(0, (0.3, 0.5, 1, 1.5, 2))
    stage.raw.set(f"{QUEUE}:item:orphan", "data of orphan")
    stage.added[b"orphan"] = b"data of orphan"
    stage.begin()

    for turn in turns(SECONDS):
        stage.add(3)
        stage.add_by_upstream(2)
        stage.add(0, (0.2, 0.4, 1.1))
        if turn % 3 == 0:
            (parked,) = stage.add(0, (3600.0,))
            stage.bury([parked])
        if turn % 3 == 1:
            stage.hold(1, "1s")
        if len(stage.held) > 5:
            item_id = stage.held.pop()
            stage.earliest_ms[item_id] = stage.now_ms() + 700
            stage.run("release", item_id.decode(), "--delay", "700ms")
        stage.run("clean", "deep" if turn % 4 == 3 else "light", "--grace", "0.1")

    kept = stage.buried | stage.held
    cleaning_until(stage, lambda: stage.items_left() == kept)
    ran = stage.added.keys() - kept
    stage.check(ran)

    held = b"\n".join(sorted(stage.held))
    stage.run("complete", "-", stdin=held)
    assert stage.items_left() == stage.buried
    assert {*stage.run("ls", "buried", "-n", "0", "-o", "ids")} == {
        item_id.decode() for item_id in stage.buried
    }

    kicked = stage.buried
    stage.buried = set()
    for item_id in kicked:
        stage.earliest_ms[item_id] = stage.now_ms()
    stage.run("kick", "--all")
    cleaning_until(stage, lambda: not stage.items_left())
    completed = stage.check(ran | kicked)

    stage.stop_sign.touch()
    # What is left of leases that were set for a ghost ends by itself.
    end_settling_leases(stage.raw, QUEUE.encode())
    until(lambda: not [*stage.raw.scan_iter(f"{QUEUE}:lease*")], timeout_s=_LEASE_S + 5)
    stage.run("clean", "deep", "--grace", "0.1")
    assert stage.raw.keys() == []
    print({"items": len(stage.added), "delayed": len(stage.earliest_ms), "kicked": len(kicked)})
    assert completed.total() >= len(stage.added) - len(stage.held)


def test_without_rwq_delayed_items_run_once_after_their_guards(stage: Stage) -> None:
    """The deep clean of another language finds them when their guards have ended."""
    waiting = stage.add(5)
    delayed = stage.add(0, (0.5,) * 10 + (1.0,) * 10)
    stage.bury(stage.add(3))
    # All that a server keeps of an expiry is its instant. A guard whose expiry is brought forward
    # is the same key as one on which a minute has passed, and ends in the same way.
    ends_ms: dict[bytes, float] = {}
    for item_id in delayed:
        ends_ms[item_id] = stage.now_ms() + 1e9
        for kind in ("lease", "leased_by_session"):
            key = f"{QUEUE}:{kind}:{item_id.decode()}"
            now_ms, left_ms = stage.now_ms(), stage.raw.pttl(key) - _MARGIN_MS + 400
            assert stage.raw.pexpire(key, left_ms)
            ends_ms[item_id] = min(ends_ms[item_id], now_ms + left_ms)

    stage.begin()
    until(lambda: stage.items_left() == stage.buried, timeout_s=_END_TIMEOUT_S)

    returned = [entry for entry in stage.entries("cleaner") if entry.item_id in ends_ms]
    assert {entry.item_id for entry in returned} == {*delayed}
    for entry in returned:
        assert entry.item_id is not None
        assert entry.server_ms is not None
        assert entry.server_ms >= ends_ms[entry.item_id]
    stage.check({*waiting, *delayed})
    # They are gone, and rwq, when it comes back, forgets them.
    assert stage.raw.zcard(f"{QUEUE}:delayed") == len(delayed)
    stage.stop_sign.touch()
    stage.run("clean", "deep", "--grace", "0.1")
    assert stage.raw.exists(f"{QUEUE}:delayed") == 0
    assert {*stage.run("ls", "buried", "-o", "ids")} == {id_.decode() for id_ in stage.buried}
