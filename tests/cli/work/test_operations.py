"""What happens around workers and cleaning processes while they run for weeks."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import redis

from tests.cli.work.test_exits import script
from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line, until
from tests.processes import COMMAND
from tests.servers import PrivateServer

OLD, NEW = "hunter2", "hunter3"


@pytest.fixture
def guarded(start_server: StartServer) -> PrivateServer:
    return start_server("--requirepass", OLD, password=OLD)


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text(f"{OLD}\n")
    return file


def as_operator(server: PrivateServer, password: str) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(server.socket), password=password)


def rotate(server: PrivateServer, file: Path) -> redis.Redis:
    """As an operator does: the server knows it first, the file a moment later, all are cut."""
    with as_operator(server, OLD) as raw:
        raw.config_set("requirepass", NEW)
        raw.client_kill_filter(_type="normal", skipme=True)
    time.sleep(0.5)
    file.write_text(f"{NEW}\n")
    return as_operator(server, NEW)


def named(server: PrivateServer, file: Path) -> tuple[str, ...]:
    return ("-u", server.url, "-q", "jobs", "--password-file", str(file))


def test_the_password_may_change_during_a_command(
    rwq: Rwq, guarded: PrivateServer, password_file: Path
) -> None:
    with as_operator(guarded, OLD) as raw:
        Foreign(raw).waiting(b"1", b"2")
        os.mkfifo(rwq.home / "go")
        text = f"echo >>{rwq.home}/ran; [ $RWQ_ID != 1 ] || {{ echo; read x <go; }}; :"
        worker = rwq.start(*named(guarded, password_file), "work", "--drain", *script(text))
        next_line(worker.stdout)
    raw = rotate(guarded, password_file)
    (rwq.home / "go").write_text("\n")
    _, told = worker.communicate(timeout=TIMEOUT_S)
    summary = told.decode().splitlines()[-1]
    assert (worker.returncode, summary.split(" (")[0]) == (0, "completed 2"), told
    # Each once.
    assert (rwq.home / "ran").read_text() == "\n\n"
    assert raw.dbsize() == 0


def test_workers_share_a_job_log(rwq: Rwq, foreign: Foreign) -> None:
    """Each line is whole, however long, and each item has one."""
    ids = [b"%03d-" % number + b"x" * 900 for number in range(120)]
    foreign.waiting(*ids)
    words = ("work", "--drain", "-j", "2", "--joblog", str(rwq.home / "log"), "--", "true")
    workers = [rwq.start(*words) for _ in range(3)]
    assert [worker.wait(TIMEOUT_S) for worker in workers] == [0, 0, 0]
    lines = (rwq.home / "log").read_bytes().splitlines()
    assert sorted(line.split(b"\t")[2] for line in lines) == ids
    assert {line.count(b"\t") for line in lines} == {8}


@pytest.mark.parametrize(("every", "grace"), [("1h", "0s"), ("1s", "1h")])
def test_a_cleaning_process_ends_while_it_waits(
    rwq: Rwq, foreign: Foreign, every: str, grace: str
) -> None:
    """For the second look, or for its next round, either of which takes an hour."""
    foreign.abandoned(b"1")
    # One of a process that has ended may still be there, and go.
    before = {client["id"] for client in foreign.raw.client_list()}
    cleaner = rwq.start("clean", "light", "--every", every, "--grace", grace)
    until(lambda: {client["id"] for client in foreign.raw.client_list()} - before)
    time.sleep(0.5)
    cleaner.terminate()
    assert cleaner.wait(TIMEOUT_S) == 0


def test_every_count_of_a_worker_is_a_metric(rwq: Rwq, foreign: Foreign) -> None:
    import http.client

    foreign.waiting(*(b"%d" % number for number in range(6)))
    text = (
        "case $RWQ_ID in 0) exit 100;; 1) exit 75;; 2) exit 1;; 3) exit 0;; 4) exit 0;; esac;"
        "echo; sleep 600"
    )
    worker = rwq.start("work", "--retries", "1", "--listen", "127.0.0.1:0", *script(text))
    host = next_line(worker.stderr).decode().split("//")[1].strip()
    next_line(worker.stdout)

    def counts() -> dict[str, int]:
        connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        found = re.findall(r'^rwq_work_items_total\{event="(\w+)"\} (\d+)$', text, re.M)
        return {event: int(number) for event, number in found}

    wanted = {"completed": 2, "retry": 1, "released": 1, "buried": 1, "rejected": 0, "lost": 0}
    until(lambda: counts() == wanted)
    worker.kill()
    worker.wait()


# Breaks the function that it names, as without memory, when the file `break` is there.
_BREAK = """
import os, sys
def failing(owner, name):
    inner = getattr(owner, name)
    def call(*args, **options):
        if os.path.exists("break"):
            raise MemoryError
        return inner(*args, **options)
    setattr(owner, name, call)
"""


@pytest.mark.parametrize(
    ("words", "broken"),
    [
        (("work", "--clean", "1s", "--", "true"), "rwq_cli.work.notes.clean_queue"),
        (("work", "--", "true"), "rwq_cli.core.work.idle.WorkWaiter.ready_queues"),
        (
            ("work", "--for", "6s", "--", "sleep", "60"),
            "rwq_cli.core.work.session.WorkSession.renew",
        ),
        (
            ("clean", "light", "--every", "100ms", "--notify"),
            "rwq_cli.service.supervision.Supervision._notify",
        ),
        (("clean", "light", "--every", "100ms"), "rwq_cli.core.repair.clean.clean"),
    ],
)
def test_an_error_in_any_thread_ends_the_process(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, words: tuple[str, ...], broken: str
) -> None:
    """And lets go what it has leased."""
    foreign.waiting(b"1")
    owner, _, name = broken.rpartition(".")
    module, last = owner.rpartition(".")[::2]
    is_class = last[0].isupper()
    code = _BREAK + (
        f"import {module if is_class else owner}\n"
        f"failing({owner}, {name!r})\n"
        "from rwq_cli.__main__ import main\n"
        "main()\n"
    )
    known = {client["id"] for client in raw.client_list()}
    process = subprocess.Popen(
        [COMMAND[0], "-c", code, *words],
        env={
            **rwq.variables,
            "NOTIFY_SOCKET": "@rwq-test-nobody",
            "WATCHDOG_USEC": "200000",
        },
        cwd=rwq.home,
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: {client["id"] for client in raw.client_list()} - known)
        assert process.poll() is None
        (rwq.home / "break").touch()
        _, told = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, b"out of resources" in told) == (70, True), told
        assert raw.exists("jobs:processing") == 0
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
