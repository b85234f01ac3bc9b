"""Run one command and report its time, CPU time and peak memory.

This is a process of its own because a child's peak memory counts from before its exec: under a
parent of one gigabyte every command would seem to need a gigabyte.

    python stopwatch.py RESULT COMMAND [ARGUMENT...]
"""

import os
import sys
import time


def main() -> int:
    """Write wall-clock seconds, CPU seconds and peak memory to RESULT; exit as COMMAND did."""
    result, command = sys.argv[1], sys.argv[2:]
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    with open(result, "w") as file:
        file.write(f"{seconds} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}\n")
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
