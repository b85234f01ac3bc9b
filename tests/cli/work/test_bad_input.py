"""Commands that hang, flood, or leave things behind; a server that goes; a worker with many."""

import os
import signal
import sys
import time

import pytest
import redis

from tests.cli.work.test_commands import DRAIN, put
from tests.cli.work.test_exits import script
from tests.conftest import Foreign, StartServer, contents, work_of
from tests.driver import COMMAND, TIMEOUT_S, Rwq, next_line, state_of, until
from tests.long import usual


class TestMaxTime:
    def test_sends_sigterm_and_is_a_failure(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        # A busy machine takes its time to start the command, which is to have said hello.
        result = rwq(*DRAIN, "--max-time", "1s", *script("echo hello >&2; sleep 60"))
        assert result.as_tuple() == (
            3,
            "",
            "hello\nrwq: 1: timed out after 1s: hello; buried after attempt 1\nburied 1\n",
        )
        assert raw.get("jobs:lease:1") == b"rwq-buried:timed out after 1s: hello"

    def test_sigkill_follows_for_one_that_ignores_sigterm(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        times = ("--max-time", "50ms", "--kill-after", "50ms")
        result = rwq(*DRAIN, *times, *script("trap '' TERM; sleep 60; echo not"))
        assert (result.code, result.text) == (3, "")


class TestTheLease:
    def test_a_lost_lease_ends_the_command_unfinished(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        worker = rwq.start("work", "--for", "600ms", "--max", "1", *script("echo; sleep 60; :"))
        next_line(worker.stdout)
        foreign.lease(b"1", holder=b"other")
        _, told = worker.communicate()
        assert (worker.returncode, told) == (
            3,
            b"rwq: 1: another session holds the item; lost, not completed by this worker\nlost 1\n",
        )
        assert raw.get("jobs:lease:1") == b"other"
        assert (raw.exists("jobs:item:1"), raw.lrange("jobs:processing", 0, -1)) == (1, [b"1"])


class TestAServerThatGoes:
    def test_for_a_while_ends_no_command(self, rwq: Rwq, start_server: StartServer) -> None:
        server = start_server("--appendonly", "yes")
        with server.client() as raw:
            put(raw, b"1", b"data")
        os.mkfifo(rwq.home / "go")
        worker = rwq.start(
            *("work", "--for", "1m", "--drain", *script("echo; read x < go; echo done")),
            variables={"RWQ_URL": server.url},
        )
        next_line(worker.stdout)
        # It hangs, and does not answer; the command ends meanwhile.
        os.kill(server.process.pid, signal.SIGSTOP)
        (rwq.home / "go").write_text("go\n")
        assert next_line(worker.stdout) == b"done\n"
        time.sleep(0.3)
        assert worker.poll() is None
        os.kill(server.process.pid, signal.SIGCONT)
        _, told = worker.communicate()
        assert (worker.returncode, told.splitlines()[-1][:11]) == (0, b"completed 1")
        with server.client() as raw:
            assert contents(raw) == {}

    @pytest.mark.ci
    def test_longer_than_the_lease_ends_command_and_worker(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            put(raw, b"1", b"data")
        worker = rwq.start(
            *("work", "--for", "1s", "--reconnect", "2s", *script("echo; sleep 60; echo not")),
            variables={"RWQ_URL": server.url},
        )
        next_line(worker.stdout)
        server.process.kill()
        out, told = worker.communicate()
        assert (worker.returncode, out) == (69, b"")
        lines = told.decode().splitlines()
        assert "commands keep running, and rwq will try to reconnect for 2s" in lines[0]
        assert lines[1] == (
            "rwq: 1: the lease ended while the server did not answer, or refused to renew it; "
            "lost, not completed by this worker"
        )
        assert lines[2].startswith("lost 1")
        assert lines[3].startswith(f"rwq: error: cannot reach {server.url}")


def test_a_flood_of_output_takes_no_memory(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    megabytes = usual(30, long=1_000)
    flood = f"head -c {megabytes}000000 /dev/zero | tr '\\0' x"
    # A small process starts it: the peak of a process begins with that of the one that started it.
    peak = (
        "import resource, subprocess, sys;"
        "nothing = subprocess.DEVNULL;"
        "print(subprocess.call(sys.argv[1:], stdout=nothing, stderr=nothing));"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    worker = rwq.start(
        *(*DRAIN, "--result", *script(f"{flood}; {flood} >&2; exit 1")),
        command=(sys.executable, "-c", peak, *COMMAND),
    )
    out, _ = worker.communicate()
    status, peak_kib = map(int, out.split())
    assert status == 3
    # Linux counts in KiB.
    assert peak_kib < 90_000


def test_what_a_command_leaves_running_delays_nothing(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    result = rwq(*DRAIN, "--result", *script("echo $$; sleep 60 & echo $! >&2"))
    assert (result.code, result.text) == (0, "")
    *pids, summary = result.notes.splitlines()
    assert summary == "completed 2"
    assert contents(raw).keys() == {b"jobs:result:1", b"jobs:result:2"}
    states = {state_of(int(pid)) for pid in pids}
    assert not states & {"", "Z"}, "one was waited for, or ended"
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)


def test_an_unwritable_file_puts_the_item_back(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1")
    result = rwq(
        *(*DRAIN, "--input", "file", "--", "cat", "{file}"), variables={"TMPDIR": "/nowhere"}
    )
    assert (result.code, result.text) == (2, "")
    assert "cannot write the data of an item into /nowhere: no such file" in result.notes
    assert raw.lrange("jobs:queue", 0, -1) == [b"1"]
    assert raw.exists("jobs:processing", "jobs:returns") == 0


def test_a_closed_stdout_does_not_fail_items(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2", b"3")
    go, ran = rwq.home / "go", rwq.home / "ran"
    os.mkfifo(go)
    first = f"[ -e {ran} ] || {{ : >{ran}; read _ <{go}; }}"
    worker = rwq.start(*DRAIN, *script(f"echo begun; {first}; echo ended"))
    assert worker.stdout is not None
    assert next_line(worker.stdout) == b"begun\n"
    worker.stdout.close()
    go.write_text("\n")
    assert worker.wait(TIMEOUT_S) == 0
    assert worker.stderr is not None
    assert worker.stderr.read().endswith(b"completed 3\n")
    assert contents(raw) == {}


NO_RESULT = "a result must be kept for at least 1 ms; give a longer time"
NO_LEASE = "a lease must last at least 1 ms; give a longer time"


@pytest.mark.parametrize(
    ("words", "error"),
    {
        "--max-time 0": "--max-time must be longer than 0; without it, there is no limit",
        "--backoff 30m": "--backoff is longer than --backoff-max; --backoff-max 30m allows it",
        "--result --result-ttl 0": NO_RESULT,
        "--dry-run --result-ttl 0.0004": NO_RESULT,
        "--for 0": NO_LEASE,
        "--for 0.4ms": NO_LEASE,
    }.items(),
)
def test_times_that_mean_nothing_are_refused(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, words: str, error: str
) -> None:
    foreign.waiting(b"1")
    before = contents(raw)
    result = rwq(*DRAIN, *words.split(), "--", "true")
    assert result.as_tuple() == (2, "", f"rwq: error: {error}\n")
    assert contents(raw) == before


def test_too_few_processes_are_waited_for(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    """As with a limit of processes: what cannot be started now is started later."""
    import errno

    import pytest

    real, running = os.posix_spawn, 0

    def spawn(*words: object, **options: object) -> int:
        nonlocal running
        if running >= 2:
            running = 0
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        running += 1
        return real(*words, **options)  # type: ignore[arg-type]

    foreign.waiting(*(b"%d" % each for each in range(9)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "posix_spawn", spawn)
        assert rwq(*DRAIN, "-j", "9", "--", "true").as_tuple() == (0, "", "completed 9\n")
    assert contents(raw) == {}


@pytest.mark.ci
@pytest.mark.parametrize("count", [1, 50])
def test_an_idle_worker_asks_once_a_second(rwq: Rwq, raw: redis.Redis, count: int) -> None:
    queues = [word for number in range(count) for word in ("-q", f"queue-{number}")]
    others = raw.info("clients")["connected_clients"]
    worker = rwq.start("work", *queues, "--", "true")
    first = calls(raw)
    # One that ended asks no more.
    until(lambda: worker.poll() is not None or calls(raw) >= first + 3)
    assert worker.poll() is None, worker.communicate()
    before, began_s, cpu_s = calls(raw), time.monotonic(), cpu_of(worker.pid)
    until(lambda: calls(raw) >= before + 2)
    # However long it took: between two calls there is a second, in which it does nothing.
    passed_s = time.monotonic() - began_s
    assert passed_s > 0.9
    assert cpu_of(worker.pid) - cpu_s <= 0.2
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    until(lambda: raw.info("clients")["connected_clients"] <= others)


def calls(raw: redis.Redis) -> int:
    """How many calls of a worker the server has answered; it makes no others."""
    done = work_of(raw).calls
    return done.get("time", 0)


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
