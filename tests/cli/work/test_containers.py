"""As workers are run: as process 1, told to stop, with commands of every kind behind pipes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.cli.work.test_exits import script
from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line, state_of, until
from tests.processes import COMMAND

DRAIN = ("work", "--drain")
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
HAS_NAMESPACES = subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0


def alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z")


@pytest.mark.skipif(not HAS_NAMESPACES, reason="this machine allows no namespaces")
def test_as_process_1_it_reaps_what_commands_leave(
    rwq: Rwq, foreign: Foreign, tmp_path: Path
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(10)), b"last")
    leave = "setsid sh -c 'sleep 0.1' >/dev/null 2>&1 &"
    count = (
        f"[ $RWQ_ID != last ] || {{ sleep 1.5; ps -eo stat= | grep -c ^Z >{tmp_path}/zombies; }}; :"
    )
    worker = subprocess.run(
        [
            *NAMESPACE,
            *COMMAND,
            *DRAIN,
            *script(f"if [ $RWQ_ID = last ]; then {count}; else {leave} fi; :"),
        ],
        env=rwq.variables,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert worker.returncode == 0, worker.stderr
    assert (tmp_path / "zombies").read_text() == "0\n"


def test_an_ended_command_takes_its_tree_along(rwq: Rwq, foreign: Foreign, tmp_path: Path) -> None:
    """What it has started in another session, and what has no parent any more."""
    foreign.waiting(b"1")
    starts = (
        f"setsid sh -c 'sleep 600 & echo $! $$ >{tmp_path}/pids; wait' >/dev/null 2>&1 & sleep 600"
    )
    result = rwq(
        *("work", "--max", "1", "--retries", "0", "--max-time", "500ms", "--kill-after", "2s"),
        *script(starts),
    )
    assert (result.code, result.notes.splitlines()[-1]) == (3, "buried 1")
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    until(lambda: not any(map(alive, pids)))


def test_an_end_is_not_of_the_item_leased_with_it(
    rwq: Rwq, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    text = "echo; [ $RWQ_ID != 1 ] || exec sleep 600; until [ -e go ]; do sleep 0.1; done"
    worker = rwq.start("work", "-j", "2", "--for", "600ms", "--max", "2", *script(text))
    for _ in "12":
        next_line(worker.stdout)
    foreign.lease(b"1", holder=b"other")
    assert b"rwq: 1: another session holds the item" in next_line(worker.stderr)
    (rwq.home / "go").touch()
    _, told = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, told) == (3, b"completed 1, lost 1\n")
    assert not raw.exists("jobs:item:2")


def test_asking_on_the_terminal_fails_at_once(rwq: Rwq, foreign: Foreign, raw: redis.Redis) -> None:
    foreign.waiting(b"1")
    result = rwq("work", "--max", "1", "--retries", "0", *script("read answer </dev/tty"))
    assert result.code == 3
    assert raw.zrange("jobs:buried", 0, -1) == [b"1"]


def test_a_command_may_end_during_the_look_for_stops(
    rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.waitid

    def look_as_it_ends(kind: int, pid: int, options: int) -> object:
        if options & os.WSTOPPED:
            look(kind, pid, os.WEXITED | os.WNOWAIT)
        return look(kind, pid, options)

    monkeypatch.setattr(os, "waitid", look_as_it_ends)
    foreign.waiting(b"1")
    assert rwq("work", "--drain", *script("sleep 0.6")).as_tuple() == (0, "", "completed 1\n")


def test_a_command_that_is_stopped_is_named(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    worker = rwq.start(*DRAIN, *script("kill -STOP $$; true"))
    pid = int(next_line(worker.stderr).split(b"process ")[1].partition(b")")[0])
    os.kill(pid, signal.SIGCONT)
    assert worker.wait(TIMEOUT_S) == 0


def test_commands_have_their_own_descriptors(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2", b"3")
    stops_blocking = "import os; os.set_blocking(1, False); os.set_blocking(2, False)"
    writes = f"import os; {stops_blocking}; os.set_blocking(1, True); os.write(1, b'x' * 99999)"
    worker = rwq.start(*DRAIN, "-j", "3", "--", sys.executable, "-c", writes)
    assert worker.stdout is not None
    time.sleep(1)
    assert worker.stdout.read() == b"x" * 3 * 99999
    assert worker.wait(TIMEOUT_S) == 0


def test_lines_stay_whole_whatever_runs_at_once(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(40)))
    text = "for i in 1 2 3 4 5; do printf %s $RWQ_ID; printf ' and '; sleep 0.01; echo $i; done"
    lines = rwq.process(*DRAIN, "-j", "8", *script(text)).text.splitlines()
    wanted = [f"{number} and {i}" for number in range(40) for i in range(1, 6)]
    assert sorted(lines) == sorted(wanted)


@pytest.mark.ci
def test_a_reader_that_stalls_keeps_nobody_alive(
    rwq: Rwq, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(3000)))
    worker = rwq.start("work", "-j", "4", "-o", "jsonl", "--", "true")
    # Nobody reads: the pipe is full, and what is reported is kept.
    until(lambda: raw.llen("jobs:queue") < 2500 and raw.llen("jobs:processing") == 0)
    for _ in range(3):
        worker.send_signal(signal.SIGTERM)
        # Two that are pending are one.
        time.sleep(0.2)
    assert worker.wait(TIMEOUT_S) == 130
    assert raw.llen("jobs:processing") == 0


def test_a_stalled_reader_holds_up_no_other_command(
    rwq: Rwq, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"flood", b"hang", *(b"%d" % number for number in range(20)))
    lines = 200_000
    commands = (
        f"case $RWQ_ID in flood) seq {lines}; exec sleep 600;; hang) exec sleep 600;; esac; echo x"
    )
    worker = rwq.start(
        *(*DRAIN, "-j", "2", "--max-time", "1s", "--retries", "0"), *script(commands)
    )
    assert worker.stderr is not None
    ends = [next_line(worker.stderr) for _ in range(2)]
    assert sorted(end.split(b";")[0] for end in ends) == [
        b"rwq: flood: timed out after 1s",
        b"rwq: hang: timed out after 1s",
    ]
    until(lambda: not raw.exists("jobs:queue", "jobs:processing"))
    # It is not over before all is read.
    assert worker.poll() is None
    out, err = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, err) == (3, b"completed 20, buried 2\n")
    # What was still in the command when it was ended is lost with it, from within a line on.
    read = [line for line in out.splitlines() if line != b"x"]
    assert read[:-1] == [b"%d" % number for number in range(1, len(read))]
    assert out.count(b"x\n") == 20


def test_a_hung_server_keeps_no_idle_worker(rwq: Rwq, start_server: StartServer) -> None:
    server = start_server()
    variables = {"RWQ_URL": server.url}
    worker = rwq.start("work", "--reply-timeout", "1h", "--", "true", variables=variables)
    with server.client() as raw:
        until(lambda: raw.info("clients")["connected_clients"] > 1)
    os.kill(server.process.pid, signal.SIGSTOP)
    # Its next look at the queue begins.
    time.sleep(1.5)
    worker.terminate()
    assert worker.wait(TIMEOUT_S) == 0
    os.kill(server.process.pid, signal.SIGCONT)


@pytest.mark.ci
@pytest.mark.parametrize("signals", [1, 2])
def test_a_hung_server_keeps_a_stopped_worker_briefly(
    rwq: Rwq, start_server: StartServer, signals: int
) -> None:
    """What it cannot say is named, and is left to the end of the lease."""
    server = start_server()
    variables = {"RWQ_URL": server.url}
    rwq.process("add", "x", "--id", "1", variables=variables)
    os.mkfifo(rwq.home / "go")
    worker = rwq.start("work", *script("echo; read x <go; true"), variables=variables)
    next_line(worker.stdout)
    os.kill(server.process.pid, signal.SIGSTOP)
    (rwq.home / "go").write_text("\n")
    time.sleep(1)
    began_s = time.monotonic()
    for _ in range(signals):
        worker.terminate()
        time.sleep(0.2)
    _, told = worker.communicate(timeout=TIMEOUT_S)
    took_s = time.monotonic() - began_s
    os.kill(server.process.pid, signal.SIGCONT)
    assert (worker.returncode, took_s < (10, 5)[signals - 1]) == ((3, 130)[signals - 1], True)
    assert b"rwq: 1: the server did not say whether the end of the item has arrived; lost" in told


def test_each_slot_has_one_command_at_a_time(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(12)))
    text = 'mkdir "slot$RWQ_SLOT" || exit 100; sleep 0.1; rmdir "slot$RWQ_SLOT"; echo $RWQ_SLOT'
    result = rwq.process(*DRAIN, "-j", "3", *script(text))
    assert result.code == 0, result.notes
    assert set(result.text.split()) == {"0", "1", "2"}


@pytest.mark.skipif(not HAS_NAMESPACES, reason="this machine allows no namespaces")
def test_as_process_1_a_command_ends_by_signal(rwq: Rwq, raw: redis.Redis) -> None:
    process = subprocess.Popen(
        [*NAMESPACE, *COMMAND, "lease", "--wait"], env=rwq.variables, stdin=subprocess.PIPE
    )
    until(lambda: raw.info("clients")["blocked_clients"] == 1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 143
