"""systemd's protocol: what arrives at the socket that NOTIFY_SOCKET names."""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest

from rwq_cli.service.notify import Notifier
from tests.driver import TIMEOUT_S
from tests.service.managers import Manager


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    if request.param == "path":
        name = str(tmp_path / "notify")
        made = Manager(name, name)
    else:
        name = f"rwq-test-{uuid4().hex}"
        made = Manager(f"@{name}", b"\0" + name.encode())
    yield made
    made.close()


def test_each_message_arrives(manager: Manager) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.name})
    notifier.ready()
    notifier.status("cleaning jobs")
    notifier.watchdog()
    notifier.stopping()
    messages = [manager.received() for _ in range(4)]
    assert messages == [b"READY=1", b"STATUS=cleaning jobs", b"WATCHDOG=1", b"STOPPING=1"]


def test_a_status_is_sent_if_it_has_changed(manager: Manager) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.name})
    for text in ("a", "a", "b"):
        notifier.status(text)
    assert [manager.received() for _ in range(2)] == [b"STATUS=a", b"STATUS=b"]


def test_a_manager_that_does_not_read_stops_nobody(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rwq_cli.service.notify._TIMEOUT_S", 0.001)
    notifier = Notifier({"NOTIFY_SOCKET": manager.name})

    def notify() -> None:
        # More than a socket holds.
        for number in range(600):
            notifier.status(f"{number} {'x' * 1000}")

    thread = Thread(target=notify, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert manager.received().startswith(b"STATUS=0 ")


@pytest.mark.parametrize("name", ["", "vsock:2:1234", "nothing", "/nowhere/at/all"])
def test_without_a_manager_nothing_happens(name: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000000"})
    notifier.ready()
    notifier.status("x")
    notifier.stopping()


@pytest.mark.parametrize(
    ("variables", "watchdog_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_this_process_s(
    variables: dict[str, str], watchdog_s: float | None
) -> None:
    assert Notifier({"NOTIFY_SOCKET": "/x", **variables}).watchdog_s == watchdog_s
    assert Notifier(variables).watchdog_s is None
