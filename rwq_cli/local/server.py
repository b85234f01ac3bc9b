"""The embedded server: its data directory, and how it is started and stopped."""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import os_reason, try_flock, user_directory
from rwq_cli.local.program import find_server

# A server that is alive at least replies that it is loading its data.
REPLY_TIMEOUT_S = 30.0

# sun_path holds 104 bytes on macOS and the BSDs, 108 on Linux, including the final NUL. Servers
# truncate a longer path without an error.
_SOCKET_PATH_BYTES_MAX = 103
_LOCK_NAME = "lock"
_SOCKET_NAME = "valkey.sock"

AOF_CUT = "a crash cut its append-only file before the last start: its last writes are gone"

_ASK_TIMEOUT_S = 2.0
_KILL_TIMEOUT_S = 5.0
# Only these: a password in the environment would stay readable while the server runs.
_PASSED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "TZ")

# How much of the log is searched for what the last start said.
_LOG_BYTES_MAX = 1 << 20
_LOG_PREFIX = re.compile(r"^\d+:[A-Z] .*?:\d\d\.\d+ [.*#-] ")


def default_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of plain `local:`: `rwq/local` in XDG_STATE_HOME or `~/.local/state`."""
    return user_directory(environ, "XDG_STATE_HOME", ".local/state") / "rwq" / "local"


class LocalStatus(NamedTuple):
    """The state of a local server; what only the server knows is None if it does not answer."""

    running: bool
    pid: int | None
    url: str
    directory: Path
    server: str | None
    used_memory_bytes: int | None
    aof_bytes: int | None
    # Whether its append-only file ended in the middle of a write when it last started, as after a
    # crash: the server left out that write.
    aof_cut: bool
    uptime_s: int | None


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # An error of flock has no file name.
        name = error.filename or "the lock file"
        raise LocalServerError(f"cannot use {name}: {os_reason(error)}") from error


class LocalServer:
    """A private Valkey or Redis on a unix socket, with its data in one directory."""

    # Only `ensure_running` starts a server or creates files. Every method raises a LocalServerError
    # if it fails, also if the directory belongs to another user. The environment selects the
    # program.
    # The server holds the lock until it exits: the process that launches it takes the lock and
    # passes the open file on, and the kernel releases the lock when the last process closes the
    # file. So two servers never use the same data, even if the launcher was killed or the socket
    # was deleted, and a pid file is trusted only while the lock is held.
    # Symlinks in the path are resolved, so that two names lead to one socket. If it is too long for
    # a socket, the socket is under /tmp, whatever TMPDIR is.
    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.directory = Path(os.path.realpath(directory))
        self._log = self.directory / "server.log"
        self._pid_file = self.directory / "server.pid"
        self._append_directory = self.directory / "appendonlydir"
        self._socket = self.directory / _SOCKET_NAME
        if len(os.fsencode(self._socket)) > _SOCKET_PATH_BYTES_MAX:
            digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
            self._socket = Path("/tmp", f"rwq-{os.geteuid()}-{digest}", _SOCKET_NAME)
        self.url = f"unix://{quote(os.fsencode(self._socket))}"

    @_file_errors()
    def ensure_running(
        self, timeout_s: float = 60.0, reply_timeout_s: float = REPLY_TIMEOUT_S
    ) -> None:
        """Start the server unless it is running, and wait until it answers."""
        # Concurrent calls start one server. If a call is interrupted, the server keeps starting,
        # and the next call waits for it.
        self._create()
        began_s = replied_s = time.monotonic()
        log_start_bytes: int | None = None
        for pause_s in _pauses_s():
            reply = self._ask(b"PING", min(timeout_s, reply_timeout_s, _ASK_TIMEOUT_S))
            # Any other error is an answer, too: if its disk is full, a server replies MISCONF.
            if reply and not reply.startswith(b"-LOADING"):
                return
            if reply is None:
                with self._locked() as descriptor:
                    # We hold the lock: no server is running or starting.
                    if descriptor is not None:
                        if log_start_bytes is not None:
                            raise self._exit_error(log_start_bytes)
                        log_start_bytes = _size_bytes(self._log)
                        self._launch(descriptor)
                        replied_s = time.monotonic()
            now_s = time.monotonic()
            replied_s = now_s if reply else replied_s
            is_silent = now_s - replied_s >= reply_timeout_s
            if is_silent or now_s - began_s > timeout_s:
                limit_s = reply_timeout_s if is_silent else timeout_s
                hint = "it may be stopped, or loading its data"
                raise self._error(f"did not answer within {limit_s:g} s", hint)
            time.sleep(pause_s)

    @_file_errors()
    def stop(self, timeout_s: float = 30.0) -> bool:
        """Shut the server down, with its data saved; returns False if it was not running."""
        self._check_owners()
        if b"aof_last_write_status:err" in (self._ask(b"INFO persistence", timeout_s) or b""):
            # It would exit, and lose what it has acknowledged.
            raise self._error(
                "cannot write its data to the disk, and would lose its last items",
                f"make room on the disk of {self.directory}, and stop it again",
            )
        began_s, was_running = time.monotonic(), False
        for pause_s in _pauses_s():
            # A server that shuts down closes the connection; one that refuses sends an error.
            reply = self._ask(b"SHUTDOWN", timeout_s)
            if reply:
                reason = reply.removeprefix(b"-").decode("utf-8", "replace")
                raise self._error(f"refused to shut down: {reason}", "try again")
            if reply is None and not self._is_locked():
                break
            was_running = True
            if time.monotonic() - began_s > timeout_s:
                raise self._error(f"did not exit within {timeout_s:g} s", "kill it")
            time.sleep(pause_s)
        self._remove_short_socket()
        return was_running

    @_file_errors()
    def kill(self) -> None:
        """Kill the server, without saving its data, and wait until it has exited."""
        began_s = time.monotonic()
        for pause_s in _pauses_s():
            if not self._is_locked() or time.monotonic() - began_s > _KILL_TIMEOUT_S:
                break
            # One that has just been launched has no pid file yet.
            if (pid := self._pid()) is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause_s)
        self._remove_short_socket()

    @_file_errors()
    def status(self) -> LocalStatus:
        """Inspect the server, without starting it or writing anything."""
        self._check_owners()
        reply = self._ask(b"INFO", _ASK_TIMEOUT_S)
        running = reply is not None or self._is_locked()
        lines = (reply or b"").decode("utf-8", "replace").splitlines()
        info = {name: value for name, _, value in (line.partition(":") for line in lines)}
        numbers = {name: int(value) for name, value in info.items() if value.isdecimal()}
        # Valkey also reports the Redis version that it is compatible with.
        names = [name for name in ("valkey", "redis") if f"{name}_version" in info]
        # Redis before 7 has a single append-only file.
        data = [*self.directory.glob("appendonly.aof"), *self._append_directory.glob("*")]
        return LocalStatus(
            running=running,
            pid=self._pid() if running else None,
            url=self.url,
            directory=self.directory,
            server=f"{names[0]} {info[f'{names[0]}_version']}" if names else None,
            used_memory_bytes=numbers.get("used_memory"),
            aof_bytes=sum(map(_size_bytes, data)) if data else None,
            aof_cut=self._was_cut(),
            uptime_s=numbers.get("uptime_in_seconds"),
        )

    def _was_cut(self) -> bool:
        with suppress(FileNotFoundError), open(self._log, "rb") as log:
            log.seek(max(0, _size_bytes(self._log) - _LOG_BYTES_MAX))
            last_start = log.read().rpartition(b" is starting oO0")[2]
            return b"loaded anyway because aof-load-truncated" in last_start
        return False

    def _ask(self, command: bytes, timeout_s: float) -> bytes | None:
        """Send a command; returns the content of a bulk string, else the line of the reply."""
        # b"" means that the server did not answer, None that nothing listens. A plain socket takes
        # 0.03 ms, redis-py 0.75 ms: every command with `-u local:` asks once, and a start, which
        # takes about 10 ms, asks repeatedly.
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(timeout_s)
                connection.connect(os.fsencode(self._socket))
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
        pid = self._pid()
        name = f"the local server (process {pid})" if pid is not None else "the local server"
        return LocalServerError(f"{name} in {self.directory} {problem}", hint)

    def _launch(self, lock_descriptor: int) -> None:
        """Start a server, which keeps the lock file open; it may not listen yet."""
        program = find_server(self._environ)
        environ = self._environ
        passed = {name: environ[name] for name in _PASSED_VARIABLES if name in environ}
        # From now on, a pid file is that of the server that holds the lock.
        self._pid_file.unlink(missing_ok=True)
        try:
            finished = subprocess.run(
                [program, *self._settings()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=passed,
                pass_fds=(lock_descriptor,),
                # Ctrl-C in the terminal must not reach the server.
                start_new_session=True,
                umask=0o077,
                # It reads its settings and forks before it returns.
                timeout=30.0,
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
                f"the server {program} did not start: {reason}", f"its log is {self._log}"
            )

    def _exit_error(self, log_start_bytes: int) -> LocalServerError:
        """Make the error for one that exited before it answered; its log began at this size."""
        reason = "its log gives no reason"
        with suppress(FileNotFoundError), open(self._log, "rb") as log:
            log.seek(log_start_bytes)
            reason = _last_lines(log.read()) or reason
        # On a full disk the server cannot write its log either.
        if not os.statvfs(self.directory).f_bavail:
            reason = "no space left on the device"
        problem = f"the server exited while it started: {reason}"
        return LocalServerError(problem, f"its log is {self._log}")

    def _settings(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "daemonize": "yes",
            "dir": str(self.directory),
            "pidfile": str(self._pid_file),
            "logfile": str(self._log),
            "appendonly": "yes",
            "save": "",
        }
        if self._append_directory.is_dir():
            # Redis before 7 would ignore this directory and start empty. It does not know the
            # setting either, so it refuses to start.
            settings["appenddirname"] = self._append_directory.name
        return [word for name, value in settings.items() for word in (f"--{name}", value)]

    def _create(self) -> None:
        """Create the directory and that of the socket, and make them private."""
        for directory in {self.directory, self._socket.parent}:
            with suppress(FileExistsError):
                directory.mkdir(mode=0o700, parents=True)
            if stat.S_IMODE(_check_owner(directory).st_mode) & 0o077:
                names = os.listdir(directory)
                # A mistaken `local:/tmp` or `local:$HOME` must not lock everybody else out.
                if names and not {_LOCK_NAME, _SOCKET_NAME} & {*names}:
                    raise LocalServerError(
                        f"{directory} is open to other users and holds other files",
                        f"use an empty directory, or chmod 700 {directory}",
                    )
                directory.chmod(0o700)

    def _check_owners(self) -> None:
        for directory in (self._socket.parent, self.directory):
            with suppress(FileNotFoundError):
                _check_owner(directory)

    def _remove_short_socket(self) -> None:
        """Remove a socket under /tmp and its directory, unless a server uses them."""
        if self._socket.parent != self.directory and self.directory.exists():
            with self._locked() as descriptor, suppress(OSError):
                if descriptor is not None:
                    self._socket.unlink(missing_ok=True)
                    self._socket.parent.rmdir()

    @contextmanager
    def _locked(self, kind: int = fcntl.LOCK_EX) -> Iterator[int | None]:
        """Take the lock for the block, without waiting; yields its file, or None if it is held."""
        # A process that inherits the descriptor keeps the lock after the block.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_CREAT if kind == fcntl.LOCK_EX else 0
        descriptor = os.open(self.directory / _LOCK_NAME, flags, 0o600)
        try:
            yield descriptor if try_flock(descriptor, kind) else None
        finally:
            os.close(descriptor)

    def _is_locked(self) -> bool:
        # Shared: two processes that check at once must not see each other's lock.
        with suppress(FileNotFoundError), self._locked(fcntl.LOCK_SH) as descriptor:
            return descriptor is None
        return False

    def _pid(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._pid_file.read_text("ascii"))
        return None


@contextmanager
def throwaway(environ: Mapping[str, str]) -> Iterator[LocalServer]:
    """Provide a server in a temporary directory; kill it and delete the directory afterwards."""
    # The caller starts it with `ensure_running`, and must turn the signals that would end the
    # process into exceptions.
    with _file_errors():
        directory = Path(tempfile.mkdtemp(prefix="rwq-"))
    server = LocalServer(directory, environ)
    with ExitStack() as ends:
        # A file that cannot be deleted must not hide an error of the block.
        ends.callback(shutil.rmtree, directory, ignore_errors=True)
        # Twice: a second Ctrl-C must not leave the server behind.
        ends.callback(server.kill)
        ends.callback(server.kill)
        yield server


def _size_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _check_owner(directory: Path) -> os.stat_result:
    # lstat: another user may have created a symlink in /tmp.
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise LocalServerError(f"{directory} is not a directory")
    if facts.st_uid != os.geteuid():
        raise LocalServerError(
            f"{directory} belongs to another user (uid {facts.st_uid})",
            "use a directory of your own: local:/some/dir",
        )
    return facts


def _pauses_s() -> Iterator[float]:
    # A small server answers within milliseconds; one that loads a gigabyte takes seconds.
    pause_s = 0.001
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.2, 0.05)


def _last_lines(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    texts = [text for line in lines if (text := _LOG_PREFIX.sub("", line).strip())]
    return "; ".join(texts[-3:])
