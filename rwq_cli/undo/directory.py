"""A directory of undo files: their numbers and locks, and writes that survive a crash."""

import errno
import fcntl
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from rwq_cli.environment import try_flock, user_directory

SUFFIX = ".jsonl"
UNDONE = ".undone"


def default_directory(variables: Mapping[str, str]) -> Path:
    return user_directory(variables, "XDG_STATE_HOME", ".local/state") / "rwq" / "undo"


def explain_unwritable(directory: Path) -> str | None:
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    is_writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return None if is_writable else f"{existing} cannot be written"


def open_undo_file(path: Path, mode: str = "rb") -> BinaryIO:
    """Open a file; raises OSError for a pipe or a device, which may have no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return cast(BinaryIO, path.open(mode))


def append(file: BinaryIO, end: int, lines: bytes) -> int:
    """Write lines at `end` so that they survive a crash of this machine; returns the new end."""
    descriptor, at, unwritten = file.fileno(), end, memoryview(lines)
    try:
        while unwritten:
            written = os.pwrite(descriptor, unwritten, at)
            at, unwritten = at + written, unwritten[written:]
        # A line that was cut off may have reached further.
        os.ftruncate(descriptor, at)
        os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise
    return at


def lock(file: BinaryIO) -> bool:
    try:
        return try_flock(file.fileno(), fcntl.LOCK_EX)
    except OSError:
        # A file system without locks.
        return True


def list_numbered(directory: Path) -> dict[int, Path]:
    """Return the undo files of a directory by their numbers, latest first."""
    files = {}
    for path in directory.iterdir() if directory.is_dir() else ():
        number, suffix, rest = path.name.partition(SUFFIX)
        if suffix and rest in ("", UNDONE) and number.isascii() and number.isdecimal():
            files[int(number)] = path
    return dict(sorted(files.items(), reverse=True))


def make_directory(directory: Path) -> None:
    """Create a directory so that its name survives a crash, for its user alone."""
    if not directory.exists():
        make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
