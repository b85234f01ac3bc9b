"""The lock that tells whether a server lives: the server itself holds it, to its last moment.

Whoever starts a server takes the lock and hands the open file on to it. The kernel frees the lock
when the last process that has the file open is gone, whatever ended it. So no pid file is ever
believed, and nobody can start a second server on the same data: not while the first one is still
starting, not after the command that started it was killed, not when its socket was deleted.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LifeLock:
    """An exclusive lock on a file that is never deleted.

    Args:
        file: The file to lock; made when first taken.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    @contextmanager
    def try_take(self) -> Iterator[int | None]:
        """Take the lock for the body, without waiting.

        A process that inherits the descriptor holds the lock on after the body.

        Raises:
            OSError: The file cannot be made, or its file system has no locks.

        Returns:
            The open file's descriptor; None if the lock is held.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._file, flags, 0o600)
        try:
            yield descriptor if _lock(descriptor, fcntl.LOCK_EX) else None
        finally:
            os.close(descriptor)

    def is_held(self) -> bool:
        """Whether a server, or somebody who is starting one, holds it now.

        Raises:
            OSError: The file cannot be read, or its file system has no locks.
        """
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # Shared: two who only look do not see each other.
            return not _lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
