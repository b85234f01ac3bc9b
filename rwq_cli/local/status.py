"""What can be said about a local server, and how its INFO is read."""

from dataclasses import dataclass
from pathlib import Path

from rwq_cli.local.launch import APPEND_DIRECTORY_NAME, APPEND_FILE_NAME, PID_NAME


@dataclass(frozen=True, slots=True)
class LocalStatus:
    """A local server as it is now.

    Attributes:
        running: Whether its process lives, even if it does not answer yet.
        pid: Its process ID; None if it does not run, or runs and has not told it yet.
        socket: Where it listens, or would.
        directory: Where its data lie.
        server: Name and version, like `valkey 8.1.3`; None if it does not answer.
        used_memory_bytes: What it has allocated, in bytes; None if it does not answer.
        aof_bytes: The size of its data on disk, in bytes; None if there are none.
        uptime_s: Whole seconds since its start; None if it does not answer.
    """

    running: bool
    pid: int | None
    socket: Path
    directory: Path
    server: str | None
    used_memory_bytes: int | None
    aof_bytes: int | None
    uptime_s: int | None


def read_info(info: bytes) -> dict[str, str]:
    """The fields of an INFO reply; none if it is an error."""
    lines = info.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith(("#", "-")))
    return {name: value for name, colon, value in pairs if colon}


def server_name(info: dict[str, str]) -> str | None:
    """Name and version of the server; None if INFO does not tell."""
    # Valkey gives the Redis version that it is compatible with, too.
    for name in ("valkey", "redis"):
        version = info.get(f"{name}_version")
        if version:
            return f"{name} {version}"
    return None


def whole_number(text: str | None) -> int | None:
    """The number in an INFO field; None if there is none."""
    return int(text) if text and text.isdecimal() else None


def stored_pid(directory: Path) -> int | None:
    """The process ID in the pid file, to be believed only while the lock is held."""
    try:
        return whole_number((directory / PID_NAME).read_text("ascii", "replace").strip())
    except OSError:
        return None


def stored_bytes(directory: Path) -> int | None:
    """The size of the append-only files, in bytes; None if there are none."""
    sizes_bytes = []
    for file in (directory / APPEND_FILE_NAME, *(directory / APPEND_DIRECTORY_NAME).glob("*")):
        try:
            sizes_bytes.append(file.stat().st_size)
        except OSError:
            # A rewrite deletes the files that it replaced.
            continue
    return sum(sizes_bytes) if sizes_bytes else None
