"""Starts processes of rwq as forks of one that has imported rwq.

Most of what a short `python -m rwq_cli` costs is the start of the interpreter and its imports, and
the tests start a thousand of them. A fork of a process that has done both does the rest as any
process does: it runs `rwq_cli.__main__` with the arguments, variables, directory, streams and
session that it is given, and it is a child of the process of the tests. What needs more than that,
and every start on a system other than Linux, is a start of the interpreter.

This file is also the program of the fork server. A test process starts it when it first needs it;
it ends with that process. Scripts reach it by a program that takes an interpreter's start without
any import, and waits: see `write_program`.
"""

import ctypes
import fcntl
import gc
import importlib
import marshal
import os
import pkgutil
import platform
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
# Begins the request to listen in a folder; no other begins so.
_LISTEN = b"listen "
# The number of clone(2), by machine, and its flag that makes the child one of the caller's parent.
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT = 0x8000

ROOT = Path(__file__).parent.parent

_lock = Lock()


def start(
    command: Sequence[str | bytes], *, terminal: bool = False, **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a process as `subprocess.Popen` does, but faster if it is rwq or a module of the tests.

    Args:
        command: The command line.
        terminal: Whether stderr is to be its controlling terminal.
        options: As for `subprocess.Popen`; `env` is required.
    """
    if terminal:
        options["start_new_session"] = True
    request = None
    if _is_forked(command) and options.keys() <= _OPTIONS:
        request = _request(command, terminal, options)
    if request is not None and (server := _server()) is not None:
        return _Forked(server, request, command, **options)
    if terminal:
        options["preexec_fn"] = _take_terminal
    if _is_forked(command) and command[2] != COMMAND[2]:
        options["env"] = {**options["env"], "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, **options)


def _is_forked(command: Sequence[str | bytes]) -> bool:
    """Whether it is rwq, or a program of the tests that is started as a module."""
    *start, module = command[: len(COMMAND)]
    return (*start, "rwq_cli") == COMMAND and (
        module == "rwq_cli" or os.fsdecode(module).startswith("tests.")
    )


def _request(
    command: Sequence[str | bytes], terminal: bool, options: Mapping[str, Any]
) -> bytes | None:
    """What the fork server is sent; None if it cannot do it."""
    variables = options["env"]
    at_start = {name: variables[name] for name in variables if name.startswith(_READ_AT_START)}
    if at_start != _AT_START:
        return None
    request = marshal.dumps(
        {
            "module": os.fsdecode(command[2]),
            "arguments": [os.fsdecode(word) for word in command[len(COMMAND) :]],
            "variables": dict(variables),
            "directory": str(options.get("cwd") or Path.cwd()),
            "session": options.get("start_new_session", False),
            "terminal": terminal,
        }
    )
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
            # It and what it starts have no terminal.
            start_new_session=True,
        )
    # Of a first fork, which ends at once.
    pid = int(ours.recv(100) or -1)
    if pid < 0:
        return None
    os.waitpid(pid, 0)
    return ours


@cache
def _socket() -> str:
    """Where the fork server listens."""
    server = _server()
    assert server is not None
    folder = tempfile.mkdtemp(prefix="rwq-fork-")
    with _lock:
        server.send(_LISTEN + folder.encode())
        server.recv(1)
    return f"{folder}/socket"


# Waits for the fork of a request, and passes on signals. A module that it imported would cost more
# than all that it does, but for those of the interpreter itself.
_CLIENT = """\
import _signal, _socket, marshal, posix, sys

server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
server.connect({socket!r})
caught = [_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGUSR1, _signal.SIGUSR2]
ignored = [number for number in caught if _signal.getsignal(number) == _signal.SIG_IGN]
variables = {{}}
for name, value in posix.environ.items():
    variables[name.decode("utf-8", "surrogateescape")] = value.decode("utf-8", "surrogateescape")
request = dict(
    module="rwq_cli", arguments=sys.argv[1:], variables=variables, directory=posix.getcwd(),
    ignored=ignored, session=False, terminal=False, before={before!r},
)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)
for number in set(caught) - set(ignored):
    _signal.signal(number, lambda number, _: server.send(b"%d" % number))
server.sendmsg([marshal.dumps(request)], [rights])
code = int(server.recv(100))
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
"""


def write_program(path: Path, *, before: str | None = None) -> None:
    """Write a program that scripts run as `rwq`: quick, but what it runs is not its process.

    It knows neither closed streams nor limits nor job control.

    Args:
        path: Where to write it.
        before: What is called first, as in `package.module:function`.
    """
    if _server() is None:
        call = "import sys, runpy\n"
        if before is not None:
            module, _, function = before.partition(":")
            call += f"sys.path.insert(0, {str(ROOT)!r})\n"
            call += f"from {module} import {function}\n{function}()\n"
        text = f"#!{sys.executable}\n{call}"
        text += "runpy.run_module('rwq_cli', run_name='__main__', alter_sys=True)\n"
    else:
        text = f"#!{sys.executable} -IS\n{_CLIENT.format(socket=_socket(), before=before)}"
    path.write_text(text)
    path.chmod(0o755)


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


class _ForkServer:
    """Forks for each request of the tests and of the programs that scripts run."""

    def __init__(self, tests: socket.socket) -> None:
        self._tests = tests
        self._folder: str | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(tests, selectors.EVENT_READ, self._answer_tests)

    def run(self) -> str:
        """Serve until the tests end; returns in each child, which is set up to run this module."""
        pid = _fork()
        if pid == 0:
            os._exit(0)
        self._tests.send(str(pid).encode())
        while True:
            for key, _ in self._selector.select():
                if module := key.data():
                    return str(module)

    def _answer_tests(self) -> str:
        """In a child, the module that it is to run."""
        request, streams, _, _ = socket.recv_fds(self._tests, 2 * _REQUEST_MAX, 3)
        if not request:
            if self._folder is not None:
                shutil.rmtree(self._folder)
            os._exit(0)
        if request.startswith(_LISTEN):
            self._listen(request.removeprefix(_LISTEN).decode())
            self._tests.send(b"!")
            return ""
        pid = _fork()
        if pid == 0:
            return _set_up(marshal.loads(request), streams)
        self._tests.send(str(pid).encode())
        for stream in streams:
            os.close(stream)
        return ""

    def _listen(self, folder: str) -> None:
        self._folder = folder
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"{folder}/socket")
        listener.listen(100)
        self._selector.register(
            listener, selectors.EVENT_READ, lambda: self._answer_program(listener.accept()[0])
        )

    def _answer_program(self, program: socket.socket) -> str:
        """In a child, the module that it is to run."""
        request, streams, _, _ = socket.recv_fds(program, 2 * _REQUEST_MAX, 3)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            return _set_up(marshal.loads(request), streams)
        for stream in streams:
            os.close(stream)
        ended = os.pidfd_open(pid)

        def pass_on() -> str:
            number = program.recv(100)
            with suppress(ProcessLookupError):
                if number:
                    os.kill(pid, int(number))
                else:
                    self._selector.unregister(program)
                    os.killpg(pid, signal.SIGKILL)
            return ""

        def report() -> str:
            _, status = os.waitpid(pid, 0)
            self._selector.unregister(ended)
            os.close(ended)
            with suppress(KeyError):
                self._selector.unregister(program)
            with program, suppress(OSError):
                program.send(str(os.waitstatus_to_exitcode(status)).encode())
            return ""

        self._selector.register(program, selectors.EVENT_READ, pass_on)
        self._selector.register(ended, selectors.EVENT_READ, report)
        return ""


def _set_up(request: Mapping[str, Any], streams: Sequence[int]) -> str:
    """Make this process what an interpreter with these arguments is when it has started.

    Returns:
        The module that it is to run.
    """
    if request["session"]:
        os.setsid()
    for own, given in enumerate(streams):
        os.dup2(given, own)
    os.closerange(3, 1024)
    # A socket of the fork server that the collector finds here would close what has its number now.
    gc.freeze()
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
    for number in request.get("ignored", ()):
        signal.signal(number, signal.SIG_IGN)
    if request.get("before"):
        module, _, function = request["before"].partition(":")
        sys.path.insert(0, str(ROOT))
        getattr(importlib.import_module(module), function)()
        del sys.path[0]
    return str(request["module"])


if __name__ == "__main__":
    # Ctrl-C ends the tests, and they this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_all()
    gc.collect()
    gc.freeze()
    chosen = _ForkServer(socket.socket(fileno=int(sys.argv[1]))).run()
    if chosen.startswith("tests."):
        sys.path.insert(0, str(ROOT))
    runpy.run_module(chosen, run_name="__main__", alter_sys=True)
