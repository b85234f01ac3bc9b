"""Processes that start a local server at once, or are interrupted while they do.

`python -m tests.local.starters together|interrupted DIRECTORY [...]`. A separate program, because
no fork of pytest, nor an exception that a signal raises in one, may run the rest of pytest.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local import LocalServer
from tests.local.helpers import client


def main() -> None:
    verb, directory, *words = sys.argv[1:]
    server = LocalServer(Path(directory), os.environ)
    if verb == "together":
        start_together(server, int(words[0]))
    else:
        start_interrupted(server, signal.Signals[words[0]], int(words[1]))


def start_together(server: LocalServer, processes: int) -> None:
    """Start the server in several processes; each prints the server's process ID."""
    reader, writer = os.pipe()

    def start() -> None:
        os.close(writer)
        # Wait until the parent closes the pipe, so that all start at once.
        os.read(reader, 1)
        try:
            server.ensure_running()
            answer: object = server.status().pid
        except LocalServerError as error:
            answer = error.message
        os.write(1, f"{answer}\n".encode())

    started = [fork(start) for _ in range(processes)]
    os.close(writer)
    for pid in started:
        os.waitpid(pid, 0)


def start_interrupted(server: LocalServer, number: signal.Signals, turns: int) -> None:
    """Repeatedly send a signal to a process that starts the server, then start it here.

    After each turn, print the number of turns that the server has counted.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chance = random.Random(20)
    for _ in range(turns):
        reader, writer = os.pipe()

        def start(writer: int = writer) -> None:
            os.setpgid(0, 0)
            os.write(writer, b".")
            server.ensure_running()

        starter = fork(start)
        os.read(reader, 1)
        time.sleep(chance.uniform(0, 0.012))
        # Like Ctrl-C in a terminal, to the whole process group.
        with suppress(ProcessLookupError):
            os.killpg(starter, number)
        os.waitpid(starter, 0)
        os.close(reader)
        os.close(writer)
        server.ensure_running()
        with client(server) as connection:
            print(connection.incr("turns"))
        if not server.stop():
            print("it was not running")


def fork(function: Callable[[], None]) -> int:
    """Run a function in a child process, and return its process ID."""
    pid = os.fork()
    if pid == 0:
        # An interrupt that comes in a finalizer is only printed.
        sys.unraisablehook = lambda _: None
        try:
            with suppress(KeyboardInterrupt):
                function()
        finally:
            os._exit(0)
    return pid


if __name__ == "__main__":
    main()
