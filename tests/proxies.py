"""Servers and lines that behave badly: a server that is loading, and a line that breaks."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """A TCP server on a free port that gives this answer to whatever it is sent; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                while connection.recv(1 << 20):
                    connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        listener.close()


class CuttingProxy:
    """Between rwq and a server on a unix socket; breaks the line once so much has passed.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, server: Path, *, after_bytes: int, side: str) -> None:
        """`side`: `up` counts what rwq sends, `down` what the server answers."""
        self._server = server
        self._left = after_bytes
        self._side = side
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(str(self._server))
                self._open += [here, there]
                for source, sink, side in ((here, there, "up"), (there, here, "down")):
                    threading.Thread(
                        target=self._pass_on, args=(source, sink, side), daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, side: str) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                if side == self._side:
                    self._left -= len(piece)
                    if self._left < 0:
                        sink.sendall(piece[: max(0, len(piece) + self._left)])
                        break
                sink.sendall(piece)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening and drop the connections."""
        for each in (self._listener, *self._open):
            each.close()
