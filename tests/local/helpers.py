"""Helpers for the tests of local servers."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

from rwq_cli.local import LocalServer


def pid_of(server: LocalServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def kill(pid: int) -> None:
    """Kill a process, and wait until it has exited."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: has_exited(pid))


def has_exited(pid: int) -> bool:
    """Whether the process has exited; a zombie has, if no thread of it still holds its files."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    state = listed.stdout.strip()
    return not state or (state.startswith("Z") and "l" not in state)


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def starts_of(server: LocalServer) -> int:
    """How often the server has started, according to its log."""
    return (server.directory / "server.log").read_text().count("Server initialized")


@contextmanager
def client(server: LocalServer) -> Iterator["redis.Redis"]:
    connection = redis.Redis.from_url(server.url, decode_responses=True)
    try:
        yield connection
    finally:
        connection.close()


def script(file: Path, body: str) -> Path:
    """An executable shell script."""
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


@contextmanager
def fake_server(server: LocalServer, replies: Sequence[bytes]) -> Iterator[None]:
    """Listen on the server's socket, and send each connection the next of these replies."""
    server.directory.mkdir(mode=0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(server.directory / "valkey.sock"))
    listener.listen()
    remaining = iter(replies)

    def serve() -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(100)
                connection.sendall(next(remaining))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
