"""redis-work-queue 0.1.5 as processes: the package from PyPI and the one from npm."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rwq_cli.core import NewItem
from tests import processes

_HERE = Path(__file__).parent
_END_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a worker's book."""

    at: float
    pid: int
    did: str
    item_id: bytes | None
    data: bytes | None
    before: str | None


def read_book(book: Path) -> list[Entry]:
    """The entries of a book, in order."""
    if not book.exists():
        return []
    # The last line may be on its way.
    lines = [json.loads(line) for line in book.read_bytes().split(b"\n")[:-1]]
    return [
        Entry(
            at=line["at"],
            pid=line["pid"],
            did=line["did"],
            item_id=line["id"].encode() if "id" in line else None,
            data=base64.b64decode(line["data"]) if "data" in line else None,
            before=line.get("before"),
        )
        for line in lines
    ]


@dataclass(frozen=True, slots=True)
class Peer:
    """How to start the workers of one package."""

    program: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def command_line(self, **told: Any) -> list[str]:
        """The words that start a worker which does what it is told here."""
        return [*self.program, json.dumps({**self.settings, **told}, default=str)]

    def do(self, verb: str, *, book: Path, **told: Any) -> list[Entry]:
        """Run a worker to its end; what it wrote into its book."""
        book.unlink(missing_ok=True)
        process = start(self.command_line(do=verb, book=book, **told))
        try:
            assert process.wait(_END_TIMEOUT_S) == 0
        finally:
            process.kill()
            process.wait()
        return read_book(book)


def start(command_line: Sequence[object]) -> "subprocess.Popen[bytes]":
    """Start one, or rwq, at the root of the project."""
    return processes.start(
        [str(word) for word in command_line],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"},
        cwd=processes.ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _module(name: str) -> tuple[str, ...]:
    return sys.executable, "-m", f"tests.live.{name}"


def python_peer() -> Peer:
    """Workers on the package from PyPI."""
    return Peer(_module("peer_worker"))


def core_peer(**settings: Any) -> Peer:
    """Workers on `WorkQueue.work`."""
    return Peer(_module("core_worker"), settings)


def node_peer(packages: Path) -> Peer:
    """Workers on the package from npm, which is installed below this folder."""
    return Peer(("node", str(_HERE / "peer_worker.mjs")), {"packages": packages})


def encoded(items: Iterable[NewItem]) -> list[tuple[str, str]]:
    """Items as a worker is told them."""
    return [(item.item_id.decode(), base64.b64encode(item.data).decode()) for item in items]
