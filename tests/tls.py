"""TLS in front of servers of the tests', which were built without it."""

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest

from tests.proxies import served

# Made for the tests, and known to everybody: it says nothing about anybody.
_KEY_AND_CERTIFICATE = """\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIH+w9yQygfMeKzBsZVhcDGhuYKj2NdMhse9tcsLSetZPoAoGCCqGSM49
AwEHoUQDQgAEd1NZTR1G/4FknhiC0xhAr65UorL/KLkgEtKEczEUIH7n5+lffpBU
4UxE0WaT37kuS3KfdNIKSnRdq2XJeVERWA==
-----END EC PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUHiZObtMuGj8gPjf9GLpb3lfHZI8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjIwNTkzNVoYDzIxMjYxMDI5
MjA1OTM1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR3U1lNHUb/gWSeGILTGECvrlSisv8ouSAS0oRzMRQgfufn6V9+kFTh
TETRZpPfuS5Lcp900gpKdF2rZcl5URFYo28wbTAdBgNVHQ4EFgQUcANSHUCgG6Og
TJ1iqZAakxYgqb4wHwYDVR0jBBgwFoAUcANSHUCgG6OgTJ1iqZAakxYgqb4wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhANCEew7j2vChru3lAwtskVPKKo6vH+GSsrPk+fntRJG2AiB4
JQGQEYr4QEFJm4hFhrrrEa0QpjtseTryZ2LAuyRzIQ==
-----END CERTIFICATE-----
"""
# The first byte of a client that speaks TLS.
_HANDSHAKE = b"\x16"


class TlsFronts:
    """Ports on which TLS is passed on to servers without it.

    As OpenSSL does it by default, they send session tickets on their own, right after the
    handshake.
    """

    def __init__(self, folder: Path, *, asks_clients: bool = False) -> None:
        # A client in this process reads this machine's authorities for each connection, which takes
        # 0.1 s: it is to find none. It would trust none of them here.
        self._environment = pytest.MonkeyPatch()
        self._environment.setenv("SSL_CERT_FILE", os.devnull)
        self.authority = folder / "server.pem"
        self.authority.write_text(_KEY_AND_CERTIFICATE)
        self.handshakes = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.authority)
        if asks_clients:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(self.authority)
        self._listeners: list[socket.socket] = []

    def open(self, connect: Callable[[], socket.socket], *, also_plain: bool = False) -> int:
        """Listen on a port; with `also_plain`, clients without TLS may pass, too."""

        def pass_on(client: socket.socket) -> None:
            is_tls = not also_plain or client.recv(1, socket.MSG_PEEK) == _HANDSHAKE
            here = self._context.wrap_socket(client, server_side=True) if is_tls else client
            self.handshakes += is_tls
            with connect() as there, here:
                _pass_on(here, there)

        self._listeners.append(served(pass_on))
        return int(self._listeners[-1].getsockname()[1])

    def close(self) -> None:
        """Listen no more."""
        self._environment.undo()
        for listener in self._listeners:
            listener.close()


def _pass_on(here: socket.socket, there: socket.socket) -> None:
    while True:
        has_more = isinstance(here, ssl.SSLSocket) and here.pending()
        ready = [here] if has_more else select([here, there], [], [])[0]
        source, sink = (here, there) if here in ready else (there, here)
        piece = source.recv(1 << 16)
        if not piece:
            return
        sink.sendall(piece)


@contextmanager
def tls_front(server: Path, folder: Path, *, asks_clients: bool = False) -> Iterator[str]:
    """Pass TLS on to a server on a unix socket; the URL."""

    def connect() -> socket.socket:
        there = socket.socket(socket.AF_UNIX)
        there.connect(str(server))
        return there

    fronts = TlsFronts(folder, asks_clients=asks_clients)
    try:
        yield f"rediss://localhost:{fronts.open(connect)}/0"
    finally:
        fronts.close()
