"""One server in one directory: start it when it is needed, stop it, look at it."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.binary import find_server
from rwq_cli.local.directory import has_data_directory, make_data_directory, plain_errors
from rwq_cli.local.launch import explain_exit, launch, log_bytes
from rwq_cli.local.lock import LifeLock
from rwq_cli.local.sockets import SocketPlace
from rwq_cli.local.status import (
    LocalStatus,
    read_info,
    server_name,
    stored_bytes,
    stored_pid,
    whole_number,
)
from rwq_cli.local.wire import Presence, ask, look

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0

# A server listens before it loads its data: after milliseconds, or seconds where a machine swaps.
_LISTEN_TIMEOUT_S = 15.0
_PING_TIMEOUT_S = 5.0
_INFO_TIMEOUT_S = 2.0
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05
_LOCK_NAME = "lock"


class LocalServer:
    """A Valkey or Redis of this user's own, on a unix socket, with its data in one directory.

    Nothing is started or written before `ensure_running`.

    Args:
        directory: Where its data, log and lock are.
        environ: The environment; None for the process's own.

    Attributes:
        directory: The same, absolute and without symlinks.
    """

    def __init__(self, directory: Path, environ: Mapping[str, str] | None = None) -> None:
        # Two names of one directory must lead to one socket.
        self.directory = Path(os.path.realpath(directory))
        self._environ = os.environ if environ is None else environ
        self._lock = LifeLock(self.directory / _LOCK_NAME)
        self._socket = SocketPlace(self.directory, self._environ)

    def ensure_running(self, timeout_s: float = START_TIMEOUT_S) -> Path:
        """Start the server unless it runs, and wait until it answers.

        However many ask at once, one server is started. After an interrupt the server goes on
        starting by itself, and the next call waits for it.

        Args:
            timeout_s: Seconds to wait for a server that is loading its data.

        Raises:
            LocalServerError: There is no server program, the directory cannot be used, the server
                ended while it started, or it does not answer in time.

        Returns:
            The unix socket's path.
        """
        make_data_directory(self.directory, _LOCK_NAME)
        began_s = heard_s = time.monotonic()
        log_start_bytes: int | None = None
        pauses_s = _pauses_s()
        while True:
            path = self._socket.current()
            with plain_errors("talk to", path):
                presence = look(path, min(timeout_s, _PING_TIMEOUT_S))
            if presence is Presence.READY:
                return path
            now_s = time.monotonic()
            if presence is Presence.BUSY:
                heard_s = now_s
            else:
                with (
                    plain_errors("write in", self.directory),
                    self._lock.try_take() as descriptor,
                ):
                    # With the lock in our hands no server lives, not even one that is starting.
                    if descriptor is not None:
                        if log_start_bytes is not None:
                            raise explain_exit(self.directory, log_start_bytes)
                        log_start_bytes = log_bytes(self.directory)
                        self._launch(descriptor)
                        heard_s = time.monotonic()
            if now_s - began_s > timeout_s:
                raise self._trouble(
                    f"does not answer after {timeout_s:g} s", "it may be loading its data"
                )
            if now_s - heard_s > _LISTEN_TIMEOUT_S:
                raise self._trouble(f"runs, but nobody listens at {path}", "end it, then try again")
            time.sleep(next(pauses_s))

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Shut the server down cleanly, its data on disk, and wait until it is gone.

        Args:
            timeout_s: Seconds to wait.

        Raises:
            LocalServerError: It refused, or is not gone in time.

        Returns:
            Whether it was running.
        """
        if not has_data_directory(self.directory):
            return False
        was_running = False
        began_s = time.monotonic()
        pauses_s = _pauses_s()
        while self._shut_down(timeout_s) or self._is_alive():
            was_running = True
            if time.monotonic() - began_s > timeout_s:
                raise self._trouble(f"is not gone after {timeout_s:g} s", "end it by its ID")
            time.sleep(next(pauses_s))
        if self._socket.has_leftovers():
            with plain_errors("write in", self.directory), self._lock.try_take() as descriptor:
                # Not when somebody has started the next server in the meantime.
                if descriptor is not None:
                    self._socket.clear()
        return was_running

    def status(self) -> LocalStatus:
        """Look at the server; nothing is started or made.

        Raises:
            LocalServerError: The directory is someone else's, or cannot be read.
        """
        exists = has_data_directory(self.directory)
        path = self._socket.current()
        info = self._info(path) if exists else {}
        running = bool(info) or (exists and self._is_alive())
        pid = whole_number(info.get("process_id"))
        if pid is None and running:
            pid = stored_pid(self.directory)
        return LocalStatus(
            running=running,
            pid=pid,
            socket=path,
            directory=self.directory,
            server=server_name(info),
            used_memory_bytes=whole_number(info.get("used_memory")),
            aof_bytes=stored_bytes(self.directory),
            uptime_s=whole_number(info.get("uptime_in_seconds")),
        )

    def _launch(self, lock_descriptor: int) -> None:
        program = find_server(self._environ)
        path = self._socket.prepare()
        launch(program, self.directory, path, lock_descriptor, self._environ)

    def _shut_down(self, timeout_s: float) -> bool:
        """Send SHUTDOWN; whether somebody listened."""
        path = self._socket.current()
        with plain_errors("talk to", path):
            try:
                reply = ask(path, b"SHUTDOWN", timeout_s)
            except (TimeoutError, BlockingIOError):
                return True
            except (FileNotFoundError, ConnectionError):
                return False
        if reply.startswith(b"-"):
            reason = reply[1:].decode("utf-8", "replace")
            raise self._trouble(f"did not shut down: {reason}", "try again")
        return True

    def _is_alive(self) -> bool:
        with plain_errors("read in", self.directory):
            return self._lock.is_held()

    def _info(self, path: Path) -> dict[str, str]:
        try:
            return read_info(ask(path, b"INFO", _INFO_TIMEOUT_S))
        except OSError:
            return {}

    def _trouble(self, what: str, hint: str) -> LocalServerError:
        pid = stored_pid(self.directory)
        name = f"the local server (process {pid})" if pid is not None else "the local server"
        return LocalServerError(f"{name} in {self.directory} {what}", hint)


def _pauses_s() -> Iterator[float]:
    # A small server answers within milliseconds; one that loads a gigabyte is not worth the polls.
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.2, _LONGEST_PAUSE_S)
