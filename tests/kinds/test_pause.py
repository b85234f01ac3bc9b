"""A server that is slow during a signal: nothing goes on before it is known whose it is."""

import os
import signal
import sys

import redis

from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, next_line, state_of, until

# It writes as long as it runs, and starts no process.
WRITING = """
import os, time
print(os.getpid(), flush=True)
while True:
    open("ran", "a").write("x")
    time.sleep(0.01)
"""
PAUSE_MS = 1500


def test_after_fg_it_is_known_first_whose_items_run(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    """It was stopped for so long that another worker has its item by now."""
    foreign.waiting(b"1")
    worker = rwq.start("work", "--drain", "--", sys.executable, "-c", WRITING)
    command = int(next_line(worker.stdout))
    until((rwq.home / "ran").exists)
    worker.send_signal(signal.SIGTSTP)
    until(lambda: state_of(worker.pid) == "T" and state_of(command) == "T")
    written = os.stat(rwq.home / "ran").st_size
    foreign.lease(b"1", holder=b"another")
    raw.execute_command("CLIENT", "PAUSE", PAUSE_MS, "ALL")
    worker.send_signal(signal.SIGCONT)
    # Its reply comes when the pause is over, as this one does.
    raw.ping()
    until(lambda: state_of(command) in ("", "Z"))
    assert os.stat(rwq.home / "ran").st_size == written
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=TIMEOUT_S)
    assert raw.get("jobs:lease:1") == b"another"
