"""Servers and lines that behave badly."""

import errno
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.servers import HOST


def served(handle: Callable[[socket.socket], object]) -> socket.socket:
    """A listener on a free port; each of its clients is served in a thread of its own."""
    listener = socket.create_server((HOST, 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            handle(client)

    threading.Thread(target=accept, daemon=True).start()
    return listener


@contextmanager
def answering(reply: bytes, *, first: bool = False) -> Iterator[str]:
    """A TCP server that gives this answer to whatever it is sent, or says it first; its URL."""

    def answer(client: socket.socket) -> None:
        while first or client.recv(1 << 20):
            client.sendall(reply)
            if first:
                client.recv(1 << 20)
                return

    with served(answer) as listener:
        yield f"redis://{HOST}:{listener.getsockname()[1]}/0"


class VirtualAddress:
    """An address that leads to one of several servers: new connections go where it points now.

    Connections on which nothing passes for `silence_s` are cut.
    """

    def __init__(self, to: int | Path, *, silence_s: float | None = None) -> None:
        self.to = to
        self._silence_s = silence_s
        self._open: set[socket.socket] = set()
        self._forgotten: set[socket.socket] = set()
        self._resets = True
        self.accepted = 0
        self._listener = served(self._pass_on)
        self.url = f"redis://{HOST}:{self._listener.getsockname()[1]}"

    def _pass_on(self, here: socket.socket) -> None:
        self.accepted += 1
        is_path = isinstance(self.to, Path)
        family, place = socket.AF_UNIX if is_path else socket.AF_INET, str(self.to)
        with socket.socket(family) as there:
            there.connect(place if is_path else (HOST, self.to))
            self._open.add(here)
            while ready := select.select([here, there], [], [], self._silence_s)[0]:
                for source in ready:
                    if not (piece := source.recv(1 << 16)):
                        return
                    if here in self._forgotten and not self._resets:
                        continue
                    if here in self._forgotten:
                        reset = struct.pack("ii", 1, 0)
                        here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                        return
                    (there if source is here else here).sendall(piece)

    def forget(self, *, resets: bool = True) -> None:
        """As a load balancer does after some silence: say nothing, and reset what is sent later, or
        drop it."""
        self._resets = resets
        self._forgotten |= self._open

    def close(self) -> None:
        self._listener.close()


class CountedSocket(socket.socket):
    """A client's socket that is cut after a number of bytes, as a line is that breaks.

    What was sent before the cut reaches the server, which may answer; the client sees the end.
    """

    line: "Line"
    _is_cut = False

    def sendall(self, data: Any) -> None:
        if self._is_cut:
            raise BrokenPipeError(errno.EPIPE, "broken pipe")
        self.line.before_send()
        passed = self._passed("up", len(data))
        super().sendall(memoryview(data)[:passed])
        if self._is_cut:
            self.line.on_cut()
            super().shutdown(socket.SHUT_WR)

    def recv(self, size: int, *flags: int) -> bytes:
        if self._is_cut:
            return b""
        data = super().recv(size, *flags)
        return data[: self._passed("down", len(data))]

    def recv_into(self, buffer: Any, size: int = 0, *flags: int) -> int:
        if self._is_cut:
            return 0
        return self._passed("down", super().recv_into(buffer, size, *flags))

    def shutdown(self, how: int) -> None:
        if not self._is_cut:
            super().shutdown(how)

    def close(self) -> None:
        if not self._is_cut:
            super().close()

    def _passed(self, side: str, count: int) -> int:
        passed, self._is_cut = self.line.pass_on(side, count)
        if self._is_cut and side == "down":
            self.line.on_cut()
        return passed

    def drain(self) -> None:
        """Wait until the server has carried out what it was sent before the cut."""
        if not self._is_cut:
            return
        with suppress(OSError):
            super().shutdown(socket.SHUT_WR)
        super().settimeout(30)
        while super().recv(1 << 16):
            pass
        super().close()


class Line:
    """The lines of every client that this process opens while the block runs.

    Faster than a proxy by far, and no node of a cluster has to name the proxy's address. The bytes
    of all lines count together, to whichever server. It is cut once; a client that connects again
    is not cut again. `up` is what the client sends, `down` what it reads.
    """

    def __init__(self, side: str = "up", after_bytes: int | None = None) -> None:
        self.before_send: Callable[[], object] = lambda: None
        self.on_cut: Callable[[], object] = lambda: None
        self._side = side
        self._after = after_bytes
        self.passed = {"up": 0, "down": 0}
        self._sockets: list[CountedSocket] = []

    @property
    def is_cut(self) -> bool:
        """Whether so much has passed; true, if it was not to be cut at all."""
        return self._after is None

    def pass_on(self, side: str, count: int) -> tuple[int, bool]:
        """How many of these bytes pass, and whether the line breaks after them."""
        before = self.passed[side]
        self.passed[side] += count
        if side != self._side or self._after is None or self.passed[side] <= self._after:
            return count, False
        passed = max(0, self._after - before)
        self._after = None
        return passed, True

    def __enter__(self) -> "Line":
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(socket, "socket", self._counted)
        return self

    def _counted(self, *given: Any, **named: Any) -> CountedSocket:
        counted = CountedSocket(*given, **named)
        counted.line = self
        self._sockets.append(counted)
        return counted

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        for each in self._sockets:
            each.drain()
