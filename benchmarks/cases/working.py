"""Workers: a Python function or a command for each item."""

import time
from collections.abc import Iterator

from benchmarks.cases.removing import upstream_loop_s
from benchmarks.filling import QUEUE, write_lines
from benchmarks.processes import timed
from benchmarks.results import Sample, microseconds_each
from benchmarks.turn import Case, Turn


def _handler(turn: Turn) -> Iterator[Sample]:
    """`WorkQueue.work` with a function that does nothing, against upstream's worker loop."""
    from rwq_cli.core import Server, WorkQueue, connect

    count = turn.size(10_000)
    turn.fill(waiting=count)
    upstream_s = upstream_loop_s(turn, count)
    for concurrency, limit in ((1, 1 / 0.8), (4, 1 / 0.8)):
        turn.fill(waiting=count)
        connection = connect(Server(turn.server.url))
        started = time.perf_counter()
        WorkQueue(connection, QUEUE).work(lambda _job: None, drain=True, concurrency=concurrency)
        seconds = time.perf_counter() - started
        connection.close()
        assert turn.server.client.dbsize() == 0
        yield Sample(
            f"work(function) on {count:,}, {concurrency} at once",
            seconds,
            microseconds_each(count),
            limit,
            "upstream 0.1.5's loop",
            upstream_s,
        )


def _commands(turn: Turn) -> Iterator[Sample]:
    """`rwq work` with a command that does nothing, against xargs; start-up included."""
    count = turn.size(1_000)
    lines = write_lines(turn.folder / "lines", (b"%d" % number for number in range(count)))
    xargs_s = timed(["xargs", "-P2", "-n1", "true"], stdin=lines).seconds
    turn.fill(waiting=count)
    run = turn.rwq("work", "-j", "2", "--drain", "--", "true")
    assert turn.server.client.dbsize() == 0
    yield Sample(
        f"work -j 2 -- true on {count:,}",
        run.seconds,
        microseconds_each(count),
        1 / 0.8,
        "xargs -P2 -n1 true",
        xargs_s,
        run,
    )


CASES = [
    Case("handler", "work with a function", _handler),
    Case("commands", "work with a command", _commands, rounds=5),
]
