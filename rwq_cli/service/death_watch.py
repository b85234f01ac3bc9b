"""A process that cleans up after this one if it was killed and could not do so itself."""

import os
import signal
from contextlib import suppress

_PATH = b"/usr/local/bin:/usr/bin:/bin"


class DeathWatch:
    """A program that reads its stdin to the end, which comes when this process has ended.

    Its stdin is a pipe whose other end this process alone has open. It has a process group of its
    own, and a fixed PATH as its only variable; its stderr is this file descriptor, if one is given.
    If it cannot be started, there is no watch.
    """

    def __init__(self, command: tuple[str | bytes, ...], *, stderr: int | None = None) -> None:
        self._pid: int | None = None
        read_fd, self._write_fd = os.pipe()
        null = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        try:
            self._pid = os.posix_spawn(
                command[0],
                command,
                {b"PATH": _PATH},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, read_fd, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    null if stderr is None else (os.POSIX_SPAWN_DUP2, stderr, 2),
                ],
                setpgroup=0,
                setsigmask=(),
            )
        except OSError:
            os.close(self._write_fd)
        finally:
            os.close(read_fd)

    def tell(self, line: bytes) -> None:
        """Write a line to its stdin."""
        if self._pid is not None:
            # It may have been killed.
            with suppress(OSError):
                os.write(self._write_fd, line + b"\n")

    def close(self) -> None:
        """End the watch before this process ends."""
        if self._pid is not None:
            pid, self._pid = self._pid, None
            os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            os.close(self._write_fd)
