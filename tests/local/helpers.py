"""Helpers for the tests of local servers."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

from rwq_cli.local.server import LocalServer
from tests.driver import until


def pid_of(server: LocalServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def kill(pid: int) -> None:
    """Kill a process, and wait until it has exited."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    until(lambda: has_exited(pid))


def has_exited(pid: int) -> bool:
    """True if the process has exited; a zombie has, if no thread of it still holds its files."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    state = listed.stdout.strip()
    return not state or (state.startswith("Z") and "l" not in state)


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


def program(file: Path, mode: int = 0o755, body: str = "") -> Path:
    """A shell script."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(mode)
    return file
