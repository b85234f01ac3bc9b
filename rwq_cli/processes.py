"""The processes that a process has started."""

import os
from contextlib import suppress


def processes_of(root: int, mark: bytes | None = None) -> set[int]:
    """The living processes that a process has started, itself included."""
    # They are its descendants, and whatever has the mark in its environment: a process whose parent
    # has ended is a child of another one. Without `/proc`, they are not found.
    parents: dict[int, int] = {}
    found = {root}
    for pid in os.listdir("/proc") if os.path.isdir("/proc") else ():
        # Other names are no numbers.
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{int(pid)}/stat", "rb") as file:
                # After the name, which may hold anything.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state == b"Z":
                continue
            parents[int(pid)] = int(parent)
            if mark is not None:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.add(int(pid))
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found & parents.keys()


def is_alive(pid: int) -> bool:
    """True unless a process has ended, even if nobody has waited for it yet; needs `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return not file.read().rpartition(b")")[2].lstrip().startswith(b"Z")
    except OSError:
        return False
