"""The data directory of an embedded server: its files, permissions, lock and socket."""

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import try_flock, user_directory

# sun_path holds 104 bytes on macOS and the BSDs, 108 on Linux, including the final NUL. Servers
# truncate a longer path without an error.
SOCKET_PATH_BYTES_MAX = 103

_LOCK_NAME = "lock"
_SOCKET_NAME = "valkey.sock"


def default_directory(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/rwq/local` or `~/.local/state/rwq/local`: the data of plain `local:`."""
    return user_directory(environ, "XDG_STATE_HOME", ".local/state") / "rwq" / "local"


class DataDirectory:
    """The directory of one server, which only its user can access."""

    # The server holds the lock until it exits: the process that launches it takes the lock and
    # passes the open file on, and the kernel releases the lock when the last process closes the
    # file. So two servers never use the same data, even if the launcher was killed or the socket
    # was deleted, and a pid file is trusted only while the lock is held.
    # The path is without symlinks, so that two names lead to one socket. If it is too long for a
    # socket, that is under /tmp, the same whatever TMPDIR is.
    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        self.log = self.path / "server.log"
        self.pid_file = self.path / "server.pid"
        self.append_directory = self.path / "appendonlydir"
        self.socket = self.path / _SOCKET_NAME
        self._lock = self.path / _LOCK_NAME
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES_MAX:
            digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
            self.socket = Path("/tmp", f"rwq-{os.geteuid()}-{digest}", _SOCKET_NAME)

    def create(self) -> None:
        """Create the directory and that of the socket, and make them private."""
        for directory in {self.path, self.socket.parent}:
            _make_private(directory)

    def exists(self) -> bool:
        """Check that the directories are this user's; False if there is no data directory."""
        with suppress(FileNotFoundError):
            _check_owner(self.socket.parent)
        try:
            _check_owner(self.path)
        except FileNotFoundError:
            return False
        return True

    def remove_short_socket(self) -> None:
        """Remove a socket under /tmp and its directory, unless a server uses them."""
        if self.socket.parent != self.path and self.path.exists():
            with self.try_lock() as descriptor, suppress(OSError):
                if descriptor is not None:
                    self.socket.unlink(missing_ok=True)
                    self.socket.parent.rmdir()

    @contextmanager
    def try_lock(self) -> Iterator[int | None]:
        """Take the lock while the block runs, without waiting; its file, or None if it is held."""
        # A process that inherits the descriptor keeps the lock after the block.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._lock, flags, 0o600)
        try:
            yield descriptor if try_flock(descriptor, fcntl.LOCK_EX) else None
        finally:
            os.close(descriptor)

    def is_locked(self) -> bool:
        try:
            descriptor = os.open(self._lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # Shared: two processes that check at once must not see each other's lock.
            return not try_flock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def pid(self) -> int | None:
        try:
            text = self.pid_file.read_text("ascii", "replace").strip()
        except OSError:
            return None
        return int(text) if text.isdecimal() else None


def size_bytes(file: Path) -> int:
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
