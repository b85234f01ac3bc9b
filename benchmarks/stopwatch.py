"""Runs one command and tells how long it took and how much memory it had at most.

A process of its own, because a child's peak memory counts from before it becomes the command: under
a parent of a gigabyte every command seems to take a gigabyte.

    python stopwatch.py RESULT COMMAND [ARGUMENT...]
"""

import os
import sys
import time


def main() -> int:
    """Write seconds and peak memory, in the unit of the system, to RESULT; exit as COMMAND did."""
    result, command = sys.argv[1], sys.argv[2:]
    began = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - began
    with open(result, "w") as file:
        file.write(f"{seconds} {usage.ru_maxrss}\n")
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
