"""A service manager that listens to notifications, as systemd does."""

import socket

from tests.driver import TIMEOUT_S


class Manager:
    """A service manager's socket.

    Attributes:
        name: The value of NOTIFY_SOCKET.
    """

    def __init__(self, name: str, address: str | bytes) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(TIMEOUT_S)

    def received(self) -> bytes:
        """The next message."""
        return self._socket.recv(4096)

    def close(self) -> None:
        self._socket.close()
