"""Queues of a given shape, made fast with ready-made protocol."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.measuring import QUEUE, BenchServer, binaries

PAYLOAD = (
    b'{"user":123456,"task":"resize","path":"/srv/images/2026/11/21/abcdef.png","size":[640,480]}'
)


def new_ids(count: int) -> list[bytes]:
    """Random IDs of 32 hexadecimal digits."""
    digits = os.urandom(16 * count).hex().encode()
    return [digits[at : at + 32] for at in range(0, len(digits), 32)]


def packed(*words: bytes) -> bytes:
    """One command in the wire's format."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def pipe(bench: BenchServer, commands: Iterable[bytes]) -> None:
    """Send ready-made protocol with valkey-cli --pipe."""
    with tempfile.NamedTemporaryFile() as file:
        for command in commands:
            file.write(command)
        file.flush()
        pipe_file(bench, Path(file.name))


def pipe_command(bench: BenchServer) -> list[str]:
    """The command line of valkey-cli --pipe."""
    return [str(binaries() / "valkey-cli"), "-s", str(bench.socket), "--pipe"]


def pipe_file(bench: BenchServer, file: Path) -> None:
    """Send a file of ready-made protocol."""
    with file.open("rb") as source:
        subprocess.run(pipe_command(bench), stdin=source, stdout=subprocess.DEVNULL, check=True)


def data_commands(ids: Iterable[bytes]) -> Iterator[bytes]:
    """SETs of the data keys."""
    prefix = f"{QUEUE}:item:".encode()
    for item_id in ids:
        yield packed(b"SET", prefix + item_id, PAYLOAD)


def push_commands(key: str, ids: Iterable[bytes]) -> Iterator[bytes]:
    """LPUSHes onto a list, a thousand at a time."""
    source = iter(ids)
    while batch := list(islice(source, 1000)):
        yield packed(b"LPUSH", f"{QUEUE}:{key}".encode(), *batch)


def fill(
    bench: BenchServer, *, waiting: int, abandoned: int = 0, orphaned: int = 0
) -> dict[str, list[bytes]]:
    """An empty server gets a queue of this shape.

    Returns:
        The IDs by what they are.
    """
    bench.empty()
    made = {
        "waiting": new_ids(waiting),
        "abandoned": new_ids(abandoned),
        "orphaned": new_ids(orphaned),
    }
    for ids in made.values():
        pipe(bench, data_commands(ids))
    pipe(bench, push_commands("queue", made["waiting"]))
    pipe(bench, push_commands("processing", made["abandoned"]))
    bench.client.slowlog_reset()
    return made
