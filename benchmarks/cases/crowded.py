"""Small work beside much: no call may cost the length of a list, of a hash or of the keyspace."""

import subprocess
import time
from collections.abc import Callable, Iterator

from benchmarks.filling import PAYLOAD, QUEUE, new_ids, write_lines
from benchmarks.results import MILLISECONDS, SECONDS, Sample, Unit
from benchmarks.turn import Case, Turn

_MILLION = 1_000_000
_BATCH = 250
_MS = Unit("ms", 1000, 2)


def _ends(turn: Turn) -> Iterator[Sample]:
    """Jobs end, and leases are renewed and given back, beside a long processing list."""
    abandoned, jobs = turn.size(_MILLION), 2 * _BATCH
    work = ("work", "--batch", str(_BATCH), "--max", str(jobs), "--", "cat")
    turn.fill(waiting=jobs)
    alone = turn.rwq(*work)
    ids = turn.folder / "ids"
    turn.fill(abandoned=abandoned, waiting=jobs + 4 * _BATCH)
    beside = turn.rwq(*work)
    title = f"work --batch {_BATCH} on {jobs}, {abandoned:,} in processing"
    yield Sample(title, beside.seconds, SECONDS, 3, "none in processing", alone.seconds, beside)
    for verb in ("touch", "release", "bury", "complete"):
        turn.rwq("lease", "-n", str(_BATCH), "-o", "ids", stdout=ids)
        few = write_lines(turn.folder / "few", ids.read_bytes().split()[:20])
        for chosen in (few, ids):
            turn.rwq(verb, "-", stdin=chosen, statuses=(0, 1, 3))


def _places(turn: Turn) -> Iterator[Sample]:
    """Items are looked up and taken by name in the middle of a long main list."""
    waiting = turn.size(_MILLION)
    made = turn.fill(waiting=waiting, buried=1000)
    middle = iter(made["waiting"][waiting // 2 :])
    show = turn.rwq("show", next(middle).decode())
    few = write_lines(turn.folder / "few", made["waiting"][waiting // 3 :][:20])
    many = write_lines(turn.folder / "many", made["waiting"][waiting // 4 :][:1000])
    turn.rwq("lease", "--id", next(middle).decode())
    turn.rwq("complete", "-", stdin=write_lines(turn.folder / "buried", made["buried"][:10]))
    for verb in (("bury",), ("kick",), ("release", "--force", "--yes"), ("rm", "--yes")):
        for ids in (few, many):
            turn.rwq(*verb, "-", stdin=ids, statuses=(0, 1, 3))
    short = turn.rwq("show", turn.fill(waiting=100)["waiting"][50].decode())
    title = f"show of one of {waiting:,} waiting"
    yield Sample(title, show.seconds, MILLISECONDS, 1.5, "of 100", short.seconds, show)


def _due(turn: Turn) -> Iterator[Sample]:
    """Leases beside a backlog of due items."""
    waiting, due = turn.size(_MILLION), turn.size(20_000)
    turn.fill(waiting=waiting)
    without_s = _lease_s(turn)
    lines = write_lines(turn.folder / "lines", (PAYLOAD for _ in range(due)))
    turn.rwq("add", "--delay", "1h", stdin=lines)
    client = turn.server.client
    # Halving the scores puts all due times into the past and keeps their order.
    client.zunionstore(f"{QUEUE}:delayed", {f"{QUEUE}:delayed": 0.5})
    yield Sample(
        f"a lease beside {due:,} due, on the server",
        _lease_s(turn),
        _MS,
        10,
        "without",
        without_s,
    )


def _lease_s(turn: Turn) -> float:
    """The server's time for one lease, the mean of ten, seconds."""
    total_us = 0
    for _ in range(10):
        turn.rwq("lease")
        stats = turn.server.info("commandstats")
        total_us += sum(stats[each]["usec"] for each in stats if each.startswith("cmdstat_eval"))
    return total_us / 10 / 1e6


def _counts(turn: Turn) -> Iterator[Sample]:
    """A light clean beside many counts of returns."""
    count = turn.size(200_000)
    made = turn.fill(waiting=count)
    without = turn.rwq("clean", "light", "--grace", "0")
    client = turn.server.client
    for at in range(0, count, 1000):
        client.hset(f"{QUEUE}:returns", mapping=dict.fromkeys(made["waiting"][at : at + 1000], 1))
    beside = turn.rwq("clean", "light", "--grace", "0")
    assert client.hlen(f"{QUEUE}:returns") == count
    title = f"a light clean beside {count:,} counts"
    yield Sample(title, beside.seconds, SECONDS, 1.5, "without", without.seconds, beside)


def _foreign_keys(turn: Turn) -> Iterator[Sample]:
    """Commands on a queue of five among many keys of others: how often they walk over all."""
    count = turn.size(2_000_000)
    client = turn.server.client
    turn.fill(waiting=5)
    for _ in range(0, count, 10_000):
        client.mset({b"other:" + each: b"x" for each in new_ids(min(count, 10_000))})
    for words in (
        ("stats", "--deep"),
        ("doctor", "--grace", "0"),
        ("export",),
        ("clean", "deep", "--grace", "0"),
        ("purge", "--yes"),
    ):
        walk_s = _walk_s(turn)
        turn.rwq(*words)
        walked_s = turn.server.info("commandstats")["cmdstat_scan"]["usec"] / 1e6
        title = f"{words[0]} of 5 among {count:,} foreign keys: SCAN on the server"
        yield Sample(title, walked_s, _MS, 2.2, "one walk over the keys", walk_s)
    turn.server.empty()


def _walk_s(turn: Turn) -> float:
    """The server's time for one walk over all keys, seconds."""
    turn.server.reset_counters()
    for _ in turn.server.client.scan_iter(match=f"{QUEUE}:*", count=1000):
        pass
    return float(turn.server.info("commandstats")["cmdstat_scan"]["usec"]) / 1e6


def _idle(turn: Turn) -> Iterator[Sample]:
    """Items are added one by one while many workers wait."""
    workers, items = max(4, turn.size(100)), max(4, turn.size(40))
    client = turn.server.client
    turn.server.empty()
    processes = [
        subprocess.Popen(
            turn.command("work", "--", "true"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(workers)
    ]
    try:
        # Some may be between two waits.
        _until(lambda: client.info("clients")["blocked_clients"] >= workers * 0.8)
        cpu_s, latest_s = turn.server.cpu_s(), 0.0
        for item_id in new_ids(items):
            began_s = time.monotonic()
            client.set(f"{QUEUE}:item:".encode() + item_id, PAYLOAD)
            client.lpush(f"{QUEUE}:queue", item_id)
            _until(lambda: client.llen(f"{QUEUE}:queue") == 0)
            latest_s = max(latest_s, time.monotonic() - began_s)
            time.sleep(0.5)
        used_s = turn.server.cpu_s() - cpu_s
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
    title = f"beside {workers} idle workers"
    yield Sample(f"the server's CPU for an item {title}", used_s / items, _MS, 0.004)
    yield Sample(f"the latest of {items} items {title}", latest_s, MILLISECONDS, 1)


def _until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 120
    while not is_so():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the workers do not take what they wait for")
        time.sleep(0.02)


def _case(name: str, title: str, measure: Callable[[Turn], Iterator[Sample]]) -> Case:
    return Case(name, title, measure, rounds=1, own_longest_call=True)


CASES = [
    _case("ends-beside", "jobs that end beside 1,000,000 in processing", _ends),
    _case("places-beside", "named items in 1,000,000 waiting", _places),
    _case("due-beside", "leases beside 20,000 due", _due),
    _case("counts-beside", "a light clean beside 200,000 counts", _counts),
    _case("keys-beside", "beside 2,000,000 foreign keys", _foreign_keys),
    _case("idle-beside", "beside 100 idle workers", _idle),
]
