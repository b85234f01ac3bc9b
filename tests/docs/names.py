"""The machine that pages are written on is called ops1, and knows its servers by their names.

As a program, with the path of a socket, this runs what a page types as `rwq`, each in a fork: a
start takes 0.2 s of a core, most of it for imports, and the pages have 200 of them.
"""

import ast
import importlib
import json
import os
import signal
import socket
import sys
import time
from typing import Any

# The sockets of the servers by their names, as JSON.
HOSTS = "DOCS_HOSTS"
HOSTNAME = "ops1"
# The program `rwq`, which asks for a fork and ends as it does.
CLIENT = """#!{python} -IS
import _socket as socket, array, os, sys
there = socket.socket(socket.AF_UNIX)
there.connect({path!r})
streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
there.sendmsg([ascii((sys.argv[1:], os.getcwd(), dict(os.environ))).encode()], [streams])
os._exit(there.recv(1)[0])
"""


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


def serve(path: str) -> None:
    """Run what `CLIENT` asks for, until this process is killed."""
    use()
    from rwq_cli.__main__ import main
    from rwq_cli.cli.app import COMMANDS

    for name in ("cli.program", "core.queue", *(f"commands.{name}" for name in COMMANDS)):
        importlib.import_module(f"rwq_cli.{name}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen()
        os.rename(f"{path}.new", path)
        # None of them is waited for.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            asking, _ = listener.accept()
            if os.fork():
                asking.close()
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if (pid := os.fork()) == 0:
                _become(asking)
                main()
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            asking.send(bytes([code % 256]))
            os._exit(0)


def _become(asking: socket.socket) -> None:
    """Take the command line, place, environment and streams of the program that asks."""
    told, streams, _, _ = socket.recv_fds(asking, 1 << 20, 3)
    asking.close()
    sys.argv[1:], place, variables = ast.literal_eval(told.decode())
    for stream, number in zip(streams, range(3), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(variables)


if __name__ == "__main__":
    serve(sys.argv[1])
