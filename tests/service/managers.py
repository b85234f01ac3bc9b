"""A service manager that listens to notifications, as systemd does."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driver import TIMEOUT_S


class Manager:
    """A service manager's socket; `name` is the value of NOTIFY_SOCKET."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name)
        self.socket.settimeout(TIMEOUT_S)

    def received(self) -> bytes:
        """The next message."""
        return self.socket.recv(4096)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(str(tmp_path / "notify"))
    with made.socket:
        yield made
