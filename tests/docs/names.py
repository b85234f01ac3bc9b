"""The machine that pages are written on is called ops1, and knows its servers by their names."""

import json
import os
import socket
import time
from typing import Any

# The sockets of the servers by their names, as JSON.
HOSTS = "DOCS_HOSTS"
HOSTNAME = "ops1"


def use() -> None:
    """Give this process the machine's name, and redis-py the servers of the page."""
    # Nothing else is at work on a page's servers: no grace period has to be whole.
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, 0.1))

    import redis.connection

    system = os.uname()
    os.uname = lambda: os.uname_result((system.sysname, HOSTNAME, *system[2:]))  # type: ignore[assignment]
    sockets = json.loads(os.environ[HOSTS])
    connect = redis.connection.Connection._connect

    def connect_by_name(self: Any) -> socket.socket:
        if self.host not in sockets:
            return connect(self)
        unix = socket.socket(socket.AF_UNIX)
        unix.connect(sockets[self.host])
        return unix

    redis.connection.Connection._connect = connect_by_name  # type: ignore[method-assign]
