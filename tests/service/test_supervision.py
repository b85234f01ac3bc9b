"""What supervisors see: health, metrics and the watchdog, of a process that works or is stuck."""

import http.client
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.exposition import Metric
from rwq_cli.service.heartbeat import BeatingClock, Heartbeat
from rwq_cli.service.supervision import Supervision
from tests.conftest import FakeClock
from tests.driver import TIMEOUT_S, until
from tests.service.managers import Manager


def some_metrics() -> Iterable[Metric]:
    return [Metric("things_total", "Things.", [({"kind": 'a"b'}, 3)], "counter")]


@contextmanager
def supervised(
    host: str = "127.0.0.1",
    *,
    metrics: Callable[[], Iterable[Metric]] = some_metrics,
    silence_s: float = 60.0,
) -> Iterator[Supervision]:
    with Supervision(
        notifies=False,
        address=(host, 0),
        variables={},
        metrics=metrics,
        silence_s=silence_s,
    ) as supervision:
        yield supervision


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


def test_a_process_that_works_is_healthy() -> None:
    with supervised() as supervision:
        assert get(supervision, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
        supervision.ready("cleaning")
        assert get(supervision, "/healthz?probe=1")[2] == "ok: cleaning\n"


def test_a_lost_server_is_named_but_is_not_ill_health() -> None:
    with supervised() as supervision:
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


def test_metrics_that_cannot_be_read_are_an_error() -> None:
    with supervised(metrics=lambda: [][0]) as supervision:
        assert get(supervision, "/metrics")[::2] == (500, "IndexError: list index out of range\n")
        assert get(supervision, "/healthz")[0] == 200


def test_other_pages_and_methods_are_refused() -> None:
    with supervised() as supervision:
        assert get(supervision, "/")[0] == 404
        assert get(supervision, "/metrics", "POST")[0] == 501
        assert get(supervision, "/metrics", "HEAD")[::2] == (200, "")


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1"])
def test_it_listens_on_every_kind_of_host(host: str) -> None:
    with supervised(host) as supervision:
        assert supervision.url is not None
        port = int(supervision.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S):
            pass


def test_an_idle_client_keeps_nobody_waiting() -> None:
    with supervised() as supervision:
        assert supervision.url is not None
        port = int(supervision.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S):
            assert get(supervision, "/healthz")[0] == 200


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "é" * 100])
def test_an_address_that_cannot_be_used_is_refused(host: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot listen on"), supervised(host):
        pass


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = Supervision(
            notifies=False, address=("127.0.0.1", port), variables={}, metrics=some_metrics
        )
        with pytest.raises(InvalidArgument, match=f"127.0.0.1:{port}: address already in use$"):
            taken.__enter__()


class TestHeartbeat:
    def test_it_is_late_after_the_usual_time(self, clock: FakeClock) -> None:
        beats = Heartbeat(60, clock.monotonic)
        clock.now_s = 60.0
        assert beats.late_s == 0
        clock.now_s = 61.0
        assert beats.late_s == 1
        beats.beat()
        assert beats.late_s == 0

    def test_an_announced_pause_is_not_late(self, clock: FakeClock) -> None:
        beats = Heartbeat(60, clock.monotonic)
        BeatingClock(clock, beats.beat).sleep(3600)
        assert (clock.now_s, beats.late_s) == (3600, 0)
        clock.now_s += 61
        assert beats.late_s == 1


class TestWatchdog:
    @pytest.fixture
    def manager(self, tmp_path: Path) -> Iterator[Manager]:
        made = Manager(str(tmp_path / "notify"), str(tmp_path / "notify"))
        yield made
        made.close()

    def supervised(
        self, manager: Manager, every_s: float, *, silence_s: float = 60.0
    ) -> Supervision:
        variables = {"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": str(round(every_s * 1e6))}
        return Supervision(
            notifies=True,
            address=None,
            variables=variables,
            metrics=some_metrics,
            silence_s=silence_s,
        )

    def test_it_is_notified_again_and_again(self, manager: Manager) -> None:
        with self.supervised(manager, 0.02):
            assert [manager.received() for _ in range(3)] == [b"WATCHDOG=1"] * 3

    def test_it_is_not_notified_of_a_stuck_process(
        self, manager: Manager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[Heartbeat] = []

        def late_s(heartbeat: Heartbeat) -> float:
            asked.append(heartbeat)
            return 5.0

        monkeypatch.setattr(Heartbeat, "late_s", property(late_s))
        with self.supervised(manager, 0.02):
            until(lambda: len(asked) > 2)
        assert manager.received() == b"STOPPING=1"

    def test_a_service_is_ready_once(self, manager: Manager) -> None:
        with self.supervised(manager, 3600) as supervision:
            supervision.lost("no server")
            for text in ("a", "a", "b"):
                supervision.ready(text)
        messages = [manager.received() for _ in range(5)]
        assert messages == [
            b"STATUS=no server",
            b"READY=1",
            b"STATUS=a",
            b"STATUS=b",
            b"STOPPING=1",
        ]
