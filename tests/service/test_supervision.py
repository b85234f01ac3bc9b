"""What supervisors see: health, metrics and the watchdog, of a process that works or is stuck."""

import http.client
import os
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread, active_count
from typing import Any

import pytest

from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.exposition import Metric
from rwq_cli.service.supervision import Beats, Supervision
from tests.conftest import FakeClock
from tests.driver import TIMEOUT_S, until
from tests.service.managers import Manager, manager as manager


def some_metrics() -> Iterable[Metric]:
    return [Metric("things_total", "Things.", [({"kind": 'a"b'}, 3)], "counter")]


def supervised(
    host: str | None = "127.0.0.1",
    *,
    metrics: Callable[[], Iterable[Metric]] = some_metrics,
    variables: dict[str, str] | None = None,
    **settings: Any,
) -> Supervision:
    return Supervision(
        notifies=variables is not None,
        address=None if host is None else (host, 0),
        variables=variables or {},
        metrics=metrics,
        **settings,
    )


def get(supervision: Supervision, path: str, method: str = "GET") -> tuple[int, str, str]:
    """The status of an answer, its type and its text."""
    assert supervision.url is not None
    host = supervision.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    connection.request(method, path)
    response = connection.getresponse()
    found = response.status, response.getheader("Content-Type", ""), response.read().decode()
    connection.close()
    return found


def test_health() -> None:
    with supervised() as supervision:
        assert get(supervision, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
        supervision.ready("cleaning")
        assert get(supervision, "/healthz?probe=1")[2] == "ok: cleaning\n"
        # A lost server is no ill health.
        supervision.lost("cannot reach redis://db1")
        assert get(supervision, "/healthz")[::2] == (200, "ok, but cannot reach redis://db1\n")
        supervision.ready("cleaning")
        assert get(supervision, "/healthz")[2] == "ok: cleaning\n"


def test_a_stuck_process_is_not_healthy() -> None:
    with supervised(silence_s=-5) as supervision:
        supervision.beat()
        status, _, text = get(supervision, "/healthz")
        assert (status, text) == (503, "stuck: nothing done for 5 s longer than expected\n")
        supervision.beat(60)
        assert get(supervision, "/healthz")[0] == 200


def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    with supervised() as supervision:
        assert get(supervision, "/metrics") == (
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            "# HELP rwq_things_total Things.\n# TYPE rwq_things_total counter\n"
            'rwq_things_total{kind="a\\"b"} 3\n',
        )
        assert get(supervision, "/")[0] == 404
        assert get(supervision, "/metrics", "POST")[0] == 501
        assert get(supervision, "/metrics", "HEAD")[::2] == (200, "")


def test_scrapes_at_the_same_time_share_one_reading() -> None:
    readings, go_on = [], Event()

    def slow() -> Iterable[Metric]:
        readings.append(1)
        go_on.wait(TIMEOUT_S)
        return some_metrics()

    with supervised(metrics=slow) as supervision, ThreadPoolExecutor(20) as pool:
        first = pool.submit(get, supervision, "/metrics")
        until(lambda: readings)
        before = active_count()
        others = [pool.submit(get, supervision, "/metrics") for _ in range(19)]
        assert get(supervision, "/healthz")[0] == 200
        # Each of them has a thread here and one of the server; on a busy machine, some of these may
        # only just have begun.
        until(lambda: active_count() >= before + 2 * len(others))
        go_on.set()
        assert {each.result() for each in others} == {first.result()}
    assert len(readings) < 5


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1"])
def test_it_listens_on_every_kind_of_host(host: str) -> None:
    with supervised(host) as supervision:
        assert supervision.url is not None
        port = int(supervision.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S):
            # An idle client keeps nobody waiting.
            assert get(supervision, "/healthz")[0] == 200


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "é" * 100])
def test_an_address_that_cannot_be_used_is_refused(host: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot listen on"), supervised(host):
        pass


def test_an_announced_pause_is_not_late(clock: FakeClock) -> None:
    beats = supervised(None, monotonic=clock.monotonic)
    clock.now_s += 61.0
    assert beats.late_s == 1
    beats.beat()
    Beats(clock, ProgressListener(), beats.beat).sleep(3600)
    assert beats.late_s == 0
    clock.now_s += 61
    assert beats.late_s == 1


def test_a_manager_hears_what_has_changed(manager: Manager) -> None:
    with supervised(None, variables={"NOTIFY_SOCKET": manager.name}) as supervision:
        supervision.lost("no server")
        for text in ("a", "a", "b"):
            supervision.ready(text)
    assert [manager.received() for _ in range(5)] == [
        *(b"STATUS=no server", b"READY=1", b"STATUS=a", b"STATUS=b", b"STOPPING=1")
    ]


def test_a_manager_that_does_not_read_stops_nobody(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rwq_cli.service.supervision.NOTIFY_TIMEOUT_S", 0.001)
    supervision = supervised(None, variables={"NOTIFY_SOCKET": manager.name})
    supervision.ready("")
    assert manager.received() == b"READY=1"

    def notify() -> None:
        # More than a socket holds.
        for number in range(600):
            supervision.status(f"{number} {'x' * 1000}")

    thread = Thread(target=notify, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert manager.received().startswith(b"STATUS=0 ")


@pytest.mark.parametrize("name", ["", "vsock:2:1234", "nothing", "/nowhere/at/all"])
def test_without_a_manager_nothing_happens(name: str) -> None:
    with supervised(None, variables={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000"}) as made:
        made.ready("x")


@pytest.mark.parametrize(
    ("variables", "is_notified"),
    [
        ({}, False),
        ({"WATCHDOG_USEC": "20000"}, True),
        ({"WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
    ],
)
def test_the_watchdog_is_this_process_s(
    manager: Manager, variables: dict[str, str], is_notified: bool
) -> None:
    with supervised(None, variables={"NOTIFY_SOCKET": manager.name, **variables}):
        if is_notified:
            assert [manager.received() for _ in range(3)] == [b"WATCHDOG=1"] * 3
    while (message := manager.received()) != b"STOPPING=1":
        assert (message, is_notified) == (b"WATCHDOG=1", True)


def test_the_watchdog_hears_nothing_of_a_stuck_process(manager: Manager) -> None:
    variables = {"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "2000"}
    with supervised(None, variables=variables, silence_s=-5):
        Event().wait(0.05)
    assert manager.received() == b"STOPPING=1"
