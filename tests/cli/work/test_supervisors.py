"""`--notify` and `--listen`, as of the cleaning process."""

import http.client
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.work.test_exits import script
from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line, until
from tests.servers import PrivateServer
from tests.service.managers import Manager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(str(tmp_path / "notify"), str(tmp_path / "notify"))
    yield made
    made.close()


def test_systemd_is_notified_and_a_command_cannot(
    rwq: Rwq, foreign: Foreign, manager: Manager
) -> None:
    foreign.waiting(b"1")
    variables = {"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "100000"}
    text = 'echo "${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}"'
    worker = rwq.start("work", "--notify", *script(text), variables=variables)
    assert next_line(worker.stdout) == b"none none\n"
    missing = {b"READY", b"WATCHDOG", b"STATUS"}
    while missing:
        missing.discard(manager.received().partition(b"=")[0])
    worker.terminate()
    while (message := manager.received()) != b"STOPPING=1":
        assert message.startswith((b"WATCHDOG=1", b"STATUS="))
    assert worker.wait(TIMEOUT_S) == 0


def test_an_idle_worker_reports_at_once_that_its_server_is_back(
    rwq: Rwq, start_server: StartServer, manager: Manager
) -> None:
    server: PrivateServer = start_server()
    variables = {"RWQ_URL": server.url, "NOTIFY_SOCKET": manager.name}
    worker = rwq.start("work", "--notify", "--", "true", variables=variables)

    def until_status(*, is_well: bool) -> None:
        while True:
            message = manager.received()
            if message.startswith(b"STATUS=") and (b"0 done" in message) is is_well:
                return

    until_status(is_well=True)
    server.kill()
    until_status(is_well=False)
    again = subprocess.Popen(server.process.args, stdout=subprocess.DEVNULL)
    try:
        until_status(is_well=True)
        assert b"; commands keep running" in next_line(worker.stderr)
        assert next_line(worker.stderr).startswith(b"rwq: the server is responding again after ")
        worker.terminate()
        assert worker.wait(TIMEOUT_S) == 0
    finally:
        again.kill()
        again.wait()


def test_metrics_and_health_are_served(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2")
    worker = rwq.start(
        "work", "--listen", "127.0.0.1:0", *script('[ "$RWQ_ID" = 1 ] || { echo; sleep 60; }')
    )
    line = next_line(worker.stderr).decode()
    assert line.startswith("rwq: listening on http://127.0.0.1:")
    next_line(worker.stdout)
    host = line.split("//")[1].strip()

    def get(path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    until(lambda: '{event="completed"} 1' in get("/metrics")[1])
    status, text = get("/metrics")
    assert status == 200
    assert '\nrwq_processing_items{queue="jobs"} 1\n' in text
    assert "\nrwq_work_running 1\n" in text
    status, health = get("/healthz")
    assert (status, health[:3]) == (200, "ok:")
    for _ in range(2):
        worker.terminate()
        next_line(worker.stderr)
    assert worker.wait(TIMEOUT_S) == 130
