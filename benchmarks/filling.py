"""Queues of a given shape, written with ready-made protocol."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path

from benchmarks.server import BenchServer, binaries

QUEUE = "bench"
PAYLOAD = (
    b'{"user":123456,"task":"resize","path":"/srv/images/2026/11/21/abcdef.png","size":[640,480]}'
)
_BURIED_MS = 1_760_000_000_000


@dataclass(frozen=True)
class Shape:
    """How many items a queue has in each state."""

    waiting: int = 0
    abandoned: int = 0
    orphaned: int = 0
    buried: int = 0


def new_ids(count: int) -> list[bytes]:
    """Random IDs of 32 hexadecimal digits."""
    digits = os.urandom(16 * count).hex().encode()
    return [digits[at : at + 32] for at in range(0, len(digits), 32)]


def packed(*words: bytes) -> bytes:
    """One command in the wire's format."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def pipe_command(server: BenchServer) -> list[str]:
    """The command line of valkey-cli --pipe."""
    return [str(binaries() / "valkey-cli"), "-s", str(server.socket), "--pipe"]


def pipe_file(server: BenchServer, file: Path) -> None:
    """Send a file of ready-made protocol."""
    with file.open("rb") as source:
        subprocess.run(pipe_command(server), stdin=source, stdout=subprocess.DEVNULL, check=True)


def write_lines(file: Path, lines: Iterable[bytes]) -> Path:
    """Write lines into a file, and return it."""
    with file.open("wb") as target:
        target.writelines(line + b"\n" for line in lines)
    return file


def add_command(item_id: bytes) -> bytes:
    """SET and LPUSH of one waiting item."""
    return _data_command(item_id) + packed(b"LPUSH", _key("queue"), item_id)


def push_commands(key: str, ids: Iterable[bytes]) -> Iterator[bytes]:
    """LPUSHes onto a list, a thousand IDs at a time."""
    source = iter(ids)
    while batch := list(islice(source, 1000)):
        yield packed(b"LPUSH", _key(key), *batch)


class Filler:
    """Fills servers with queues, and keeps the last shape's protocol to send it again.

    Args:
        folder: For the file of protocol.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "protocol"
        self._shape: Shape | None = None
        self._ids: dict[str, list[bytes]] = {}

    def fill(self, server: BenchServer, shape: Shape) -> dict[str, list[bytes]]:
        """Empty the server, and give it a queue of this shape.

        Returns:
            The IDs by state.
        """
        server.empty()
        if shape != self._shape:
            self._shape = shape
            self._ids = {field.name: new_ids(getattr(shape, field.name)) for field in fields(shape)}
            with self._file.open("wb") as file:
                file.writelines(_commands(self._ids))
        pipe_file(server, self._file)
        server.reset_counters()
        return self._ids


def _commands(ids: dict[str, list[bytes]]) -> Iterator[bytes]:
    for group in ids.values():
        yield from map(_data_command, group)
    yield from push_commands("queue", ids["waiting"])
    yield from push_commands("processing", ids["abandoned"])
    for number, item_id in enumerate(ids["buried"]):
        yield packed(b"ZADD", _key("buried"), b"%d" % (_BURIED_MS + number), item_id)
        for name in ("lease", "leased_by_session"):
            yield packed(b"SET", _key(f"{name}:") + item_id, b"rwq-buried:by hand")


def _data_command(item_id: bytes) -> bytes:
    return packed(b"SET", _key("item:") + item_id, PAYLOAD)


def _key(name: str) -> bytes:
    return f"{QUEUE}:{name}".encode()
