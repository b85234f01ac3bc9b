"""A shell that cleans up after this process if it was killed and could not do so itself."""

import os
import signal
from contextlib import suppress

_SHELL = b"/bin/sh"
_PATH = b"/usr/local/bin:/usr/bin:/bin"
# No key and no hangup ends the shell or stops it, and it may write to a terminal that has another
# process group in the foreground.
_WAIT = r"""
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
state=
while read -r line; do state=$line; done
"""


class DeathWatch:
    """Runs a shell script when this process has ended, unless the watch was closed before.

    A shell waits at a pipe whose other end this process alone has open. It has a process group of
    its own, and no variable of this process but the PATH. Without `/bin/sh` there is no watch.

    Args:
        script: The script; `$state` is what was told last, or empty.
        words: `$0`, `$1` and so on.
        stderr: The file descriptor that is its stderr; None for the null device.
    """

    def __init__(self, script: str, *words: bytes, stderr: int | None = None) -> None:
        self._pid: int | None = None
        read_fd, self._write_fd = os.pipe()
        null = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        try:
            self._pid = os.posix_spawn(
                _SHELL,
                [_SHELL, b"-c", (_WAIT + script).encode(), *words],
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

    def tell(self, state: str) -> None:
        """Tell the script a word."""
        if self._pid is not None:
            # The shell may have been killed.
            with suppress(OSError):
                os.write(self._write_fd, state.encode() + b"\n")

    def close(self) -> None:
        """End the watch; the script does not run."""
        if self._pid is not None:
            pid, self._pid = self._pid, None
            os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            os.close(self._write_fd)
