"""Starts processes of rwq as forks of one that has imported rwq.

Most of what a short `python -m rwq_cli` costs is the start of the interpreter and its imports, and
the tests start a thousand of them. A fork of a process that has done both does the rest as any
process does: it runs `rwq_cli.__main__` with the arguments, variables, directory, streams and
session that it is given, and it is a child of the process of the tests. What needs more than that,
and every start on a system other than Linux, is a start of the interpreter.

This file is also the program of the fork server. A test process starts it when it first needs it;
it ends with that process.
"""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

COMMAND = (sys.executable, "-m", "rwq_cli")
# The variables that an interpreter reads when it starts, by the beginnings of their names, and
# their values in the fork server.
_READ_AT_START = ("PYTHON", "LC_", "LANG")
_AT_START = {"LANG": "C.UTF-8"}
# What `subprocess.Popen` may be asked for in a request.
_OPTIONS = {"env", "cwd", "stdin", "stdout", "stderr", "bufsize", "start_new_session"}
# Longer requests than the socket takes start an interpreter.
_REQUEST_MAX = 100_000
# The number of clone(2), by machine, and its flag that makes the child one of the caller's parent.
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT = 0x8000

_lock = Lock()


def start(
    command: Sequence[str | bytes], *, terminal: bool = False, **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a process as `subprocess.Popen` does, but faster if it is rwq.

    Args:
        command: The command line.
        terminal: Whether stderr is to be its controlling terminal.
        options: As for `subprocess.Popen`; `env` is required.
    """
    if terminal:
        options["start_new_session"] = True
    request = None
    if tuple(command[: len(COMMAND)]) == COMMAND and options.keys() <= _OPTIONS:
        request = _request(command, terminal, options)
    if request is not None and (server := _server()) is not None:
        return _Forked(server, request, command, **options)
    if terminal:
        options["preexec_fn"] = _take_terminal
    return subprocess.Popen(command, **options)


def _request(
    command: Sequence[str | bytes], terminal: bool, options: Mapping[str, Any]
) -> bytes | None:
    """What the fork server is sent; None if it cannot do it."""
    variables = options["env"]
    at_start = {name: variables[name] for name in variables if name.startswith(_READ_AT_START)}
    if at_start != _AT_START:
        return None
    request = json.dumps(
        {
            "arguments": [os.fsdecode(word) for word in command[len(COMMAND) :]],
            "variables": dict(variables),
            "directory": str(options.get("cwd") or Path.cwd()),
            "session": options.get("start_new_session", False),
            "terminal": terminal,
        }
    ).encode()
    return request if len(request) <= _REQUEST_MAX else None


@cache
def _server() -> socket.socket | None:
    """The connection to the fork server; None if there cannot be one."""
    if sys.platform != "linux" or platform.machine() not in _CLONE:
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={"PATH": os.environ["PATH"], **_AT_START},
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
    # Of a first fork, which ends at once.
    pid = int(ours.recv(100) or -1)
    if pid < 0:
        return None
    os.waitpid(pid, 0)
    return ours


class _Forked(subprocess.Popen[bytes]):
    """A child that the fork server makes; the streams and all that waits are those of `Popen`."""

    def __init__(self, server: socket.socket, request: bytes, command: Any, **options: Any) -> None:
        self._server, self._request = server, request
        super().__init__(command, **options)

    def _execute_child(self, *words: Any) -> None:
        pipes = words[10:16]
        reads_in, _, _, writes_out, _, writes_err = pipes
        streams = [
            own if given == -1 else given
            for own, given in enumerate((reads_in, writes_out, writes_err))
        ]
        with _lock:
            socket.send_fds(self._server, [self._request], streams)
            self.pid = int(self._server.recv(100))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def _take_terminal() -> None:
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


def _fork() -> int:
    """As `os.fork`, but the child's parent is this process's; -1 if the system cannot do that."""
    python = ctypes.PyDLL(None)
    python.PyOS_BeforeFork()
    flags = _CLONE_PARENT | signal.SIGCHLD
    pid: int = python.syscall(_CLONE[platform.machine()], flags, 0, 0, 0, 0)
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def _import_all() -> None:
    """Import what commands import, but not what only `rwq top` does, which is large."""
    importlib.import_module("redis")
    package = importlib.import_module("rwq_cli")
    for module in pkgutil.walk_packages(package.__path__, "rwq_cli."):
        if not module.name.endswith("__main__") and "top" not in module.name.split("."):
            importlib.import_module(module.name)


def _serve(connection: socket.socket) -> None:
    """Fork for each request; returns in each child, which is then set up to run rwq."""
    # Ctrl-C ends the tests, and they this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_all()
    gc.collect()
    gc.freeze()
    pid = _fork()
    if pid == 0:
        os._exit(0)
    connection.send(str(pid).encode())
    while True:
        request, streams, _, _ = socket.recv_fds(connection, 2 * _REQUEST_MAX, 3)
        if not request:
            os._exit(0)
        pid = _fork()
        if pid == 0:
            _set_up(json.loads(request), streams)
            return
        connection.send(str(pid).encode())
        for stream in streams:
            os.close(stream)


def _set_up(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Make this process what an interpreter with these arguments is when it has started."""
    if request["session"]:
        os.setsid()
    for own, given in enumerate(streams):
        os.dup2(given, own)
    os.closerange(3, 1024)
    if request["terminal"]:
        _take_terminal()
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["variables"])
    time.tzset()
    sys.path[0] = os.getcwd()
    sys.argv[1:] = request["arguments"]
    for name, mode, errors in (
        ("stdin", "r", "surrogateescape"),
        ("stdout", "w", "surrogateescape"),
        ("stderr", "w", "backslashreplace"),
    ):
        stream = open(getattr(sys, name).fileno(), mode, errors=errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=name == "stderr" or stream.isatty())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("rwq_cli", run_name="__main__", alter_sys=True)
