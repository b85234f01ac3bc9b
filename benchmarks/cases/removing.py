"""Items that leave the queue: completed, removed, and put back by undo."""

import random
import time
from collections.abc import Iterator

from benchmarks.filling import QUEUE, write_lines
from benchmarks.results import SECONDS, Sample, microseconds_each
from benchmarks.turn import RAW_WALK, Case, Turn

# An item that is removed is read, and written to an undo file, before.
_REMOVAL_WALKS = 13


def _lease_and_complete(turn: Turn) -> Iterator[Sample]:
    """`lease -n` into a file and `complete -` from it, against upstream's loop."""
    count = turn.size(100_000)
    upstream_count = max(100, count // 20)
    turn.fill(waiting=upstream_count)
    upstream_s = upstream_loop_s(turn, upstream_count)
    turn.fill(waiting=count)
    ids = turn.folder / "ids"
    lease = turn.rwq("lease", "-n", str(count), "-o", "ids", stdout=ids)
    complete = turn.rwq("complete", "-", stdin=ids)
    assert turn.server.client.dbsize() == 0
    yield Sample(
        f"lease -n and complete - of {count:,}",
        lease.seconds + complete.seconds,
        microseconds_each(count),
        2 / 40,
        "upstream 0.1.5's loop",
        upstream_s / upstream_count * count,
    )
    for title, run in (("lease -n", lease), ("complete -", complete)):
        yield Sample(
            f"{title} alone, of {count:,}",
            run.seconds,
            microseconds_each(count),
            1 / 40,
            "upstream 0.1.5's loop",
            upstream_s / upstream_count * count,
            run,
        )


def upstream_loop_s(turn: Turn, count: int) -> float:
    """The time of upstream's `lease` and `complete` of so many items, one after the other."""
    from redis_work_queue import KeyPrefix, WorkQueue

    queue = WorkQueue(KeyPrefix(QUEUE))
    started = time.perf_counter()
    for _ in range(count):
        item = queue.lease(turn.server.client, 60, block=False)
        assert item is not None
        assert queue.complete(turn.server.client, item)
    return time.perf_counter() - started


def _complete(turn: Turn) -> Iterator[Sample]:
    """Half of a long processing list, and part of a long main list, in random order."""
    waiting, abandoned, chosen = map(turn.size, (1_000_000, 200_000, 100_000))
    # What nobody leases is removed as by `rm`: read, and written to an undo file.
    for state, total in (("abandoned", abandoned), ("waiting", waiting)):
        made = turn.fill(waiting=waiting, abandoned=abandoned)
        walk_s = turn.raw_walk_s()
        ids = write_lines(turn.folder / "ids", random.Random(1).sample(made[state], chosen))
        run = turn.rwq("complete", "-", "--yes", stdin=ids)
        # Besides the lists, from 0.3 on, the key by which undo files know the server.
        marks = turn.server.client.exists(f"{QUEUE}:undo:server")
        assert turn.server.client.dbsize() == waiting + abandoned - chosen + 2 + marks
        yield Sample(
            f"complete {chosen:,} of {total:,} {state}, at random",
            run.seconds,
            SECONDS,
            _REMOVAL_WALKS,
            RAW_WALK,
            walk_s,
            run,
        )


def _remove(turn: Turn) -> Iterator[Sample]:
    """`rm` of many items of a long queue, and `undo`."""
    waiting, chosen = turn.size(1_000_000), turn.size(100_000)
    made = turn.fill(waiting=waiting)
    walk_s = turn.raw_walk_s()
    ids = write_lines(turn.folder / "ids", random.Random(1).sample(made["waiting"], chosen))
    removed = turn.rwq("rm", "--yes", "-", stdin=ids)
    assert turn.server.client.llen(f"{QUEUE}:queue") == waiting - chosen
    undone = turn.rwq("undo", "--yes")
    assert turn.server.client.llen(f"{QUEUE}:queue") == waiting
    for title, run, limit in (
        (f"rm {chosen:,} of {waiting:,} waiting, at random", removed, _REMOVAL_WALKS),
        (f"undo of these {chosen:,}", undone, 9),
    ):
        yield Sample(title, run.seconds, SECONDS, limit, RAW_WALK, walk_s, run)


CASES = [
    Case("lease-complete", "lease and complete", _lease_and_complete),
    Case("complete", "completing 100,000 at random", _complete, rounds=2),
    Case("remove", "rm and undo", _remove, rounds=2),
]
