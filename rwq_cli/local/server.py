"""Start, stop and inspect the server of a data directory."""

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.binary import exit_error, launch
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
                            raise exit_error(self._files, log_start_bytes)
                        log_start_bytes = size_bytes(self._files.log)
                        launch(self._files, descriptor, self._environ)
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
