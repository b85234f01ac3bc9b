"""Chaos beside `WorkQueue.work`: our workers and those of 0.1.5 on one queue, all killed at random.

Ours are killed from outside at any moment, and stopped for longer than their leases; they also die
between a call and its reply. Upstream's die and stall between their commands. Some items kill
whoever runs them. Light and deep cleans run all the time.

In the end each item must stand in the books as completed exactly once, or be in doubt: then its
worker was killed before the reply could be booked. Items that kill their workers are buried, and no
worker of ours runs one more often than its tries. No key is left.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rwq_cli.core import NewItem, State
from tests.live.conftest import StartProcess
from tests.live.peer_worker import POISON
from tests.live.peers import Entry, core_peer, python_peer
from tests.live.test_chaos import QUEUE, SECONDS, Chaos
from tests.long import IS_LONG
from tests.servers import PrivateServer

RETRIES = 1
_POISONS = 3
_OURS = 3
_THEIRS = 2
_ACTS_PER_S = 1.5
# Longer than any lease.
_STOP_S = 2.5
_ITEMS_PER_S = 20
# How likely a worker of ours dies at a call. In a short run it must happen soon.
_DEATH = max(0.004, 0.08 / SECONDS)
_TIMEOUT_S = 120.0 + SECONDS


class WorkChaos(Chaos):
    """A chaos in which workers of ours are killed and stopped from outside, too."""

    def __init__(self, server: PrivateServer, start: StartProcess, folder: Path) -> None:
        ours = core_peer(retries=RETRIES, death=_DEATH)
        peers = [ours] * _OURS + [python_peer()] * _THEIRS
        super().__init__(server, start, folder, peers)
        self.poisons = [b"poison-%d" % number for number in range(_POISONS)]
        self.kills = self.stops = 0
        self._began_s = time.monotonic()
        self._stopped: list[tuple[float, int]] = []

    def add_poisons(self) -> None:
        list(self._queue.add_many([NewItem(i, POISON + i) for i in self.poisons]))

    def rage(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Add for so long, and go on until enough has happened."""
        self._began_s = time.monotonic()
        while (passed := time.monotonic() - self._began_s) < seconds or not enough():
            assert passed < seconds + _TIMEOUT_S, self.deaths()
            if len(self.added) < min(passed, seconds) * _ITEMS_PER_S:
                self.add_some()
            self._act(more=passed < seconds)
            self._tick()

    def _tick(self) -> None:
        self.replace_the_dead()
        # Two kinds of clean, each begun a second after the last: a few are under way at once.
        if self.cleans.started < 2 * (time.monotonic() - self._began_s):
            self.cleans.begin()
        time.sleep(0.05)

    def _act(self, *, more: bool) -> None:
        """Kill or stop a worker of ours as often as it is time, once it has begun to work."""
        now_s = time.monotonic()
        acts = self.kills + self.stops
        if acts < 2 or (more and acts < (now_s - self._began_s) * _ACTS_PER_S):
            stopped = {pid for _, pid in self._stopped}
            at_work = {entry.pid for entry in self.entries()} - stopped
            ours = [slot.process for slot in self._slots[:_OURS] if slot.process]
            victims = [each for each in ours if each.poll() is None and each.pid in at_work]
            if victims and acts % 2:
                random.choice(victims).kill()
                self.kills += 1
            elif victims:
                pid = random.choice(victims).pid
                os.kill(pid, signal.SIGSTOP)
                self._stopped.append((now_s + _STOP_S, pid))
                self.stops += 1
        for at_s, pid in list(self._stopped):
            if now_s >= at_s:
                self.go_on(pid)
                self._stopped.remove((at_s, pid))

    def go_on(self, pid: int) -> None:
        """End a stop. Nobody but us waits for these processes, so the number is still theirs."""
        if any(slot.process and slot.process.pid == pid for slot in self._slots):
            os.kill(pid, signal.SIGCONT)

    def are_poisons_buried(self) -> bool:
        buried = self._db.zrange(f"{QUEUE}:buried", 0, -1)
        return set(self.poisons) <= set(buried)

    def reasons(self) -> list[bytes]:
        """Why the poisoned items are buried."""
        return [self._db.get(f"{QUEUE}:lease:{i.decode()}") or b"" for i in self.poisons]

    def kick_others(self) -> None:
        """Kick items that are buried although they kill nobody: their workers died too often."""
        buried = self._db.zrange(f"{QUEUE}:buried", 0, -1)
        list(self._queue.kick_many([i for i in buried if i not in self.poisons]))

    def end_poisons(self) -> None:
        list(self._queue.complete_many(self.poisons))

    def end_stops(self) -> None:
        for _, pid in self._stopped:
            self.go_on(pid)
        self._stopped.clear()

    def is_empty(self) -> bool:
        self.kick_others()
        return super().is_empty()


@pytest.fixture
def chaos(
    live_server: PrivateServer, start_process: StartProcess, tmp_path: Path
) -> Iterator[WorkChaos]:
    with ExitStack() as stack:
        made = WorkChaos(live_server, start_process, tmp_path)
        stack.callback(made.close)
        yield made


@pytest.mark.skipif(not IS_LONG, reason="it may take two minutes: --long")
def test_every_item_is_completed_once_and_poison_is_buried(chaos: WorkChaos) -> None:
    chaos.add_poisons()

    def is_enough() -> bool:
        deaths = chaos.deaths()
        return (
            chaos.are_poisons_buried()
            and all(deaths[step] for step in ("call", "reply", "poison"))
            and chaos.returned()[State.ABANDONED] > 0
        )

    chaos.rage(SECONDS, enough=is_enough)
    reasons = chaos.reasons()
    chaos.end_stops()
    chaos.end_poisons()
    chaos.drain()

    entries = chaos.entries()
    completed = Counter(entry.item_id for entry in entries if entry.did == "completed")
    doubts = _doubts(entries)
    attempts = {item_id: _attempts(entries, item_id) for item_id in chaos.poisons}
    print(
        {
            "items": len(chaos.added),
            "completed": completed.total(),
            "in doubt": sum(doubts[i] for i in chaos.added if not completed[i]),
            "refused": sum(entry.did == "refused" for entry in entries),
            "retried": sum(entry.did == "retry" for entry in entries),
            "deaths before": dict(chaos.deaths()),
            "killed": chaos.kills,
            "stopped": chaos.stops,
            "returned by cleans": {str(s): n for s, n in chaos.returned().items()},
            "runs of each poison by us": [len(each) for each in attempts.values()],
        }
    )
    lost = [i for i in chaos.added if not completed[i] and not doubts[i]]
    assert not lost, "never completed:\n" + "\n".join(map(chaos.story, lost[:3]))
    twice = [i for i in chaos.added if completed[i] > 1]
    assert not twice, "completed twice:\n" + "\n".join(map(chaos.story, twice[:3]))
    assert completed.keys() <= chaos.added.keys()
    assert all(reason.startswith(b"rwq-buried:no attempts left: ") for reason in reasons), reasons
    for each in attempts.values():
        assert len(set(each)) == len(each)
        assert max(each, default=0) <= RETRIES + 1
    deadline = time.monotonic() + 30
    while not chaos.is_empty() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert chaos.is_empty(), chaos.keys_left()


def _doubts(entries: list[Entry]) -> Counter[bytes | None]:
    """For each item, how many workers were about to complete it and did not learn the outcome."""
    settled = Counter(
        (entry.pid, entry.item_id) for entry in entries if entry.did in ("completed", "refused")
    )
    intended = Counter((entry.pid, entry.item_id) for entry in entries if entry.did == "intends")
    found: Counter[bytes | None] = Counter()
    for (_, item_id), count in (intended - settled).items():
        found[item_id] += count
    return found


def _attempts(entries: list[Entry], item_id: bytes) -> list[int]:
    """The numbers of the tries of an item by workers of ours."""
    return [e.attempt for e in entries if e.item_id == item_id and e.attempt is not None]
