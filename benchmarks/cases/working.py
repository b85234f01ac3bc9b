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
    for concurrency, limit in ((1, 1 / 0.9), (4, 1 / 1.3)):
        turn.fill(waiting=count)
        upstream_s = upstream_loop_s(turn, count)
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
    """`rwq work` with short commands, against xargs, in turn.

    The whole run, start-up included; and from the first item to the last, by the job log.
    """
    log = turn.folder / "jobs.tsv"
    for items, each, command, limit, logged in (
        (1_000, "-n1", ("true",), 1 / 0.6, False),
        (10_000, "-n1", ("true",), 1 / 0.75, False),
        (10_000, "-n1", ("true",), 1 / 0.75, True),
        # sleep would add a line that is its argument to its time.
        (1_000, "-I{}", ("sleep", "0.01"), 1 / 0.95, True),
    ):
        count = turn.size(items)
        lines = write_lines(turn.folder / "lines", (b"%d" % number for number in range(count)))
        xargs_s = timed(["xargs", "-P2", each, *command], stdin=lines).seconds
        turn.fill(waiting=count)
        log.unlink(missing_ok=True)
        options = ("--joblog", str(log)) if logged else ()
        run = turn.rwq("work", "-j", "2", "--drain", *options, "--", *command)
        assert turn.server.client.dbsize() == 0
        name = " ".join(command)
        title = f"work -j 2 -- {name} on {count:,}" + (", first item to last" if logged else "")
        yield Sample(
            title,
            _logged_s(log) * count / max(1, count - 1) if logged else run.seconds,
            microseconds_each(count),
            limit,
            f"xargs -P2 {each} {name}",
            xargs_s,
            None if logged else run,
        )


def _logged_s(log: Path) -> float:
    """The time from the first line of a job log to its last, seconds."""
    times = [float(line.split("\t", 1)[0]) for line in log.read_text("utf-8").splitlines()]
    return times[-1] - times[0]


CASES = [
    Case("handler", "work with a function", _handler),
    Case("commands", "work with a command", _commands, rounds=5),
]
