"""The data directory of an embedded server: its files, permissions, lock and socket."""

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import user_directory

# sun_path holds 104 bytes on macOS and the BSDs, 108 on Linux, including the final NUL. Servers
# truncate a longer path without an error.
SOCKET_PATH_BYTES_MAX = 103

_LOCK_NAME = "lock"
_SOCKET_NAME = "valkey.sock"


def default_directory(environ: Mapping[str, str]) -> Path:
    """The data directory of plain `local:`.

    Args:
        environ: The environment variables.

    Returns:
        `$XDG_STATE_HOME/rwq/local`, or `~/.local/state/rwq/local` if the variable is not set.
    """
    return user_directory(environ, "XDG_STATE_HOME", ".local/state") / "rwq" / "local"


class DataDirectory:
    """The directory of one server, which only its user can access.

    The server holds the lock until it exits: the process that launches it takes the lock and passes
    the open file on, and the kernel releases the lock when the last process closes the file. So two
    servers never use the same data, even if the launcher was killed or the socket was deleted, and
    a pid file alone is never trusted.

    Args:
        path: The directory, which may not exist yet.
        environ: The environment; `XDG_RUNTIME_DIR` and `TMPDIR` are read if the path is too long
            for a socket.

    Attributes:
        path: The same, absolute and without symlinks, so that two names lead to one socket.
        log: The server's log.
        pid_file: The server's process ID. Trust it only while the lock is held.
        append_directory: The append-only files, from Redis 7 on.
    """

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.path = Path(os.path.realpath(path))
        self.log = self.path / "server.log"
        self.pid_file = self.path / "server.pid"
        self.append_directory = self.path / "appendonlydir"
        self._environ = environ
        self._lock = self.path / _LOCK_NAME
        # A symlink to the socket if the path is too long.
        self._socket = self.path / _SOCKET_NAME

    def create(self) -> None:
        """Create the directory and make it private.

        Raises:
            OSError: It cannot be created or accessed.
            LocalServerError: It is not a directory, belongs to another user, or is open to other
                users and holds other files.
        """
        _make_private(self.path)

    def exists(self) -> bool:
        """Whether the directory exists.

        Raises:
            OSError: It cannot be accessed.
            LocalServerError: It is not a directory of this user.
        """
        try:
            _check_owner(self.path)
        except FileNotFoundError:
            return False
        return True

    def find_socket(self) -> Path:
        """The path of the socket, even if no server runs.

        That is in the directory, or in a short directory if that path is too long.

        Raises:
            OSError: The short directory cannot be accessed.
            LocalServerError: It is not a directory of this user.
        """
        if _is_short(self._socket):
            return self._socket
        try:
            socket = Path(os.readlink(self._socket))
        except OSError:
            socket = self._short_socket()
        with suppress(FileNotFoundError):
            _check_owner(socket.parent)
        return socket

    def prepare_socket(self) -> Path:
        """Choose the socket of a new server, and create its directory. The caller holds the lock.

        Raises:
            OSError: The short directory, or the symlink to the socket, cannot be created.
            LocalServerError: The short directory is not a directory of this user.

        Returns:
            The path of the socket.
        """
        if _is_short(self._socket):
            return self._socket
        # The socket of a server that was killed may be elsewhere.
        self._delete_short_socket()
        socket = self._short_socket()
        _make_private(socket.parent)
        # The place depends on the environment: a cron job must find the socket of a shell.
        self._socket.symlink_to(socket)
        return socket

    def remove_short_socket(self) -> None:
        """Remove the socket and its short directory, unless a server uses them.

        Raises:
            OSError: The lock file cannot be created.
        """
        if self._socket.is_symlink():
            with self.try_lock() as descriptor:
                if descriptor is not None:
                    self._delete_short_socket()

    def _delete_short_socket(self) -> None:
        with suppress(OSError):
            socket = Path(os.readlink(self._socket))
            self._socket.unlink()
            socket.unlink(missing_ok=True)
            socket.parent.rmdir()

    def _short_socket(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        name = Path(f"rwq-{os.geteuid()}-{digest}", _SOCKET_NAME)
        for variable in ("XDG_RUNTIME_DIR", "TMPDIR"):
            place = self._environ.get(variable, "")
            # After `su`, the variable may name a directory of another user.
            is_usable = os.path.isabs(place) and os.access(place, os.W_OK | os.X_OK)
            if is_usable and _is_short(place / name):
                return place / name
        return Path("/tmp", name)

    @contextmanager
    def try_lock(self) -> Iterator[int | None]:
        """Take the lock while the block runs, without waiting.

        Raises:
            OSError: The lock file cannot be created, or the file system has no locks.

        Yields:
            The descriptor of the lock file, or None if the lock is held. A process that inherits
            the descriptor keeps the lock after the block.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._lock, flags, 0o600)
        try:
            yield descriptor if _flock(descriptor, fcntl.LOCK_EX) else None
        finally:
            os.close(descriptor)

    def is_locked(self) -> bool:
        """Whether a server is running or being launched.

        Raises:
            OSError: The lock file cannot be read, or the file system has no locks.
        """
        try:
            descriptor = os.open(self._lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # Shared: two processes that check at once must not see each other's lock.
            return not _flock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def pid(self) -> int | None:
        """The process ID in the pid file; None if there is none."""
        try:
            text = self.pid_file.read_text("ascii", "replace").strip()
        except OSError:
            return None
        return int(text) if text.isdecimal() else None


def size_bytes(file: Path) -> int:
    """The size of a file in bytes; 0 if it cannot be read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _make_private(directory: Path) -> None:
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    if stat.S_IMODE(_check_owner(directory).st_mode) & 0o077:
        names = os.listdir(directory)
        # A mistaken `local:/tmp` or `local:$HOME` must not lock everybody else out.
        if names and _LOCK_NAME not in names and _SOCKET_NAME not in names:
            raise LocalServerError(
                f"{directory} is open to other users and holds other files",
                f"use an empty directory, or chmod 700 {directory}",
            )
        directory.chmod(0o700)


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


def _is_short(socket: Path) -> bool:
    return len(os.fsencode(socket)) <= SOCKET_PATH_BYTES_MAX


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
