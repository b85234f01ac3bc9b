"""Doctors at work beside live workers, beside each other, and when they are killed.

The workers are those of the chaos test: redis-work-queue 0.1.5, dying and stalling at any step.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
import redis
import redis_work_queue as upstream

from rwq_cli.core import Code, Diagnosis, Server, WorkQueue, connect
from tests.conftest import Foreign
from tests.item_cases import BROKEN, real_items
from tests.live.conftest import StartProcess
from tests.live.peers import python_peer
from tests.live.test_chaos import PYTHON_WORKERS, QUEUE, SECONDS, Chaos, Cleans
from tests.long import usual
from tests.servers import PrivateServer

KILLS = usual(2, long=30)
COPIES = 50
_AROUND = frozenset({Code.NO_PERSISTENCE, Code.NO_HASH_TAG})


def findings(diagnosis: Diagnosis) -> dict[Code, int]:
    return {f.code: f.count for f in diagnosis.findings if f.code not in _AROUND}


@dataclass(slots=True)
class Doctors(Cleans):
    """Doctors that cure what they find, a new one every tick; `_clean` is what each does.

    Attributes:
        fixed: How much they cured, by finding.
    """

    fixed: Counter[Code] = field(default_factory=Counter)

    def _clean(self, deep: bool) -> None:
        # The default grace period, and every other one only looks.
        diagnosis = self._queue().diagnose(fix=deep)
        for finding in diagnosis.findings:
            self.fixed[finding.code] += finding.fixed


@pytest.fixture
def chaos(
    live_server: PrivateServer, start_process: StartProcess, tmp_path: Path
) -> Iterator[Chaos]:
    made = Chaos(live_server, start_process, tmp_path, [python_peer()] * PYTHON_WORKERS)
    made.cleans = Doctors(live_server.url)
    yield made
    made.close()


def test_doctors_beside_dying_workers_lose_nothing(
    chaos: Chaos, live_server: PrivateServer
) -> None:
    doctors = chaos.cleans
    assert isinstance(doctors, Doctors)
    chaos.rage(
        SECONDS / 2,
        enough=lambda: all(doctors.fixed[code] for code in (Code.ABANDONED, Code.ORPHANED)),
    )
    chaos.drain()
    entries = chaos.entries()
    completed = Counter(entry.item_id for entry in entries if entry.did == "completed")
    wrong = [item_id for item_id in chaos.added if completed[item_id] != 1]
    assert not wrong, "not completed exactly once:\n" + "\n".join(map(chaos.story, wrong[:3]))
    for entry in entries:
        if entry.did == "completed":
            assert entry.data == chaos.added[entry.item_id], chaos.story(entry.item_id)
    # A worker that stalled before its lease may have leased what was complete: that ends by itself.
    deadline = time.monotonic() + 60
    while not chaos.is_empty() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert chaos.is_empty(), chaos.keys_left()
    connection = connect(Server(live_server.url))
    assert findings(WorkQueue(connection, QUEUE).diagnose()) == {}
    connection.close()
    print({"items": len(chaos.added), "doctors": doctors.started, "fixed": dict(doctors.fixed)})


def test_healthy_traffic_has_no_findings(live_server: PrivateServer) -> None:
    """Workers of upstream's and ours that never fail, as fast as they can."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def until_the_end(step: Callable[[WorkQueue, redis.Redis, int], object]) -> threading.Thread:
        def work() -> None:
            connection = connect(Server(live_server.url))
            queue = WorkQueue(connection, "busy")
            with live_server.client() as client:
                try:
                    for number in count():
                        if ended.is_set():
                            return
                        step(queue, client, number)
                except BaseException as error:
                    failures.append(error)
                finally:
                    connection.close()

        return threading.Thread(target=work)

    theirs = upstream.WorkQueue(upstream.KeyPrefix("busy"))

    def their_worker(_queue: WorkQueue, client: redis.Redis, _number: int) -> None:
        if (item := theirs.lease(client, 30, block=False)) is not None:
            assert theirs.complete(client, item)

    def our_worker(queue: WorkQueue, _client: redis.Redis, number: int) -> None:
        if (item := queue.lease(for_s=30)) is not None:
            verb = queue.release if number % 3 == 0 else queue.complete
            verb(item.item_id)

    threads = [
        until_the_end(step)
        for step in (
            *(their_worker, their_worker, our_worker),
            lambda _queue, client, n: theirs.add_item(client, upstream.Item(b"x", f"theirs {n}")),
            lambda queue, _client, n: queue.add(b"x", b"ours %d" % n),
        )
    ]
    for thread in threads:
        thread.start()
    connection = connect(Server(live_server.url))
    queue = WorkQueue(connection, "busy")
    deadline = time.monotonic() + min(SECONDS, 2)
    found: list[dict[Code, int]] = []
    try:
        while time.monotonic() < deadline or len(found) < 4:
            # Longer than a busy machine keeps a worker from its next command.
            found.append(findings(queue.diagnose(fix=len(found) % 2 == 0, grace_s=0.3)))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        connection.close()
    assert failures == []
    assert [one for one in found if one] == []


@pytest.mark.parametrize("number", range(KILLS))
def test_a_doctor_finishes_the_work_of_a_killed_one(
    live_server: PrivateServer, start_process: StartProcess, number: int
) -> None:
    connection = connect(Server(live_server.url))
    queue = WorkQueue(connection, "jobs")
    with live_server.client() as raw:
        there = Foreign(raw)
        pipeline = raw.pipeline()
        broken = Foreign(pipeline)
        for name, case in BROKEN.items():
            for copy in range(COPIES):
                case.make(broken, b"%s %d \xff" % (name.encode(), copy))
        pipeline.execute()
        before = real_items(raw, there)
        words = [sys.executable, "-m", "rwq_cli", "doctor", "--fix", "--grace", "200ms"]
        words += ["-u", live_server.url, "-q", "jobs", "-o", "jsonl"]
        doctors = [start_process(*words) for _ in range(2)]
        # From before their first command to after their last.
        time.sleep(0.2 + 0.6 * number / KILLS)
        doctors[0].kill()
        assert doctors[1].wait(30) == 1, "some findings need a decision"
        assert real_items(raw, there) == before
        queue.diagnose(fix=True, grace_s=0)
        assert real_items(raw, there) == before
        left = Counter(
            code for case in BROKEN.values() for code, is_left in case.findings.items() if is_left
        )
        assert findings(queue.diagnose(grace_s=0)) == {code: COPIES * n for code, n in left.items()}
        entries = raw.lrange("jobs:queue", 0, -1)
        assert len(entries) == len(set(entries))
    connection.close()
