"""Signals to the worker, sent by its own command, and what is in the queue after each.

`$PPID` is the worker. What only a signal ends is a process: one that is deaf is killed in the end.
"""

import os
import signal
import time

import pytest
import redis

from tests.cli.work.test_exits import script
from tests.conftest import Foreign, contents
from tests.driver import TIMEOUT_S, Rwq, next_line, state_of, until

# Send a signal to the worker, and wait until it has it: two that are pending are one.
TELL = (
    "tell() { kill -$1 $PPID; "
    "while grep -q 'ShdPnd:.[0-9a-f]*[1-9a-f]' /proc/$PPID/status; do :; done; }; "
)


def telling(text: str) -> tuple[str, ...]:
    """The words of a command that runs this shell script, in which `tell INT` sends a signal."""
    return script(TELL + text)


ENDED = (
    "rwq: waiting for 1 command to end; Ctrl-C ends it and releases the items\n"
    "rwq: sent SIGTERM to 1 command; Ctrl-C sends SIGKILL\n"
)


@pytest.mark.parametrize("name", ["INT", "TERM"])
class TestTheFirst:
    def test_finishes_what_runs_and_takes_no_more(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign, name: str
    ) -> None:
        foreign.waiting(b"1", b"2")
        os.mkfifo(rwq.home / "go")
        worker = rwq.start("work", *telling(f"tell {name}; read line <go; echo done"))
        # It may see the end of a quicker command together with the signal.
        assert next_line(worker.stderr) == ENDED.splitlines(keepends=True)[0].encode()
        (rwq.home / "go").write_text("\n")
        out, told = worker.communicate(timeout=TIMEOUT_S)
        assert (worker.returncode, out, told) == (0, b"done\n", b"completed 1\n")
        assert raw.lrange("jobs:queue", 0, -1) == [b"2"]
        assert raw.exists("jobs:processing") == 0


def test_a_command_killed_as_it_starts_is_put_back(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    """Ctrl-C reaches a command that has no process group of its own yet."""
    foreign.waiting(b"1", b"2")
    result = rwq.process("work", "--retries", "0", *telling("tell INT; kill -INT $$"))
    assert (result.code, result.notes.splitlines()[-1]) == (0, "released 1")
    assert raw.lrange("jobs:queue", 0, -1) == [b"2", b"1"]
    assert raw.exists("jobs:processing", "jobs:returns", "jobs:buried") == 0


class TestTheSecond:
    def test_ends_commands_and_releases_items_uncounted(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2")
        result = rwq.process("work", *telling("tell INT; tell INT; sleep 60; echo not"))
        assert result.as_tuple() == (130, "", f"{ENDED}interrupted: released 1\n")
        assert raw.lrange("jobs:queue", 0, -1) == [b"2", b"1"], "the first one is next again"
        assert raw.exists("jobs:processing", "jobs:returns") == 0

    def test_completes_what_still_succeeds(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2")
        # Its stderr is closed because the shell says there how its sleep ended.
        text = "exec 2>&-; trap 'echo saved; exit 0' TERM; tell INT; tell INT; "
        result = rwq.process(
            "work", *telling(text + "for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done")
        )
        assert result.as_tuple() == (130, "saved\n", f"{ENDED}interrupted: completed 1\n")
        assert raw.lrange("jobs:queue", 0, -1) == [b"2"]

    def test_comes_by_itself_after_the_grace_time(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        result = rwq.process("work", "--grace", "50ms", *telling("tell TERM; sleep 60"))
        assert result.as_tuple() == (130, "", f"{ENDED}interrupted: released 1\n")
        assert raw.lrange("jobs:queue", 0, -1) == [b"1"]


def test_the_third_kills(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    result = rwq.process(
        "work",
        *telling("trap '' TERM; tell INT; tell INT; tell INT; sleep 60; echo not"),
    )
    assert result.as_tuple() == (130, "", f"{ENDED}interrupted: released 1\n")
    assert raw.lrange("jobs:queue", 0, -1) == [b"1"]


def test_usr1_pauses_and_usr2_goes_on(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2")
    worker = rwq.start("work", "--drain", *telling("[ $RWQ_ID = 2 ] || tell USR1; echo ok"))
    assert next_line(worker.stdout) == b"ok\n"
    until(lambda: not raw.exists("jobs:item:1"))
    time.sleep(0.1)
    assert raw.lrange("jobs:queue", 0, -1) == [b"2"]
    assert worker.poll() is None
    worker.send_signal(signal.SIGUSR2)
    assert worker.wait(TIMEOUT_S) == 0
    assert contents(raw) == {}


def test_hup_drains(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2")
    assert rwq.process("work", *telling("tell HUP")).as_tuple() == (0, "", "completed 2\n")


def test_a_signal_to_the_group_reaches_no_command(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    """Ctrl-C sends one to every process of the foreground's group."""
    foreign.waiting(b"1")
    worker = rwq.start("work", *script("echo began; sleep 0.2; echo done"), process_group=0)
    assert next_line(worker.stdout) == b"began\n"
    os.killpg(worker.pid, signal.SIGINT)
    out, _ = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, out) == (0, b"done\n")
    assert contents(raw) == {}


def test_a_command_with_default_signals(rwq: Rwq, foreign: Foreign) -> None:
    """Python ignores SIGPIPE, and a command must not: `yes | head` would fail."""
    foreign.waiting(b"1")
    result = rwq("work", "--drain", *script("grep SigIgn /proc/self/status"))
    assert int(result.text.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_ctrl_z_stops_the_commands_too(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    os.mkfifo(rwq.home / "go")
    # It starts no process: a shell that has just forked (vfork) cannot stop before its child runs.
    worker = rwq.start("work", "--drain", *script("echo $$; read line <go; echo done"))
    command = int(next_line(worker.stdout))
    worker.send_signal(signal.SIGTSTP)
    until(lambda: state_of(worker.pid) == "T" and state_of(command) == "T")
    worker.send_signal(signal.SIGCONT)
    # Longer than between two looks at whether it is stopped.
    time.sleep(0.6)
    (rwq.home / "go").write_text("\n")
    out, told = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, out, told) == (0, b"done\n", b"completed 1\n")
    assert contents(raw) == {}


def test_a_worker_that_is_killed_leaves_no_command(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    """Nobody renews its lease: another worker would run the item beside it."""
    foreign.waiting(b"1", b"2")
    text = "trap 'echo ended >ended; exit' TERM; sleep 600 & echo $$ $!; wait"
    ignoring = "trap '' TERM; echo $$ $$; exec sleep 600"
    worker = rwq.start(
        *("work", "-j", "2", "--kill-after", "100ms"),
        *script(f"[ $RWQ_ID = 1 ] && {{ {text}; }}; {ignoring}"),
    )
    pids = [int(pid) for _ in "12" for pid in next_line(worker.stdout).split()]
    worker.kill()
    worker.wait(TIMEOUT_S)
    until(lambda: all(state_of(pid) in ("", "Z") for pid in pids))
    assert (rwq.home / "ended").read_text() == "ended\n"
    assert raw.llen("jobs:processing") == 2, "a clean returns them when their leases have ended"
