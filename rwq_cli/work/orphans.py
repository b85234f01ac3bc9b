"""Ending the commands of a worker that was killed: nobody would renew their leases."""

import os
import signal
from contextlib import suppress

# $1 is the entry of the environment by which commands are found, $2 how long they get, seconds.
# Neither the shell nor grep has that entry.
_SCRIPT = r"""
trap '' HUP INT QUIT TERM TSTP
read -r _ && exit
send() {
    found=
    for file in $(grep -lsF -e "$1" /proc/[0-9]*/environ); do
        read -r stat 2>/dev/null <"${file%environ}stat" || continue
        set -- "$1" "$2" ${stat##*) }
        [ "$3" = Z ] && continue
        found=1
        kill -s "$2" -- "-$5" 2>/dev/null
    done
}
send "$1" TERM
send "$1" CONT
[ "$found" ] || exit
sleep "$2"
send "$1" KILL
"""
_SHELL = b"/bin/sh"


class OrphanWatch:
    """Sends SIGTERM, and later SIGKILL, to the commands if this process is killed and cannot.

    A shell waits at a pipe whose other end this process alone has open. It finds the commands and
    what they have started by their environment, so that starting one costs nothing more. That
    needs /proc: on other systems there is no watch.

    Args:
        mark: What an entry of the environment of every command of this worker begins with.
        kill_after_s: How long after SIGTERM to send SIGKILL, seconds.
    """

    def __init__(self, mark: bytes, kill_after_s: float) -> None:
        self._pid: int | None = None
        # A pattern of two lines would be two patterns.
        if not os.path.exists("/proc/self/environ") or b"\n" in mark:
            return
        read_fd, self._write_fd = os.pipe()
        words = [_SHELL, b"-c", _SCRIPT.encode(), b"rwq-orphans", mark, b"%g" % kill_after_s]
        path = b"/usr/local/bin:/usr/bin:/bin"
        try:
            self._pid = os.posix_spawn(
                _SHELL,
                words,
                {b"PATH": path},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, read_fd, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setpgroup=0,
                setsigmask=(),
            )
        except OSError:
            # Without a shell there is no watch.
            os.close(self._write_fd)
        finally:
            os.close(read_fd)

    def close(self) -> None:
        """End the watch: what commands have left running goes on."""
        if self._pid is not None:
            pid, self._pid = self._pid, None
            os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            os.close(self._write_fd)
