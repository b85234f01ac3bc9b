"""The HTTP server of a supervised process: `/healthz` and `/metrics`."""

import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock
from typing import Any

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason
from rwq_cli.output.exposition import CONTENT_TYPE

_TEXT = "text/plain; charset=utf-8"


class HttpServer(ThreadingHTTPServer):
    """Answers in threads of its own; an empty host means every address, port 0 a free port.

    `health` returns True if all is well, and a line about it; `metrics` returns the answer of
    `/metrics`, which concurrent scrapes share.
    """

    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        health: Callable[[], tuple[bool, str]],
        metrics: Callable[[], str],
    ) -> None:
        self.health, self._make_metrics, self._turn = health, metrics, Lock()
        self._metrics, self._made_s = "", 0.0
        host, port = address
        bound: Any = ("::", port)
        try:
            if not host and socket.has_dualstack_ipv6():
                self.address_family = socket.AF_INET6
            else:
                addresses = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)
                # `localhost` may be IPv6 and IPv4, and most clients try 127.0.0.1.
                first = min(addresses, key=lambda address: address[0] != socket.AF_INET)
                self.address_family, *_, bound = first
            super().__init__(bound, _Handler)
        except (OSError, UnicodeError, OverflowError) as error:
            raise InvalidArgument(
                f"cannot listen on {_shown(host)}:{port}: {os_reason(error)}",
                "give another --listen",
            ) from error
        host, port = self.socket.getsockname()[:2]
        self.url = f"http://{_shown(host)}:{port}"

    def server_bind(self) -> None:
        # Without looking up the name of this host, which can take long.
        if self.server_address[0] == "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)

    def metrics(self) -> str:
        came_s = time.monotonic()
        with self._turn:
            # What another scrape got meanwhile is new enough: many at once cost as much as one.
            if self._made_s < came_s:
                self._metrics, self._made_s = self._make_metrics(), time.monotonic()
            return self._metrics

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has disconnected."""


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    server_version = "rwq"
    sys_version = ""
    # A client that sends or reads nothing for this long is dropped.
    timeout = 10.0

    def do_GET(self) -> None:
        status, text, kind = 404, "/healthz or /metrics\n", _TEXT
        path = self.path.partition("?")[0]
        if path == "/healthz":
            is_well, line = self.server.health()
            status, text = 200 if is_well else 503, f"{line}\n"
        elif path == "/metrics":
            try:
                status, text, kind = 200, self.server.metrics(), CONTENT_TYPE
            except Exception as error:
                status, text = 500, f"{type(error).__name__}: {error}\n"
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        """Do not log requests."""
