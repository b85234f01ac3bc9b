"""The processes that a process has started, and one that cleans up after it."""

import os
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen


def processes_of(root: int, mark: bytes | None = None) -> set[int]:
    """Return the live processes that a process has started, itself included."""
    # They are its descendants, and whatever has the mark in its environment: a process whose parent
    # has ended gets another parent. Without `/proc`, they are not found.
    parents: dict[int, int] = {}
    descendants = {root}
    for pid in os.listdir("/proc") if os.path.isdir("/proc") else ():
        # Other names are not numbers.
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{int(pid)}/stat", "rb") as file:
                # After the name, which may contain anything.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state == b"Z":
                continue
            parents[int(pid)] = int(parent)
            if mark is not None:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        descendants.add(int(pid))
    while more := {pid for pid, parent in parents.items() if parent in descendants} - descendants:
        descendants |= more
    return descendants & parents.keys()


def is_alive(pid: int) -> bool:
    """Return False if a process has ended, even if it is still a zombie; needs `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return not file.read().rpartition(b")")[2].lstrip().startswith(b"Z")
    except OSError:
        return False


class DeathWatch:
    """A program that reads its stdin until EOF, which comes when this process has ended or been
    killed, because only this process holds the other end open. It is started in a process group of
    its own, with a fixed PATH as its only variable, or not at all.
    """

    def __init__(self, command: tuple[str | bytes, ...]) -> None:
        self._process: Popen[bytes] | None = None
        with suppress(OSError):
            self._process = Popen(
                command,
                bufsize=0,
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                process_group=0,
            )

    def close(self) -> None:
        """End the watch before this process ends."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()
