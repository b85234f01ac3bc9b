"""Where the socket is: beside the data, or in a short place when that path is too long.

Which short place depends on the environment, and two commands may have different ones (a shell, a
cron job). So the one that starts the server leaves a symlink in the data's directory, under the
socket's name, and the others read it.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.directory import check_socket_directory, make_socket_directory, plain_errors

# sun_path holds 104 bytes on macOS and the BSDs, 108 on Linux, with the final NUL; servers cut a
# longer path off without a word.
LONGEST_PATH_BYTES = 103

_NAME = "valkey.sock"


class SocketPlace:
    """The socket of one data directory.

    Args:
        directory: The data's directory, absolute and without symlinks.
        environ: The environment; `XDG_RUNTIME_DIR` and `TMPDIR` are read, for a long path only.
    """

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._beside = directory / _NAME
        self._environ = environ
        self._is_short = _fits(self._beside)

    def current(self) -> Path:
        """Where a running server listens; if none runs, where one would.

        Raises:
            LocalServerError: Someone else's directory is in its place, or no place is short enough.
        """
        if self._is_short:
            return self._beside
        try:
            path = Path(os.readlink(self._beside))
        except OSError:
            path = self._planned()
        if os.path.lexists(path.parent):
            check_socket_directory(path.parent)
        return path

    def prepare(self) -> Path:
        """Choose the path for a server that is about to start; the caller holds the lock.

        Raises:
            LocalServerError: As in `current`, or the place cannot be written to.
        """
        if self._is_short:
            return self._beside
        # What a killed server left may be in another place than the new one.
        self.clear()
        path = self._planned()
        make_socket_directory(path.parent)
        with plain_errors("write", self._beside):
            self._beside.symlink_to(path)
        return path

    def has_leftovers(self) -> bool:
        """Whether `clear` has something to do."""
        return not self._is_short and os.path.lexists(self._beside)

    def clear(self) -> None:
        """Remove the short place and the symlink to it; the caller holds the lock."""
        if not self.has_leftovers():
            return
        with suppress(OSError):
            path = Path(os.readlink(self._beside))
            path.unlink(missing_ok=True)
            path.parent.rmdir()
        with suppress(OSError):
            self._beside.unlink()

    def _planned(self) -> Path:
        # Loads OpenSSL, which a short path has no use for.
        import hashlib

        digest = hashlib.sha256(os.fsencode(self._beside)).hexdigest()[:16]
        name = f"rwq-{os.geteuid()}-{digest}"
        for variable, fallback in (("XDG_RUNTIME_DIR", ""), ("TMPDIR", ""), ("", "/tmp")):
            parent = self._environ.get(variable, fallback)
            path = Path(parent, name, _NAME)
            if os.path.isabs(parent) and os.path.isdir(parent) and _fits(path):
                return path
        raise LocalServerError(
            f"no directory is short enough for the socket of {self._beside.parent}",
            "set XDG_RUNTIME_DIR or TMPDIR to a directory with a short name",
        )


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= LONGEST_PATH_BYTES
