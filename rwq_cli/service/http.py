"""The HTTP server behind `--listen`: `/healthz` and `/metrics`."""

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason
from rwq_cli.output.exposition import CONTENT_TYPE

# A client that sends or reads nothing for this long is dropped.
_CLIENT_TIMEOUT_S = 10.0
# How long closing takes at most.
_POLL_S = 0.1
_TEXT = "text/plain; charset=utf-8"


class HttpServer(ThreadingHTTPServer):
    """Answers supervisors in threads of its own.

    Args:
        address: Host and port; an empty host is every address, port 0 a free port.
        health: Whether all is well, and a line about it, for `/healthz`.
        metrics: Makes the answer of `/metrics`; scrapes at the same time share one.

    Raises:
        InvalidArgument: The address cannot be used.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        health: Callable[[], tuple[bool, str]],
        metrics: Callable[[], str],
    ) -> None:
        self.health = health
        self._make_metrics = metrics
        self._lock = Lock()
        self._scrape: Future[str] | None = None
        super().__init__(address, _Handler, bind_and_activate=False)
        self.socket.close()
        try:
            self.socket = _listening(*address)
        except (OSError, UnicodeError, OverflowError) as error:
            place, reason = _host_port(*address), os_reason(error)
            raise InvalidArgument(
                f"cannot listen on {place}: {reason}", "give another --listen"
            ) from error
        self.server_address = self.socket.getsockname()
        self.url = f"http://{_host_port(*self.server_address[:2])}"

    def serve(self) -> None:
        """Answer, until it is closed."""
        self.serve_forever(_POLL_S)

    def metrics(self) -> str:
        """The answer of `/metrics`: that of a scrape that is being answered, if there is one."""
        with self._lock:
            scrape, is_first = self._scrape, self._scrape is None
            if scrape is None:
                scrape = self._scrape = Future()
        if is_first:
            try:
                scrape.set_result(self._make_metrics())
            except Exception as error:
                scrape.set_exception(error)
            finally:
                self._scrape = None
        return scrape.result()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has disconnected."""


def _host_port(host: Any, port: Any) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        with suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)
    # `localhost` is both, and most clients try 127.0.0.1.
    found.sort(key=lambda each: each[0] != socket.AF_INET)
    family, _, _, _, place = found[0]
    try:
        return socket.create_server(place, family=family)
    except OSError as error:
        # Python adds the address to the reason.
        raise OSError(error.errno, os.strerror(error.errno or 0)) from None


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    server_version = "rwq"
    sys_version = ""
    timeout = _CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if path == "/healthz":
            is_well, line = self.server.health()
            self._answer(200 if is_well else 503, f"{line}\n", _TEXT)
        elif path == "/metrics":
            try:
                self._answer(200, self.server.metrics(), CONTENT_TYPE)
            except Exception as error:
                self._answer(500, f"{type(error).__name__}: {error}\n", _TEXT)
        else:
            self._answer(404, "/healthz or /metrics\n", _TEXT)

    do_HEAD = do_GET

    def _answer(self, status: int, text: str, kind: str) -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""
