"""`rwq add` on pipes: items go in while more are awaited, and memory does not grow."""

import subprocess
import sys

import redis

from tests.driver import COMMAND, TIMEOUT_S, Rwq, next_line, until


def test_an_item_is_added_before_the_pipe_is_closed(rwq: Rwq, raw: redis.Redis) -> None:
    process = rwq.start("add", "--id-from", "line", "-o", "ids")
    assert process.stdin is not None
    assert process.stdout is not None
    for number in (1, 2, 3):
        process.stdin.write(b"item %d\n" % number)
        process.stdin.flush()
        until(lambda number=number: raw.llen("jobs:queue") == number)
        # And it is told, before more is read.
        assert next_line(process.stdout) == b"item %d\n" % number
    process.stdin.write(b"without an end")
    process.stdin.close()
    assert process.wait(TIMEOUT_S) == 0
    assert raw.lindex("jobs:queue", 0) == b"without an end"


def test_memory_does_not_grow_with_the_input(rwq: Rwq, raw: redis.Redis) -> None:
    """Ten times the lines take no more memory; a --dry-run would keep the IDs, so it is real."""

    def peak_kib(lines: int) -> int:
        # A child of its own, so that the peak is that of one run.
        script = (
            "import resource, subprocess, sys;"
            "subprocess.run(sys.argv[1:], check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        source = subprocess.Popen(
            ["sh", "-c", f"yes 'some data of a usual length, such as this' | head -n {lines}"],
            stdout=subprocess.PIPE,
        )
        done = subprocess.run(
            [sys.executable, "-c", script, *COMMAND, "add"],
            stdin=source.stdout,
            env={**rwq.variables},
            cwd=rwq.home,
            capture_output=True,
            check=True,
        )
        source.wait()
        return int(done.stdout)

    small, large = peak_kib(20_000), peak_kib(200_000)
    assert raw.llen("jobs:queue") == 220_000
    assert large < small + 8 * 1024
