"""The machine that pages are written on is called ops1, and knows its servers by their names."""

import json
import os
import socket
import time
from typing import Any

# The sockets of the servers by their names, as JSON.
HOSTS = "DOCS_HOSTS"
HOSTNAME = "ops1"


class AnySocket(socket.socket):
    """Takes an option of TCP for granted where there is none."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if self.family != socket.AF_UNIX or level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


def use() -> None:
    """Give this process the machine's name, and redis-py the servers of the page."""
    # Nothing else is at work on a page's servers: no grace period has to be whole.
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, 0.1))

    system = os.uname()
    os.uname = lambda: os.uname_result((system.sysname, HOSTNAME, *system[2:]))  # type: ignore[assignment]
    sockets = json.loads(os.environ[HOSTS])
    of_name = socket.getaddrinfo

    def addresses(host: Any, *others: Any, **named: Any) -> Any:
        if host not in sockets:
            return of_name(host, *others, **named)
        return [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", sockets[host])]

    socket.getaddrinfo = addresses
    socket.socket = AnySocket  # type: ignore[misc]
