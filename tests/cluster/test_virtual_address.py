"""One address that leads to another server after a failover, or that cuts silent connections.

As a virtual IP, a name or a Kubernetes Service does: connections that stand stay where they are.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread

import pytest

from tests.clusters import PrivatePair, running_pair
from tests.driver import Rwq, until
from tests.long import IS_LONG
from tests.proxies import VirtualAddress

# A worker of 0.1.5 until it is ended: a line for each item that it completed, or may have.
UPSTREAM = """
import signal, sys, time, redis
from redis_work_queue import KeyPrefix, WorkQueue
queue, port, ended = WorkQueue(KeyPrefix("jobs")), int(sys.argv[1]), []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
while not ended:
    item = None
    try:
        db = redis.Redis(port=port)
        while not ended:
            item = queue.lease(db, 5, timeout=1)
            if item is not None and queue.complete(db, item):
                print(item.id(), flush=True)
            item = None
    except redis.RedisError:
        if item is not None:
            print("in doubt", item.id(), flush=True)
        time.sleep(0.2)
"""
# With --long, three minutes of a failover every 20 s.
FAILOVERS, PAUSE_S = (9, 18.0) if IS_LONG else (1, 0.5)


@pytest.fixture
def pair() -> Iterator[PrivatePair]:
    with running_pair() as started:
        yield started


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, bytes, list[bytes]]:
    """The code, stdout, and the lines on stderr of a process that has ended, or is ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err.splitlines()


@pytest.mark.ci
def test_everybody_goes_on_after_a_failover(bare_rwq: Rwq, pair: PrivatePair) -> None:
    address = VirtualAddress(pair.servers[0].port)
    rwq = bare_rwq
    rwq.variables = {**rwq.variables, "RWQ_URL": address.url, "RWQ_QUEUE": "jobs"}
    worker = rwq.start("work", "-j", "2", "--", "true")
    idle = rwq.start("work", "-q", "idle", "--", "true")
    cleaner = rwq.start("clean", "light", "--every", "0.2s", "--grace", "0.1s")
    waiting = rwq.start("lease", "--wait", "-q", "other", "-o", "data")
    watcher = rwq.start(
        "stats", "--fast", "--watch", "0.2s", "-o", "jsonl", stdout=subprocess.DEVNULL
    )
    old = subprocess.Popen(
        [sys.executable, "-c", UPSTREAM, address.url.rpartition(":")[2]], stdout=subprocess.PIPE
    )
    # Who finds a replica before it has known a primary gives up sooner.
    clients = pair.servers[0].client()
    until(lambda: clients.info("clients")["blocked_clients"] >= 4, "all waits")
    ids = rwq.home / "ids"
    with ids.open("wb") as out:
        words = ("add", "--id-from", "line", "-o", "ids")
        adder = rwq.start(*words, stdin=subprocess.PIPE, stdout=out)
    assert adder.stdin is not None
    feed, is_over, added = adder.stdin, Event(), 0

    def produce() -> None:
        nonlocal added
        while not is_over.wait(0.02):
            feed.write(b"%d\n" % added)
            feed.flush()
            added += 1

    producer = Thread(target=produce)
    producer.start()

    # A server that never took a write of it is given up sooner.
    until(lambda: ids.stat().st_size, "the first item")
    for _ in range(FAILOVERS):
        until(lambda: pair.servers[0].client().info("clients")["blocked_clients"] >= 2, "waits")
        new = pair.fail_over()
        # For a while, the address leads to a replica.
        time.sleep(PAUSE_S)
        address.to = new.port
        time.sleep(PAUSE_S)
    is_over.set()
    producer.join()
    with suppress(BrokenPipeError):
        feed.close()
    assert adder.wait(60) == 0, adder.stderr and adder.stderr.read()
    assert rwq("add", "-q", "other", "pushed", "-Q").code == 0
    assert rwq("add", "-q", "idle", "pushed", "-Q").code == 0
    primary = pair.servers[0]
    until(lambda: primary.call("EXISTS", "jobs:queue", "jobs:processing", "idle:queue") == 0)
    assert waiting.wait(60) == 0
    assert ended(waiting)[1] == b"pushed"
    old.terminate()
    theirs = old.communicate(timeout=60)[0].splitlines()
    certain = sum(b"in doubt" not in line for line in theirs)
    code, _, notes = ended(worker)
    # A worker of 0.1.5 that waits is given each item before ours has asked for it.
    words = notes[-1].decode().removeprefix("completed ").replace("nothing completed", "0")
    ours = int(words.replace(",", ""))
    print({"added": added, "completed by us": ours, "by 0.1.5": certain, "all of it": len(theirs)})
    assert code == 0
    assert ours + certain <= added <= ours + len(theirs)
    code, _, notes = ended(idle)
    assert (code, notes[-1][:11]) == (0, b"completed 1")
    code, _, notes = ended(cleaner)
    assert code in (0, 143)
    lines = [*notes, *ended(watcher)[2]]
    # An outage of 18 s is told.
    untold = (b"error",) if PAUSE_S > 5 else (b"error", b"trying again")
    assert [line for line in lines if any(word in line for word in untold)] == []


def test_a_cut_while_waiting_is_no_event(bare_rwq: Rwq, pair: PrivatePair) -> None:
    """Whatever is silent for half a second is cut."""
    address = VirtualAddress(pair.servers[0].port, silence_s=0.5)
    rwq = bare_rwq
    rwq.variables = {**rwq.variables, "RWQ_URL": address.url, "RWQ_QUEUE": "jobs"}
    worker = rwq.start("work", "--", "true")
    cleaner = rwq.start("clean", "light", "--every", "2s", "--grace", "0.1s")
    waiting = rwq.start("lease", "--wait", "-q", "other", "-o", "data")
    until(lambda: pair.servers[0].client().info("clients")["blocked_clients"] >= 1, "the waits")
    before = address.accepted
    until(lambda: address.accepted > before + 4, "the cuts")
    assert rwq("add", "-q", "other", "pushed", "-Q").code == 0
    assert waiting.wait(60) == 0
    _, out, notes = ended(waiting)
    assert (out, len(notes)) == (b"pushed", 2), notes
    assert ended(worker)[2] == [b"nothing completed"]
    assert not any(b"trying again" in line for line in ended(cleaner)[2])
