"""systemd's notification protocol: datagrams to the socket that NOTIFY_SOCKET names.

See sd_notify(3) and sd_watchdog_enabled(3).
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

# A service manager that does not read its socket must not block the service.
_TIMEOUT_S = 0.2


class Notifier:
    """Tells systemd about this process; without NOTIFY_SOCKET it does nothing.

    Args:
        variables: The environment variables.

    Attributes:
        watchdog_s: How often systemd expects a `watchdog`, seconds; None if it expects none.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._address = _address(variables.get("NOTIFY_SOCKET", ""))
        self._status = ""
        self.watchdog_s = _watchdog_s(variables) if self._address else None

    def ready(self) -> None:
        """The process has started."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """The line that `systemctl status` shows; sent if it has changed."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def watchdog(self) -> None:
        """The process works."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The process ends."""
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        # A service manager that is not there does not stop the service.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_TIMEOUT_S)
            sender.sendto(message.encode("utf-8", "backslashreplace"), self._address)


def _address(name: str) -> bytes | None:
    """The address of a unix socket: a path, or `@` and an abstract name; None for no other."""
    if name.startswith("@"):
        return b"\0" + os.fsencode(name[1:])
    return os.fsencode(name) if name.startswith("/") else None


def _watchdog_s(variables: Mapping[str, str]) -> float | None:
    # It is for another process, such as the shell that started this one.
    if variables.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = variables.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if text.isdecimal() and int(text) else None
