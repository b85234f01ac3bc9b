"""One connection: replies that are polled, drops that nobody was told of, large commands."""

import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path

import pytest
from redis import exceptions as rx

from rwq_cli.core import Server, connect
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.server import link as link_module
from rwq_cli.core.server.link import NO_REPLY, Link
from tests.conftest import StartServer
from tests.servers import PrivateServer


class TestPolling:
    @pytest.fixture
    def ends(self) -> Iterator[tuple[Link, socket.socket]]:
        """A link, and the server's end of it."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            link = connect(Server(f"redis://127.0.0.1:{port}")).take(writes=False)
            far, _ = listener.accept()
            with far:
                yield link, far
                link.close()

    def test_a_reply_in_pieces_wakes_and_is_read_when_it_is_whole(
        self, ends: tuple[Link, socket.socket]
    ) -> None:
        link, far = ends
        link.send([("BLMOVE", b"a:queue", 4)])
        assert far.recv(100) == b"*3\r\n$6\r\nBLMOVE\r\n$7\r\na:queue\r\n$1\r\n4\r\n"
        assert select.select([link], [], [], 0.01)[0] == []
        assert link.poll() is NO_REPLY
        far.sendall(b"$3\r\nab")
        assert select.select([link], [], [], 5)[0] == [link]
        assert link.poll() is NO_REPLY
        far.sendall(b"c\r\n")
        assert link.poll() == b"abc"
        far.sendall(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
        assert isinstance(link.poll(), rx.ResponseError)
        far.close()
        with pytest.raises(ConnectionLost):
            link.poll()


class SilentlyDroppingProxy:
    """Between a client and a server on a unix socket; can forget the connections that it has.

    Attributes:
        url: Where it listens.
        accepted: How many connections were made.
    """

    def __init__(self, server: Path) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._forgotten: set[socket.socket] = set()
        self._open: list[socket.socket] = []
        self.accepted = 0
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def forget(self) -> None:
        """As a load balancer does after some silence: say nothing, and reset what is sent later."""
        self._forgotten.update(self._open)

    def close(self) -> None:
        for each in (self._listener, *self._open):
            each.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self._server))
                self._open += [near, far]
                self.accepted += 1
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                if source in self._forgotten:
                    source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    source.close()
                    return
                sink.sendall(piece)


class TestDroppedConnections:
    @pytest.fixture
    def proxy(self, server: PrivateServer) -> Iterator[SilentlyDroppingProxy]:
        made = SilentlyDroppingProxy(server.socket)
        yield made
        made.close()

    def test_a_connection_that_was_dropped_in_silence_is_replaced(
        self, proxy: SilentlyDroppingProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(link_module, "PING_AFTER_S", 1e-9)
        connection = connect(Server(proxy.url))
        assert connection.call("ECHO", b"a") == b"a"
        proxy.forget()
        assert connection.call("ECHO", b"b") == b"b"
        assert proxy.accepted == 2

    def test_a_command_that_was_sent_is_not_sent_again(
        self, proxy: SilentlyDroppingProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(link_module, "PING_AFTER_S", inf)
        connection = connect(Server(proxy.url))
        assert connection.call("ECHO", b"a") == b"a"
        proxy.forget()
        with pytest.raises(ConnectionLost):
            connection.call("ECHO", b"b")
        assert connection.call("ECHO", b"c") == b"c"

    def test_a_connection_in_use_is_not_tested(
        self, proxy: SilentlyDroppingProxy, server: PrivateServer
    ) -> None:
        connection = connect(Server(proxy.url))
        raw = server.client()
        connection.call("ECHO", b"a")
        raw.config_resetstat()
        for _ in range(10):
            connection.call("ECHO", b"a")
        assert "cmdstat_ping" not in raw.info("commandstats")
        assert proxy.accepted == 1


def test_a_large_command_is_sent_in_pieces(start_server: StartServer) -> None:
    """In pieces: no timeout limits how long all of it takes."""
    connection = connect(Server(start_server().url))
    data = bytes(range(256)) * (5 << 12)
    assert connection.call("SET", b"key", data) is True
    assert connection.call("GET", b"key") == data
