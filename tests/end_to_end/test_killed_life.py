"""`kill -9` of everything at once: commands of all kinds on items in all states, beside a worker.

`RWQ_CHAOS_SECONDS` sets how long it goes on, for a longer run.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, Popen

import redis

from rwq_cli.core import Code, Connection, Status, WorkQueue
from rwq_cli.core.keys import QueueKeys
from tests.end_to_end.test_killed_bulk import Worker, pages
from tests.servers import PrivateServer

SECONDS = float(os.environ.get("RWQ_CHAOS_SECONDS", "2"))
KEYS = QueueKeys(b"jobs")
AT_ONCE = 3
ITEMS = 2000
# So many items a command is told, so that it lasts; and so long until it is killed, seconds.
_CHOSEN = 400
_KILLED_AFTER_S = (0.15, 0.8)
_SESSION = "chaos"


@dataclass(slots=True)
class Running:
    """A command on its way.

    Attributes:
        process: Its process.
        verb: What it does.
        killed_at: When it will be killed, by the monotonic clock.
        output: Where its stdout goes.
    """

    process: "Popen[bytes]"
    verb: str
    killed_at: float
    output: Path


@dataclass(slots=True)
class Life:
    """The commands, and what they said that they did.

    Attributes:
        server: The server.
        raw: A plain client.
        folder: For what goes in and comes out.
        told: The IDs that any add was told; of one that was killed, some are in.
        added: Those that an add said are in.
        completed: How often a complete said that it completed an ID.
        runs: How many commands of each verb ended by themselves, and how many were killed.
    """

    server: PrivateServer
    raw: redis.Redis
    folder: Path
    told: set[bytes] = field(default_factory=set)
    added: set[bytes] = field(default_factory=set)
    completed: Counter[bytes] = field(default_factory=Counter)
    runs: Counter[tuple[str, bool]] = field(default_factory=Counter)
    _numbers: "count[int]" = field(default_factory=count)

    def start(self) -> Running:
        """Start a command of any kind."""
        verb = random.choice(sorted(VERBS))
        words, stdin = VERBS[verb](self)
        number = next(self._numbers)
        given, output = self.folder / f"in-{number}", self.folder / f"out-{number}"
        given.write_bytes(stdin)
        with given.open("rb") as read, output.open("wb") as write:
            process = Popen(
                [sys.executable, "-m", "rwq_cli", *words, "-q", "jobs", "-u", self.server.url],
                stdin=read,
                stdout=write,
                stderr=DEVNULL,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "RWQ_SESSION": _SESSION},
            )
        after_s = random.uniform(*_KILLED_AFTER_S)
        return Running(process, verb, time.monotonic() + after_s, output)

    def end(self, running: Running) -> None:
        """Read what it said, up to the last whole line."""
        code = running.process.wait()
        assert code in (0, 1, 3, -9), (running.verb, code)
        self.runs[running.verb, code == -9] += 1
        lines = running.output.read_bytes().split(b"\n")[:-1]
        if running.verb.startswith("add"):
            self.added.update(lines)
        if running.verb == "complete":
            for record in map(json.loads, lines):
                self.completed[record["id"].encode()] += record["status"] == "completed"

    def new_items(self, delay: str) -> tuple[list[str], bytes]:
        """Some to be added, half of them delayed."""
        ids = [b"item-%d" % next(self._numbers) for _ in range(_CHOSEN)]
        self.told.update(ids)
        words = ["add", "--id-from", "line", "-o", "ids", "--delay", delay]
        return words, b"".join(item_id + b"\n" for item_id in ids)

    def some(self) -> bytes:
        """Some of all items, in whatever state they are by now."""
        known = sorted(self.added | {b"%05d" % number for number in range(ITEMS)})
        return b"".join(b"%s\n" % item_id for item_id in random.sample(known, _CHOSEN))

    def own(self) -> bytes:
        """Some of those that our session holds; most of them, when it is asked for."""
        listed = self.raw.lrange(KEYS.processing, 0, _CHOSEN)
        return b"".join(b"%s\n" % item_id for item_id in listed)


_FORCED = ("--force", "--yes")
VERBS: dict[str, Callable[[Life], tuple[list[str], bytes]]] = {
    "add later": lambda life: life.new_items("1h"),
    "add soon": lambda life: life.new_items("300ms"),
    "release": lambda life: (["release", "-", *_FORCED], life.some()),
    "delay": lambda life: (["release", "-", "--delay", "500ms", *_FORCED], life.some()),
    "bury": lambda life: (["bury", "-", "--reason", "chaos", *_FORCED], life.some()),
    "kick": lambda life: (["kick", "-"], life.some()),
    "kick all": lambda _life: (["kick", "--all"], b""),
    "lease": lambda _life: (["lease", "-n", "300", "--for", "1h", "-o", "ids"], b""),
    "lease by ID": lambda life: (
        ["lease", "--for", "1h", "-o", "ids"]
        + [f"--id={item_id.decode()}" for item_id in life.some().split()[:20]],
        b"",
    ),
    # Only what our session holds: between the LREM and the DEL of a complete of 0.1.5 a complete of
    # the same item by anybody else is told that it won, too.
    "complete": lambda life: (
        ["complete", "-", "--owner", life_session(life), "--rejected", "-o", "jsonl"],
        life.own(),
    ),
    "light clean": lambda _life: (["clean", "light", "--grace", "0.1", "--bury-after", "1"], b""),
    "deep clean": lambda _life: (["clean", "deep", "--grace", "0.1", "--bury-after", "1"], b""),
}


def life_session(life: Life) -> str:
    """The holder that our leases name."""
    for holder in life.raw.mget(
        [KEYS.lease(i) for i in life.raw.lrange(KEYS.processing, 0, 50)] or ["x"]
    ):
        if holder and holder.endswith(_SESSION.encode()):
            return str(holder.decode())
    return _SESSION


def test_killed_commands_of_all_kinds_lose_nothing(server: PrivateServer, tmp_path: Path) -> None:
    with server.client() as raw:
        raw.flushall()
        ids = [b"%05d" % number for number in range(ITEMS)]
        raw.mset({KEYS.item(item_id): b"data of " + item_id for item_id in ids})
        raw.lpush(KEYS.main, *ids)
        life, worker = Life(server, raw, tmp_path), Worker(raw)
        running: list[Running] = []
        with worker.at_work():
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                while len(running) < AT_ONCE:
                    running.append(life.start())
                for command in list(running):
                    if command.process.poll() is None and time.monotonic() > command.killed_at:
                        command.process.kill()
                    if command.process.poll() is not None:
                        running.remove(command)
                        life.end(command)
                time.sleep(0.01)
            for command in running:
                command.process.kill()
                life.end(command)
        check(life, worker, set(ids))


def check(life: Life, worker: Worker, seeded: set[bytes]) -> None:
    """Nothing lost, nothing told twice, and no half state that a clean does not repair."""
    raw = life.raw
    prefix = len(KEYS.item_prefix)
    stored = {key[prefix:] for key in raw.scan_iter(b"jobs:item:*", count=10_000)}
    by_worker = Counter(worker.completed)
    told = {item_id for item_id, number in life.completed.items() if number}
    assert not {item_id: n for item_id, n in (life.completed + by_worker).items() if n > 1}
    assert not stored & (told | by_worker.keys())
    # What a complete did that was killed before it said so has left an outcome.
    kept = {key[len(KEYS.result_prefix) :] for key in raw.scan_iter(b"jobs:result:*", count=10_000)}
    assert told <= kept
    assert not stored & kept
    acknowledged = seeded | life.added | set(worker.added)
    assert acknowledged <= stored | kept | by_worker.keys()
    assert stored <= acknowledged | life.told

    # Time passes: leases and the guards of cleans that were killed end, what is delayed is due.
    for pattern in (b"jobs:lease:*", b"jobs:leased_by_session:*"):
        for page in pages(raw, pattern):
            holders = raw.mget(page)
            ours = (b"rwq-delayed:", b"rwq-buried:")
            ends = [k for k, v in zip(page, holders, strict=True) if v and not v.startswith(ours)]
            if ends:
                raw.delete(*ends)
    later = raw.zrange(KEYS.delayed, 0, -1)
    if later:
        raw.zadd(KEYS.delayed, dict.fromkeys(later, 1.0))
    queue = WorkQueue(Connection(raw), KEYS.name)
    for _ in range(2):
        list(queue.deep_clean(grace_s=0))
    # What it says of any server without persistence, and of a name without a hash tag.
    codes = frozenset(Code) - {Code.NO_PERSISTENCE, Code.NO_HASH_TAG}
    assert queue.diagnose(grace_s=0, codes=codes).findings == ()
    buried = raw.zrange(KEYS.buried, 0, -1)
    assert raw.zcard(KEYS.delayed) == 0
    waiting = raw.lrange(KEYS.main, 0, -1)
    assert sorted(waiting + buried) == sorted(stored)
    kicked = Counter(outcome.status for outcome in queue.kick_many(buried))
    assert kicked == Counter({Status.KICKED: len(buried)} if buried else {})
    taken = [item.item_id for item in queue.lease_many(len(stored) + 10)]
    assert sorted(taken) == sorted(stored)
    list(queue.complete_many(taken))
    left = [key for key in raw.scan_iter() if not key.startswith(KEYS.result_prefix)]
    assert left == []
    print(dict(life.runs), {"completed by rwq": len(told), "by the worker": len(by_worker)})
