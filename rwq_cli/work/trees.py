"""The processes of a command: what it has started, also in other sessions."""

import os
from collections.abc import Iterator
from contextlib import suppress

_PROC = "/proc"


def processes_of(root: int, mark: bytes) -> set[int]:
    """The living processes that a command has started, itself included.

    They are its descendants, and whatever has its entry in the environment: a process whose parent
    has ended is a child of another one. Without `/proc`, they are not found.

    Args:
        root: The process of the command.
        mark: An entry of the environment of this command alone.
    """
    parents: dict[int, int] = {}
    found = {root}
    for pid in _pids():
        with suppress(OSError, ValueError, IndexError):
            # After the name, which may hold anything.
            state, parent = _read(pid, "stat").rpartition(b")")[2].split()[:2]
            if state == b"Z":
                continue
            parents[pid] = int(parent)
            if mark in _read(pid, "environ").split(b"\0"):
                found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found & parents.keys()


def _pids() -> Iterator[int]:
    with suppress(OSError):
        yield from (int(name) for name in os.listdir(_PROC) if name.isdigit())


def _read(pid: int, name: str) -> bytes:
    with open(f"{_PROC}/{pid}/{name}", "rb") as file:
        return file.read()
