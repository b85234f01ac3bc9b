"""`kill -9` in the middle of an edit and of its undo, and several at once: no data are lost."""

import random
import signal
import time
from collections.abc import Callable

import pytest
import redis

from tests.conftest import Foreign, until_alone
from tests.driver import TIMEOUT_S, Rwq, undo_files, until
from tests.long import usual

KILLS = usual(4, long=100)
OLD, NEW = b"old" * 500_000, b"new" * 400_000


def kill_after(rwq: Rwq, raw: redis.Redis, begun: Callable[[], bool], *words: str) -> None:
    """Run a command with the new data on stdin, and kill it a random while after it has begun."""
    (rwq.home / "new").write_bytes(NEW)
    with (rwq.home / "new").open("rb") as stdin:
        process = rwq.start(*words, stdin=stdin)
        until(lambda: begun() or process.poll() is not None)
        time.sleep(random.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)
    until_alone(raw)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_edit_can_be_undone(rwq: Rwq, foreign: Foreign, number: int) -> None:
    foreign.waiting(b"a")
    foreign.raw.set("jobs:item:a", OLD)
    foreign.raw.config_resetstat()
    # The item was read, or the undo file is there.
    begun = (
        (lambda: bool(foreign.raw.info("commandstats").get("cmdstat_lpos")))
        if number % 2
        else (lambda: bool(undo_files(rwq)))
    )
    kill_after(rwq, foreign.raw, begun, "edit", "a", "-f", "-")
    found = foreign.raw.get("jobs:item:a")
    assert found in (OLD, NEW)
    assert found == OLD or len(undo_files(rwq)) == 1
    result = rwq("undo", "--yes")
    assert result.code == (0 if found == NEW else result.code)
    assert foreign.raw.get("jobs:item:a") == OLD
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]


def test_of_several_at_once_one_wins(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    # From now on the server has the script that reads.
    rwq.process("edit", "gone", "-f", "-", stdin=b"x")
    until_alone(foreign.raw)
    processes = [rwq.start("edit", "a", "-f", "-") for _ in range(4)]

    own = foreign.raw.client_id()

    def readers() -> int:
        later = (each for each in foreign.raw.client_list() if int(each["id"]) > own)
        return sum(client["cmd"] in ("eval", "evalsha") for client in later)

    # All have read the item before any has its data.
    until(lambda: readers() == len(processes))
    outputs = [
        process.communicate(b"by %d" % number, timeout=TIMEOUT_S)[1]
        for number, process in enumerate(processes)
    ]
    assert sorted(process.returncode for process in processes) == [0, 1, 1, 1]
    winner = [process.returncode for process in processes].index(0)
    assert foreign.raw.get("jobs:item:a") == b"by %d" % winner
    assert outputs[winner].startswith(b"set 1; ")
    assert len(undo_files(rwq)) == 1
    assert rwq("undo", "--yes").code == 0
    assert foreign.raw.get("jobs:item:a") == b"data of a"
