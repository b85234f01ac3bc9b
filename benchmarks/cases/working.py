"""Workers: a Python function or a command for each item."""

import time
from collections.abc import Iterator
from pathlib import Path

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
    """`rwq work` with a command that does nothing, against xargs.

    The whole run, start-up included; and from the first item to the last, by the job log.
    """
    for count in map(turn.size, (1_000, 10_000)):
        lines = write_lines(turn.folder / "lines", (b"%d" % number for number in range(count)))
        xargs_s = timed(["xargs", "-P2", "-n1", "true"], stdin=lines).seconds
        log = turn.folder / "jobs.tsv"
        log.unlink(missing_ok=True)
        for title, options in (
            (f"work -j 2 -- true on {count:,}", ()),
            (f"the same, from its first item to its last, of {count:,}", ("--joblog", str(log))),
        ):
            turn.fill(waiting=count)
            run = turn.rwq("work", "-j", "2", "--drain", *options, "--", "true")
            assert turn.server.client.dbsize() == 0
            seconds = run.seconds if not options else _logged_s(log) * count / max(1, count - 1)
            yield Sample(
                title,
                seconds,
                microseconds_each(count),
                1 / 0.8,
                "xargs -P2 -n1 true",
                xargs_s,
                None if options else run,
            )


def _logged_s(log: Path) -> float:
    """The time from the first line of a job log to its last, seconds."""
    times = [float(line.split("\t", 1)[0]) for line in log.read_text("utf-8").splitlines()]
    return times[-1] - times[0]


CASES = [
    Case("handler", "work with a function", _handler),
    Case("commands", "work with a command", _commands, rounds=5),
]
